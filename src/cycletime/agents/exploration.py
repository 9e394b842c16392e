"""Exploration noise that is coherent in time, stated in seconds so that every cycle time samples the same process.

Each kind is a stationary Gaussian process in continuous time, normal with variance 1 at every instant: one or several
chains of equal leaky integrators, with white noise into the first and each the input of the next. `at` samples it
exactly at a cycle time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, factorial, lgamma, log, sqrt
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents.checks import check_counts
from cycletime.duration import Duration, DurationField, DurationLike
from cycletime.errors import InputError

Matrix: TypeAlias = tuple[tuple[float, ...], ...]

MOST_ORDER = 5
"""Still smoother noise has no use that we know, and the factorisation below loses digits as the order grows."""
PINK_FACTOR = 4.0
"""From one of pink noise's times to the next, at most: it makes ripples of 0.3 % in the spectrum, 10 would of 6 %."""


@dataclass(frozen=True)
class CoherentNoise:
    """A process at one cycle time, as a linear filter of standard normals xi; each component of an action has its own.

    z = L xi at an episode's first agent step, then z <- F z + G xi; the noise is c.z.
    """

    dt: Duration
    """The cycle time that it is for."""
    start: Matrix
    """L, which makes the stationary distribution."""
    carry: Matrix
    """F, what a cycle leaves of z."""
    drive: Matrix
    """G, what it adds."""
    read: tuple[float, ...]
    """c."""

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
        return _sampled(Duration(dt), 1, [float(Duration(dt) / self.correlation)])


@dataclass(frozen=True)
class AutoRegressive:
    """Smoother noise: p equal poles, as in the autoregressive policies of Korenkevych et al. (2019), in seconds.

    They are those of a process in continuous time, sampled exactly, so that the autocorrelation in seconds does not
    depend on the cycle time; it is Matern's of smoothness p - 1/2.
    """

    order: int
    """p, from 1 (Ornstein-Uhlenbeck) to 5; the process has p - 1 derivatives."""
    correlation: DurationField = DurationField()
    """tau of each pole: alpha = exp(-dt / tau)."""

    def __post_init__(self) -> None:
        check_counts(self, "order")
        if self.order > MOST_ORDER:
            raise InputError(f"order is {self.order}: it must be at most {MOST_ORDER}.")

    def at(self, dt: DurationLike) -> CoherentNoise:
        return _sampled(Duration(dt), self.order, [float(Duration(dt) / self.correlation)])


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
        return _sampled(Duration(dt), 1, (float(Duration(dt)) / times_s).tolist())


Exploration: TypeAlias = OrnsteinUhlenbeck | AutoRegressive | Pink
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

    Args:
        coherent: The kind of noise.
        state: z before the step; it does not matter where an episode begins.
        normals: As many as `normals_per_step` says, [..., n |A|].
        begins: Whether the step is an episode's first, [...].
    """
    if coherent is None or state is None:
        return normals, None
    xp = normals.__array_namespace__()
    xi = xp.split(normals, coherent.size, axis=-1)
    pairs = zip(
        _matrix_times(coherent.carry, state),
        _matrix_times(coherent.drive, xi),
        _matrix_times(coherent.start, xi),
        strict=True,
    )
    state = tuple(xp.where(begins[..., None], begun, left + added) for left, added, begun in pairs)
    return _matrix_times((coherent.read,), state)[0], state


def _matrix_times(matrix: Matrix, vector: Sequence[Any]) -> list[Any]:
    """A matrix of numbers times a vector of arrays, number by number.

    A matrix product may be rounded coarsely on GPUs, which would move poles that are near 1, and JAX 0.10.2 on CPUs
    gave wrong numbers where a large state was summed over an axis inside a scan.
    """
    nothing = vector[0].dtype.type(0)
    return [sum((w * each for w, each in zip(row, vector, strict=True) if w), nothing) for row in matrix]


def initial_noise_state(coherent: CoherentNoise | None, *shape: int, dtype: Any = None) -> NoiseState:  # noqa: ANN401
    """The state before the first step of all, for actions of this shape."""
    return None if coherent is None else tuple(jnp.zeros(shape, dtype) for _ in range(coherent.size))


def normals_per_step(coherent: CoherentNoise | None, action_size: int) -> int:
    return action_size if coherent is None else action_size * coherent.size


def check_exploration(agent: object) -> None:
    value = getattr(agent, "exploration")  # noqa: B009 - agents share the name, not a base class
    if isinstance(value, Exploration):
        raise InputError(f"exploration is {value}: call .at(dt) with the cycle time, or make the agent with agent_for.")
    if value is not None and not isinstance(value, CoherentNoise):
        raise InputError(f"exploration is {value!r}: give noise such as OrnsteinUhlenbeck('100ms').at(dt), or None.")


def check_cycle(coherent: CoherentNoise | None, dt: Duration) -> None:
    if coherent is not None and coherent.dt != dt:
        raise InputError(
            f"exploration is made for a cycle time of {coherent.dt}: here it is {dt}, so call .at('{dt}')."
        )


def _sampled(dt: Duration, order: int, ratios: list[float]) -> CoherentNoise:
    """Chains of leaky integrators with these h = dt / tau, side by side and with equal variances."""
    chains = [_chain(order, h) for h in ratios]
    weight = 1 / sqrt(len(ratios))
    read = [weight * float(place == order - 1) for _ in ratios for place in range(order)]
    start, carry, drive = (_side_by_side(blocks) for blocks in zip(*chains, strict=True))
    return CoherentNoise(dt, start, carry, drive, tuple(read))


def _chain(order: int, h: float) -> tuple[NDArray[np.float64], ...]:
    """L, F and G of a chain whose last integrator has variance 1, for h = dt / tau.

    F is lower triangular with exp(-h) on the diagonal, so that rounding cannot move its equal poles, as it would in
    companion form. What white noise adds within a cycle is the integral over u < h of e e^T, e_i = exp(-u) u^i / i!.
    """
    places = range(order)
    carry = [[exp(-h) * h ** (i - j) / factorial(i - j) if i >= j else 0.0 for j in places] for i in places]
    strength = 2 ** (2 * order - 1) * factorial(order - 1) ** 2 / factorial(2 * order - 2)
    stationary = np.array(
        [[strength * factorial(i + j) / 2 ** (i + j + 1) / factorial(i) / factorial(j) for j in places] for i in places]
    )
    added = stationary * [[_poisson_tail(i + j, 2 * h) for j in places] for i in places]
    return np.linalg.cholesky(stationary), np.array(carry), np.linalg.cholesky(added)


def _poisson_tail(n: int, x: float) -> float:
    """The chance of more than n where x are expected: 1 - exp(-x) (1 + x + ... + x^n / n!), with all its digits."""
    if x > 50:
        return 1 - sum(exp(k * log(x) - x - lgamma(k + 1)) for k in range(n + 1))
    return sum(exp(k * log(x) - x - lgamma(k + 1)) for k in range(n + 1, n + 201))


def _side_by_side(blocks: tuple[NDArray[np.float64], ...]) -> Matrix:
    order = len(blocks[0])
    whole = np.zeros((len(blocks), order, len(blocks), order))
    for place, block in enumerate(blocks):
        whole[place, :, place] = block
    return tuple(map(tuple, whole.reshape(len(blocks) * order, -1).tolist()))
