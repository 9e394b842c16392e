"""Wrong actions, and errors that an environment raises, in one sentence; one that calls sys.exit() fails as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite, nan
from traceback import format_exception_only
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from cycletime.errors import EnvError, InputError

Action: TypeAlias = NDArray[np.floating[Any]]


def read_action(action: Action, size: int) -> list[float]:
    """The numbers of an action; anything else but finite numbers of the right count is refused."""
    try:
        values = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    # A few plain numbers are looked at faster than an array of them, and this happens at every step.
    numbers: list[float] = values.tolist() if values.shape == (size,) else [nan]
    if not all(map(isfinite, numbers)):
        raise InputError(f"{action!r} is not an action: give an array of {size} finite number{'s' * (size > 1)}.")
    return numbers


class EnvErrorWrapper(gym.Wrapper[Any, Any, Any, Any]):
    def __init__(self, env: gym.Env[Any, Any], name: str) -> None:
        super().__init__(env)
        self._name = name

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        with raise_as_env_error(self._name, "its reset()"):
            return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:  # noqa: ANN401
        with raise_as_env_error(self._name, "its step()"):
            return self.env.step(action)

    def render(self) -> Any:  # noqa: ANN401 - as Gymnasium has it
        with raise_as_env_error(self._name, "its render()"):
            return self.env.render()

    def close(self) -> None:
        with raise_as_env_error(self._name, "its close()"):
            self.env.close()


@contextmanager
def raise_as_env_error(name: str, where: str) -> Iterator[None]:
    """Raise an OSError or SystemExit from inside as an `EnvError` that names the environment and the call."""
    try:
        yield
    except (OSError, SystemExit) as error:
        text = "".join(format_exception_only(error)).strip()
        raise EnvError(f"The environment {name} failed in {where} with {text}.") from error
