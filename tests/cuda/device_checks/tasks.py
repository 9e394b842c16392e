"""How the kernel's tasks begin an episode, and what their observations show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.cuda.device_checks.philox import normals, symmetric_uniform

Words = NDArray[np.uint32]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class KernelTask:
    begin: Callable[[Words], tuple[float, ...]]
    """What `ClosedFormTask.start` is given for an episode of four random words."""
    as_seen: Callable[[Numbers, Any], Any]
    """The state that an observation shows; what it does not show is that of a state that is nearly the same."""


def _begin_reacher(words: Words) -> tuple[float, ...]:
    x, y, q1, q2 = _uniform(words)
    return 3.14 * q1, 3.14 * q2, 0.0, 0.0, 0.27 * x, 0.27 * y


def _reacher_as_seen(seen: Numbers, state: Any) -> Any:  # noqa: ANN401 - each task has its own
    turned = np.arctan2(seen[5], seen[4]) - float(state.q1)
    q1 = float(state.q1) + (turned + np.pi) % (2 * np.pi) - np.pi
    potential = -100 * np.hypot(seen[2], seen[3])
    return state._replace(q1=q1, q2=3 * seen[7], w1=10 * seen[6], w2=10 * seen[8], potential=potential)


def _begin_double_pendulum(words: Words) -> tuple[float, ...]:
    lower, upper, *_ = _uniform(words)
    return 0.0, 0.1 * lower, 0.1 * upper, 0.0, 0.0, 0.0


def _double_pendulum_as_seen(seen: Numbers, state: Any) -> Any:  # noqa: ANN401
    lower, upper = np.arctan2(seen[4], seen[3]), np.arctan2(seen[7], seen[6])
    speeds = {"cart_speed": seen[1], "lower_speed": seen[5], "upper_speed": seen[8]}
    return state._replace(x=seen[0], lower=lower, upper=upper, **speeds)


def _begin_pendulum(words: Words) -> tuple[float, ...]:
    angle, speed, *_ = _uniform(words)
    return np.pi * angle, speed


def _pendulum_as_seen(seen: Numbers, state: Any) -> Any:  # noqa: ANN401
    return state._replace(angle=np.arctan2(seen[1], seen[0]), speed=seen[2])


def _begin_cart_pole(words: Words) -> tuple[float, ...]:
    (x, angle), (v, w) = (0.01 * normals(words[first : first + 2]) for first in (0, 2))
    return float(x), np.pi + float(angle), float(v), float(w)


def _cart_pole_as_seen(seen: Numbers, state: Any) -> Any:  # noqa: ANN401
    return state._replace(x=seen[0], angle=np.arctan2(seen[2], seen[1]), cart_speed=seen[3], pole_speed=seen[4])


def _begin_mountain_car(words: Words) -> tuple[float, ...]:
    return -0.5 + 0.1 * _uniform(words)[0], 0.0


def _mountain_car_as_seen(seen: Numbers, state: Any) -> Any:  # noqa: ANN401
    return state._replace(x=seen[0], speed=seen[1])


def _begin_acrobot(words: Words) -> tuple[float, ...]:
    return tuple(0.1 * each for each in _uniform(words))


def _acrobot_as_seen(seen: Numbers, state: Any) -> Any:  # noqa: ANN401
    upper, lower = np.arctan2(seen[1], seen[0]), np.arctan2(seen[3], seen[2])
    return state._replace(upper=upper, lower=lower, upper_speed=seen[4], lower_speed=seen[5])


def _uniform(words: Words) -> list[float]:
    drawn: list[float] = symmetric_uniform(words).astype(np.float64).tolist()
    return drawn


KERNEL_TASKS: Mapping[str, KernelTask] = MappingProxyType(
    {
        "reacher": KernelTask(_begin_reacher, _reacher_as_seen),
        "double-pendulum": KernelTask(_begin_double_pendulum, _double_pendulum_as_seen),
        "pendulum": KernelTask(_begin_pendulum, _pendulum_as_seen),
        "cart-pole": KernelTask(_begin_cart_pole, _cart_pole_as_seen),
        "mountain-car": KernelTask(_begin_mountain_car, _mountain_car_as_seen),
        "acrobot": KernelTask(_begin_acrobot, _acrobot_as_seen),
    }
)
