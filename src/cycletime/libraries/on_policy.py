"""PPO in other libraries' words: those that give the mini-batch a size, and those that count mini-batches; and A2C.

All rules with a name keep b/m, so a library that counts keeps its count at every cycle time and changes only the
rollout's length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, gcd, inf, lcm
from typing import Any, TypeAlias

from cycletime.errors import InputError
from cycletime.libraries.parameters import ParamName, RateTable, SettingsReader
from cycletime.rules.hyperparameters import Hyperparameters
from cycletime.rules.laws import nearest_whole
from cycletime.rules.ppo import A2C, PPO
from cycletime.rules.quantities import format_seconds

KEEPS_THE_COUNT = 0.05
"""A tuned number of mini-batches is worth a change of the batch by this fraction."""
OnPolicy: TypeAlias = PPO | A2C


@dataclass(frozen=True)
class Sized:
    """A rollout, per environment or over all, and a mini-batch of a given size."""

    size: ParamName
    minibatch: ParamName | None
    """m; None if the whole batch is one gradient step."""
    rates: RateTable
    discount: ParamName = ParamName("gamma", 0.99)
    trace_decay: ParamName = ParamName("gae_lambda", 0.95)
    size_is_per_env: bool = False
    """Whether those of one environment are meant, or of all together, which is b."""
    n_envs: ParamName | None = None
    collects_whole_vector_steps: bool = True
    """Whether b is a multiple of the environments whatever one asks for."""
    smallest_minibatch: int = 1
    """Below this the library refuses."""
    only_whole_minibatches: bool = False
    takes_more_than_the_batch: bool = False
    """Whether an m greater than b is the whole batch, and no error."""
    buffer: ParamName | None = None
    """A further setting that must hold the whole batch, or the library loses the rest silently."""
    tail: str = ""
    """What happens to the samples that fill no mini-batch, with {library}, {left}, {m} and {instead} filled in."""

    def write_sizes(self, values: OnPolicy, n_envs: int) -> tuple[dict[str, Any], list[str]]:
        """The rollout and the mini-batch in the library's words, and what ``{library}`` does with them."""
        minibatch = max(values.minibatch, self.smallest_minibatch)
        unit = n_envs if self.collects_whole_vector_steps else 1
        if self.only_whole_minibatches:
            batch, minibatch = _nearest_divided(values.batch, minibatch, unit)
        else:
            shortest = ceil(Fraction(self.smallest_minibatch, unit))
            batch = unit * nearest_whole(Fraction(values.batch, unit), at_least=shortest)
            minibatch = min(minibatch, batch)
        sizes = {self.size.name: batch // n_envs if self.size_is_per_env else batch}
        if self.minibatch:
            sizes[self.minibatch.name] = minibatch
        if self.buffer:
            sizes[self.buffer.name] = batch
        return sizes, [self._tail(batch, minibatch, unit, n_envs)] if self.tail and batch % minibatch else []

    def _tail(self, batch: int, minibatch: int, unit: int, n_envs: int) -> str:
        both = lcm(minibatch, unit)
        near = both * nearest_whole(Fraction(batch, both))
        size = near // n_envs if self.size_is_per_env else near
        instead = f"; {self.size.name} {size} would divide" if abs(near / batch - 1) <= KEEPS_THE_COUNT else ""
        return self.tail.format(library="{library}", left=batch % minibatch, m=minibatch, instead=instead)

    def read_sizes(self, given: SettingsReader, n_envs: int) -> dict[str, int]:
        batch = given.count(self.size) * (n_envs if self.size_is_per_env else 1)
        if self.buffer:
            given.optional_number(self.buffer.name)
        if self.minibatch is None:
            return {"batch": batch}
        minibatch = given.count(self.minibatch)
        if minibatch > batch and self.takes_more_than_the_batch:
            given.notes.append(
                f"{self.minibatch.name} {minibatch} is more than the batch, {batch}: {given.library} then takes the "
                "whole batch at once."
            )
            minibatch = batch
        return {"batch": batch, "minibatch": minibatch}


@dataclass(frozen=True)
class Counted:
    """A rollout per environment and a number of mini-batches."""

    rollout: ParamName
    """The agent steps of one environment."""
    count: ParamName
    rates: RateTable
    discount: ParamName = ParamName("gamma", 0.99)
    trace_decay: ParamName = ParamName("gae_lambda", 0.95)
    n_envs: ParamName | None = None
    only_whole_minibatches: bool = False
    """Whether the library refuses a batch that the count does not divide."""
    tail: str = ""
    """What happens otherwise, with {library}, {slices}, {m}, {left} and {count} filled in."""
    remark: str = ""
    """What must be set besides, with {rollout} filled in."""

    def write_sizes(self, values: OnPolicy, n_envs: int) -> tuple[dict[str, Any], list[str]]:
        count = nearest_whole(values.tuned_ratio)
        if self.only_whole_minibatches:
            batch, count = _nearest_divided(values.batch, count, n_envs, enough=KEEPS_THE_COUNT)
            rollout = batch // n_envs
        else:
            shortest = ceil(Fraction(count, n_envs))  # a mini-batch has at least one sample
            rollout = nearest_whole(Fraction(values.batch, n_envs), at_least=shortest)
        m, left = divmod(rollout * n_envs, count)
        slices = ceil(rollout * n_envs / m)
        tail = self.tail if left else ""
        facts = {"library": "{library}", "slices": slices, "m": m, "left": left, "count": count, "rollout": rollout}
        notes = [note.format(**facts) for note in (tail, self.remark) if note]
        return {self.rollout.name: rollout, self.count.name: count}, notes

    def read_sizes(self, given: SettingsReader, n_envs: int) -> dict[str, int]:
        batch, count = given.count(self.rollout) * n_envs, given.count(self.count)
        if count > batch:
            raise InputError(f"{given.library}'s {self.count.name} is {count}: it must be at most the batch, {batch}.")
        return {"batch": batch, "minibatch": batch // count, "minibatch_count": count}


@dataclass(frozen=True)
class Brax:
    """Mini-batches of whole trajectories: b = batch_size * num_minibatches * unroll_length, m = b / num_minibatches."""

    rates: RateTable
    discount: ParamName = ParamName("discounting", 0.9)
    trace_decay: ParamName = ParamName("gae_lambda", 0.95)
    n_envs: ParamName = ParamName("num_envs", 1)
    unroll: ParamName = ParamName("unroll_length", 10)
    trajectories: ParamName = ParamName("batch_size", 32)
    count: ParamName = ParamName("num_minibatches", 16)

    def write_sizes(self, values: OnPolicy, n_envs: int) -> tuple[dict[str, Any], list[str]]:
        count = nearest_whole(values.tuned_ratio)
        # Those of values that came from here, where they fit; else the fewest, for the longest unrolls.
        said = values.library_source.layout.get(self.trajectories.name, 0) if values.library_source else 0
        trajectories = said if said and said * count % n_envs == 0 else n_envs // gcd(n_envs, count)
        # From b and not from m, whose rounding would count {count} times.
        unroll = nearest_whole(Fraction(values.batch, trajectories * count))
        notes = [
            f"{{library}} cuts its advantages at the end of each unroll: after {unroll} agent steps, "
            f"{format_seconds(unroll * float(values.dt))}."
        ]
        return {self.unroll.name: unroll, self.trajectories.name: trajectories, self.count.name: count}, notes

    def read_sizes(self, given: SettingsReader, n_envs: int) -> dict[str, int]:
        count, trajectories = given.count(self.count), given.count(self.trajectories)
        if self.trajectories.name in given.values and (misfit := self.explain_misfit(trajectories, count, n_envs)):
            raise InputError(misfit)
        given.layout[self.trajectories.name] = trajectories
        minibatch = trajectories * given.count(self.unroll)
        return {"batch": minibatch * count, "minibatch": minibatch, "minibatch_count": count}

    def explain_misfit(self, trajectories: int, count: int, n_envs: int) -> str:
        """Why brax stops at the start, and what would fit; empty where it starts."""
        fewest, name = n_envs // gcd(n_envs, count), self.trajectories.name
        says = f"{name} {trajectories} x {self.count.name} {count} is no multiple of {self.n_envs.name} {n_envs}"
        fits = fewest * nearest_whole(Fraction(trajectories, fewest))
        return f"{says}: brax stops at the start; {name} {fits} would fit." if trajectories % fewest else ""


@dataclass(frozen=True)
class Puffer:
    """A horizon per agent, and a mini-batch of whole horizons."""

    horizon: ParamName
    minibatch: ParamName
    n_envs: ParamName
    rates: RateTable
    discount: ParamName = ParamName("train.gamma", 0.995)
    trace_decay: ParamName = ParamName("train.gae_lambda", 0.90)

    def write_sizes(self, values: OnPolicy, n_envs: int) -> tuple[dict[str, Any], list[str]]:
        horizon = nearest_whole(Fraction(values.batch, n_envs))
        horizons = min(n_envs, nearest_whole(Fraction(values.minibatch, horizon)))
        notes = ["{library} draws its mini-batches by priority: some samples come twice in an epoch and some never."]
        return {self.horizon.name: horizon, self.minibatch.name: horizon * horizons}, notes

    def read_sizes(self, given: SettingsReader, n_envs: int) -> dict[str, int]:
        return {"batch": given.count(self.horizon) * n_envs, "minibatch": given.count(self.minibatch)}


OnPolicyTable: TypeAlias = Sized | Counted | Brax | Puffer


def _nearest_divided(batch: int, divisor: int, unit: int, enough: float = 0.0) -> tuple[int, int]:
    """A batch in whole units, and a divisor of it, with the least sum of relative changes from what was asked.

    The divisor, m or the number of mini-batches, stays where the batch then changes by ``enough`` at most.
    """
    best, least = (batch, divisor), inf
    for away in range(divisor):
        if away / divisor >= least or (away == 1 and least <= enough):
            break
        for near in (divisor - away, divisor + away):
            both = lcm(near, unit)
            multiple = both * max(1, -((both - 2 * batch) // (2 * both)))  # halves down, without a Fraction's cost
            change = abs(multiple / batch - 1) + away / divisor
            if change < least:
                best, least = (multiple, near), change
    return best


FEW_STEPS = 5
"""A rollout or a horizon with fewer steps hardly contains a reward."""
MANY_ENVIRONMENTS = ("rsl-rl", "isaac-lab", "skrl", "rl-games")
ONE_ENVIRONMENT = "The number of environments is not said: the batch is that of one. Give --num-envs."


def notes_on_environments(
    words: object, before: Hyperparameters, carried: Hyperparameters, old: int, number: int
) -> tuple[str, ...]:
    """Say how rollout and batch change from `old` to `number` environments, and what else could be chosen."""
    if number == old or not isinstance(before, PPO | A2C) or not isinstance(carried, PPO | A2C):
        return ()
    assert isinstance(words, OnPolicyTable), "an algorithm has the words of its kind"
    written, source = words.write_sizes(carried, number)[0], carried.library_source
    batch = words.read_sizes(SettingsReader("", {**written}), number)["batch"]
    updates = "" if abs(batch / carried.batch - 1) <= KEEPS_THE_COUNT else f"{carried.batch / batch:.3g} times "
    few = f"not recommended, since advantages from fewer than {FEW_STEPS} steps are almost the value's guess"
    lasted, lasts = before.batch * float(before.dt) / old, batch * float(carried.dt) / number
    sizes = {name: int(size) for name, size in carried.stated().items() if name in ("batch", "minibatch")}
    new: dict[str, Any] = {name: nearest_whole(Fraction(size * number, old)) for name, size in sizes.items()}
    said = source.layout if source else {}
    layout = {name: nearest_whole(Fraction(size * number, old)) for name, size in said.items()}
    follows = replace(carried, **new, library_source=source and replace(source, layout=layout))
    other = [f"{name} {size}" for name, size in words.write_sizes(follows, number)[0].items() if size != written[name]]
    return (
        f"{old} environments become {number} with {batch} samples in a batch, and so {updates}as many updates per "
        f"second of experience: {few if batch < FEW_STEPS * number else 'recommended'}. A rollout lasts "
        f"{format_seconds(lasts)} in each, and did {format_seconds(lasted)}.",
        f"For rollouts as long as before, and a batch that follows the environments, set {', '.join(other)}: "
        f"{' and '.join(f'a {name} of {size}' for name, size in new.items())} samples, and {old / number:.3g} times as "
        "many updates per second of experience.",
    )
