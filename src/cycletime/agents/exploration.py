"""Exploration noise that is coherent in time, stated in seconds so that every cycle time samples the same process.

Each kind is a stationary Gaussian process in continuous time, normal with variance 1 at every instant: one or several
leaky integrators of white noise, side by side. `at` samples it exactly at a cycle time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, expm1, log, sqrt
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration, DurationField, DurationLike
from cycletime.errors import InputError

PINK_FACTOR = 4.0
"""From one of pink noise's times to the next, at most: it makes ripples of 0.3 % in the spectrum, 10 would of 6 %."""


@dataclass(frozen=True)
class CoherentNoise:
    """A process at one cycle time, as linear filters of standard normals xi; each component of an action has its own.

    z_i = xi_i at an episode's first agent step, then z_i <- f_i z_i + g_i xi_i; the noise is c.z.
    """

    dt: Duration
    carry: tuple[float, ...]
    """f, what a cycle leaves of z."""
    drive: tuple[float, ...]
    """g, what it adds."""
    read: tuple[float, ...]

    @property
    def size(self) -> int:
        """Numbers in z, and normals of each agent step, for one component of an action."""
        return len(self.read)


@dataclass(frozen=True)
class OrnsteinUhlenbeck:
    """The autocorrelation exp(-t / correlation): noise that forgets at a constant rate."""

    correlation: DurationField = DurationField()
    """tau, after which the autocorrelation is 1/e."""

    def at(self, dt: DurationLike) -> CoherentNoise:
        """The noise at a cycle time: an autoregression with the factor exp(-dt / tau)."""
        return _sampled(Duration(dt), [float(Duration(dt) / self.correlation)])


@dataclass(frozen=True)
class Pink:
    """A spectrum like 1/f between two times: a sum of Ornstein-Uhlenbeck processes with times evenly spaced in log.

    Eberhard et al. (2023) draw 1/f noise of an episode's length for each episode; `slowest` is that length here.
    """

    slowest: DurationLike = "10s"
    """The longest time, best the length of an episode: below 1 / (2 pi slowest) hertz the spectrum is flat. The default
    suits episodes of some to some tens of seconds."""
    fastest: DurationLike = "10ms"
    """The shortest: above 1 / (2 pi fastest) hertz the noise is smooth as an Ornstein-Uhlenbeck process. The default
    is as short as the cycles of most simulated tasks; at longer ones the fast parts are white."""

    def __post_init__(self) -> None:
        slowest, fastest = Duration(self.slowest), Duration(self.fastest)
        if fastest >= slowest:
            raise InputError(f"fastest is {fastest}: it must be shorter than slowest, {slowest}.")
        object.__setattr__(self, "slowest", slowest)
        object.__setattr__(self, "fastest", fastest)

    def at(self, dt: DurationLike) -> CoherentNoise:
        """The noise at a cycle time; the parts have equal variances."""
        slowest_s, fastest_s = (float(Duration(each)) for each in (self.slowest, self.fastest))
        steps = ceil(log(slowest_s / fastest_s, PINK_FACTOR))
        times_s = np.geomspace(fastest_s, slowest_s, steps + 1)
        return _sampled(Duration(dt), (float(Duration(dt)) / times_s).tolist())


Exploration: TypeAlias = OrnsteinUhlenbeck | Pink
"""Noise that has no cycle time yet."""


Array = TypeVar("Array", jax.Array, NDArray[np.float32])
"""The noise of a compiled program, or of a loop that acts in NumPy."""
NoiseState: TypeAlias = tuple[Any, ...] | None
"""z, each of its numbers such an array of the actions' shape; None where nothing is coherent."""


def explore(
    coherent: CoherentNoise | None,
    state: NoiseState,
    normals: Array,
    begins: Any,  # noqa: ANN401 - an array
) -> tuple[Array, NoiseState]:
    """The noise of the next agent step, [..., |A|], and z after it; where nothing is coherent, the normals themselves.

    Normals are as many as `normals_per_step` says, [..., n |A|]; z before an episode's first step does not matter.
    """
    if coherent is None or state is None:
        return normals, None
    xp = normals.__array_namespace__()
    xi = xp.split(normals, coherent.size, axis=-1)
    filters = zip(coherent.carry, coherent.drive, state, xi, strict=True)
    state = tuple(xp.where(begins[..., None], new, carry * z + drive * new) for carry, drive, z, new in filters)
    # Number by number, since a matrix product may be rounded coarsely on GPUs.
    return sum(weight * z for weight, z in zip(coherent.read, state, strict=True)), state


def initial_noise_state(coherent: CoherentNoise | None, *shape: int, dtype: Any = None) -> NoiseState:  # noqa: ANN401
    return None if coherent is None else tuple(jnp.zeros(shape, dtype) for _ in range(coherent.size))


def normals_per_step(coherent: CoherentNoise | None, action_size: int) -> int:
    return action_size if coherent is None else action_size * coherent.size


def check_cycle(coherent: CoherentNoise | None, dt: Duration) -> None:
    if coherent is not None and coherent.dt != dt:
        raise InputError(f"exploration is made for a cycle time of {coherent.dt}: here it is {dt}; call .at('{dt}').")


def _sampled(dt: Duration, ratios: list[float]) -> CoherentNoise:
    """Leaky integrators with these h = dt / tau, side by side and with equal variances."""
    carry = tuple(exp(-h) for h in ratios)
    drive = tuple(sqrt(-expm1(-2 * h)) for h in ratios)
    return CoherentNoise(dt, carry, drive, (1 / sqrt(len(ratios)),) * len(ratios))
