"""A trained policy in NumPy alone: this file and the policy.npz beside it are all that a robot's computer needs.

Whatever is not finite is refused with a ValueError, so that no motor is ever sent what comes of it.

from policy import NumpyPolicy

policy = NumpyPolicy.load("policy.npz")
policy.check_rate(period_s)  # refuses a loop at another rate
action = policy.act(observation)  # every policy.dt_s seconds
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
"""Of the file; a newer file than this program is refused."""
MOST_BYTES = 2**30
"""Of its arrays: a file that declares more is refused before it is read."""
MOST_WEIGHT = 1e6
"""No training comes near it: larger weights have diverged, or a bit of them was flipped."""
LOG_STD_RANGE = (-20.0, 2.0)
"""Where log sigma is clipped if it comes from the network."""
RATE_TOLERANCE = 0.05
"""Of a loop's period. Rates that people mix up lie 10 % apart and more (50 and 60 Hz, 100 and 125 Hz, 18 and 20 ms);
the nearest whole number of Hz is within it from 10 Hz on, and so is what timers add to a cycle of a few ms."""
_OVERFLOW = "the observation is far from those that the policy was trained on"


_ACTIVATIONS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "tanh": np.tanh,
    "relu": lambda numbers: np.asarray(np.maximum(numbers, 0)),
}


class UnsafePolicyError(ValueError):
    """A policy that fits together, and that nothing may act with."""


class NumpyNetwork:
    """A normal policy's network, without checks of what goes in and what comes out: who acts with it makes them."""

    def __init__(
        self,
        layers: Sequence[tuple[Any, Any]],
        activation: str,
        log_std: Any,  # noqa: ANN401 - an array, or nothing where the network gives it
        *,
        squashed: bool,
    ) -> None:
        """Take what `PolicyNetwork` has, as arrays of NumPy or of whatever becomes such."""
        self.layers = [(np.asarray(weight), np.asarray(bias)) for weight, bias in layers]
        self.squashed, self._activation = squashed, _ACTIVATIONS[activation]
        self._size = round(self.layers[-1][1].size / 2)
        with np.errstate(over="ignore"):
            self._std = None if log_std is None else np.exp(np.asarray(log_std))

    def mean_and_std(self, numbers: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mu and sigma of observations [..., n], before squashing."""
        for weight, bias in self.layers[:-1]:
            numbers = self._activation(numbers @ weight + bias)
        weight, bias = self.layers[-1]
        numbers = numbers @ weight + bias
        if self._std is not None:
            return numbers, self._std
        mean, log_std = numbers[..., : self._size], numbers[..., self._size :]
        return mean, np.exp(np.clip(log_std, *LOG_STD_RANGE))

    def act(self, observation: NDArray[np.float32], noise: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the agent would do, in its own range of about [-1, 1]; without noise, the policy's mean."""
        mean, std = self.mean_and_std(observation)
        action = mean + std * noise
        return np.tanh(action) if self.squashed else action


class NumpyPolicy:
    """A normal policy whose mean is a network of dense layers."""

    dt_s: float
    """The action-cycle time that it was trained at, in seconds."""
    observation_size: int
    action_size: int
    contract: dict[str, Any] | None
    """What else its loop must keep: `timing`, the delays and histories that it was trained with, in steps and seconds;
    `observation`, the names of an observation's numbers in order; `unknown_wrappers`, those around the environment
    whose effect is not known. None in files of earlier versions."""
    description: dict[str, Any]
    """What else is known of it: the world, the run's identity and how many environment steps it was trained for."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], description: Mapping[str, Any]) -> None:
        if description.get("format") != FORMAT:
            raise ValueError(f"The policy has the format {description.get('format')!r}: this program reads {FORMAT}.")
        try:
            self.description = dict(description)
            dt_s = description["dt_s"]
            self.observation_size = int(description["observation_size"])
            self.action_size = int(description["action_size"])
            self._dtype = np.dtype(description["action_dtype"])
            wrong = [name for name, array in arrays.items() if array.dtype.kind != "f"]
            if wrong or self._dtype.kind != "f":
                raise ValueError(f"the type of {wrong[0] if wrong else 'its actions'}")
            count = sum(name.endswith(".weight") for name in arrays)
            self._layers = [(arrays[f"layers.{i}.weight"], arrays[f"layers.{i}.bias"]) for i in range(count)]
            self._log_std = arrays.get("log_std")
            squashed = bool(description["squashed"])
            self._network = NumpyNetwork(self._layers, description["activation"], self._log_std, squashed=squashed)
            self._centre, self._half, self._low, self._high = (
                arrays[f"action.{name}"] for name in ("centre", "half", "low", "high")
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"The policy is incomplete: {error} is missing or wrong.") from None
        self._refuse_wrong_shapes()
        _refuse_not_finite(arrays)
        if isinstance(dt_s, bool) or not isinstance(dt_s, int | float) or not 0 < dt_s < math.inf:
            raise UnsafePolicyError(f"The policy's dt_s is {dt_s!r}: it must be a time in seconds, such as 0.016.")
        self.dt_s = float(dt_s)
        self.contract = description.get("contract")
        _refuse_wrong_contract(self.contract, self.observation_size)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> NumpyPolicy:
        """Read a policy.npz; a ValueError where it is none."""
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as named:
                if sum(each.file_size for each in named.zip.infolist()) > MOST_BYTES:
                    raise ValueError(f"it declares more than {MOST_BYTES:,} bytes")
                arrays = {name: named[name] for name in named.files}
            description = json.loads(str(arrays.pop("description")))
        except FileNotFoundError:
            raise
        except Exception as error:  # zipfile, zlib and NumPy have a dozen of them for what is damaged
            raise ValueError(f"{path} is not an exported policy: {error}.") from error
        return cls(arrays, description)

    def check_rate(self, period_s: float) -> None:
        """Refuse a loop, by a ValueError, whose period differs from dt_s by more than `RATE_TOLERANCE`."""
        if not (period_s > 0 and abs(period_s / self.dt_s - 1) <= RATE_TOLERANCE):
            raise ValueError(
                f"The loop's period is {1e3 * period_s:.4g} ms, and the policy was trained at {1e3 * self.dt_s:.4g} ms "
                f"({1 / self.dt_s:.4g} Hz): run the loop at that rate, or train a policy at the loop's."
            )

    def rate_check(self, cycles: int = 20) -> RateCheck:
        """A check of a running loop's first cycles, in which no action is sent."""
        return RateCheck(self, cycles)

    def act(self, observation: Any, rng: np.random.Generator | None = None) -> NDArray[Any]:  # noqa: ANN401
        """What the environment is to be given: the policy's mean, or with a generator an action drawn from it.

        Args:
            observation: Numbers of the shape [observation_size], or [batch, observation_size].
            rng: Such as ``numpy.random.default_rng()``.

        Raises:
            ValueError: if the observation has another shape, or if it or the action is not finite.
        """
        action, std = self.mean_and_std(observation)
        with np.errstate(over="ignore", invalid="ignore"):
            if rng is not None:
                action = action + std * rng.standard_normal(action.shape, np.float32)
            # Before the bounds, which would make a number of an infinity.
            _refuse_infinite("action", action, _OVERFLOW)
            if self._network.squashed:
                action = np.tanh(action)
            wanted = np.clip(self._centre + self._half * action, self._low, self._high)
            reached: NDArray[Any] = wanted.astype(self._dtype)
        _refuse_infinite("action", reached, _OVERFLOW)
        return reached

    def mean_and_std(self, observation: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:  # noqa: ANN401
        """Mu and sigma, before squashing and before the mapping to the environment's actions."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean, std = self._network.mean_and_std(self._read(observation))
            return mean, np.broadcast_to(std, mean.shape)

    def _read(self, observation: Any) -> NDArray[np.float32]:  # noqa: ANN401
        try:
            numbers = np.asarray(observation, np.float32)
        except (TypeError, ValueError):
            raise ValueError(f"The observation {str(observation)[:80]!r} is not an array of numbers.") from None
        if numbers.ndim not in (1, 2) or numbers.shape[-1] != self.observation_size:
            size = self.observation_size
            raise ValueError(f"The observation has the shape {numbers.shape}: it must be ({size},) or (batch, {size}).")
        _refuse_infinite("observation", numbers, "a sensor or a computation before it has failed")
        return numbers

    def _refuse_wrong_shapes(self) -> None:
        outputs = self.action_size * (1 if self._log_std is not None else 2)
        sizes = [self.observation_size, *(bias.size for _, bias in self._layers[:-1]), outputs]
        shapes = [(weight.shape, bias.shape) for weight, bias in self._layers]
        fits = shapes == [((m, n), (n,)) for m, n in pairwise(sizes)]
        of_actions = [self._centre, self._half, self._low, self._high]
        if self._log_std is not None:
            of_actions.append(self._log_std)
        if not fits or any(each.shape != (self.action_size,) for each in of_actions):
            raise ValueError(
                f"The policy's arrays do not fit {self.observation_size} observed numbers and actions of "
                f"{self.action_size}: export it anew."
            )


class RateCheck:
    """Measures the first cycles of a loop, and refuses another rate than the policy's before the first action.

    Their mean counts, so that jitter does no harm; one that is late by many cycles makes it another rate. Later cycles
    are not measured: what to do when one is late is for the loop to decide.

    Example:
        >>> check = policy.rate_check()
        >>> while True:
        ...     observation = read_sensors()
        ...     if check.passed():
        ...         send(policy.act(observation))
        ...     wait_for_the_next_cycle()
    """

    def __init__(self, policy: NumpyPolicy, cycles: int) -> None:
        if cycles < 1:
            raise ValueError(f"cycles is {cycles}: at least 1 is needed to measure a period.")
        self._policy, self._cycles = policy, cycles
        self._times_s: list[float] = []

    def passed(self, now_s: float | None = None) -> bool:
        """Whether actions may be sent; to be called once per cycle, with the loop's own time where it has one.

        Raises:
            ValueError: if the loop runs at another rate, or its time does not pass.
        """
        if len(self._times_s) > self._cycles:
            return True
        self._times_s.append(time.monotonic() if now_s is None else now_s)
        if len(self._times_s) <= self._cycles:
            return False
        try:
            self._policy.check_rate((self._times_s[-1] - self._times_s[0]) / self._cycles)
        except ValueError:
            self._times_s.clear()
            raise
        return True


def _refuse_wrong_contract(contract: Any, observation_size: int) -> None:  # noqa: ANN401 - whatever a file holds
    if contract is None:
        return
    try:
        names = contract["observation"]
        fits = len(names) == observation_size and all(isinstance(each, str) for each in names)
        for each in contract["timing"]:
            fits &= isinstance(each["kind"], str) and len(each["steps"]) == len(each["seconds"]) == 2
            fits &= all(0 <= number < math.inf for number in (*each["steps"], *each["seconds"], each["step_s"]))
        fits &= all(isinstance(each, str) for each in contract["unknown_wrappers"])
    except (KeyError, TypeError):
        fits = False
    if not fits:
        raise ValueError(f"The policy's contract does not fit {observation_size} observed numbers: export it anew.")


def _refuse_not_finite(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse weights that are no numbers or huge; an action may have no bound, but none that is no number."""
    for name, array in arrays.items():
        of_bounds = name in ("action.low", "action.high")
        if not (~np.isnan(array) if of_bounds else np.isfinite(array)).all():
            raise UnsafePolicyError(f"The policy's {name} is not finite: its training has diverged, or it is damaged.")
        if not name.startswith("action.") and np.abs(array).max(initial=0) > MOST_WEIGHT:
            raise UnsafePolicyError(
                f"The policy's {name} has the number {np.abs(array).max():.2g}, and {MOST_WEIGHT:,.0f} is more than "
                "any training reaches: it has diverged, or it is damaged."
            )


def _refuse_infinite(name: str, numbers: NDArray[Any], why: str) -> None:
    """Refuse what is not finite in float32, with the place of the first such number."""
    finite = np.isfinite(numbers)
    if not finite.all():
        first = tuple(np.argwhere(~finite)[0].tolist())
        place = ", ".join(map(str, first))
        raise ValueError(f"{name}[{place}] is {numbers[first]}, which is not finite: {why}.")
