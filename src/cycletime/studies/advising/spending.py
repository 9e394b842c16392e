"""The budget of advice: what runs are expected to take, from a short try and then from what they took."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, isfinite, log10
from typing import TypeAlias

from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError
from cycletime.runs.worlds import ClosedFormWorld
from cycletime.studies.advising.question import Question
from cycletime.studies.plan.estimate import Costs, estimate
from cycletime.studies.plan.plan import Plan

Run: TypeAlias = tuple[Duration, int]
"""A candidate and a seed."""

FIRST_SHARE = 0.25
"""The part of the budget that the first look may take where the length of runs follows from it."""
LEAST_LEARNINGS = 10
"""Of a run: with fewer it says nothing about learning."""


@dataclass(frozen=True)
class Budget:
    """What may be spent; None where that does not matter."""

    wall_s: float | None = None
    """On the clock, by one call of the command."""
    simulated_h: float | None = None
    """Of the environment's time, by all runs of the folder together."""

    def __str__(self) -> str:
        """In words."""
        minutes = [] if self.wall_s is None else [f"{self.wall_s / 60:,.3g} min"]
        return " and ".join(
            minutes + ([] if self.simulated_h is None else [f"{self.simulated_h:,.3g} simulated hours"])
        )

    def __post_init__(self) -> None:
        """Refuse no budget at all, and one that is no number."""
        if self.wall_s is None and self.simulated_h is None:
            raise InputError("There is no budget: give --minutes or --simulated-hours.")
        for name, amount in (("--minutes", self.wall_s), ("--simulated-hours", self.simulated_h)):
            if amount is not None and not (isfinite(amount) and amount > 0):
                told = amount / 60 if name == "--minutes" else amount
                raise InputError(f"{name} is {told:g}: it must be a positive number.")


@dataclass
class Pace:
    """How long runs take here."""

    measure: Callable[[], tuple[Costs, float]]
    """What runs cost, and how long a process takes to start, from a try; asked once, and only where it matters."""
    workers: int
    env_dt: Duration
    """The world's time step, which an environment may not say before it is made."""
    factor: float = 1.0
    """How much longer they took than the try said."""

    @cached_property
    def _measured(self) -> tuple[Costs, float]:
        return self.measure()

    def seconds(self, question: Question, runs: Collection[Run]) -> float:
        """On the clock, for some runs."""
        if not runs:
            return 0.0
        world = question.world
        timed = world if isinstance(world, ClosedFormWorld) else replace(world, env_dt=self.env_dt)
        dts, seeds = {dt for dt, _ in runs}, max(seed for _, seed in runs) + 1
        plan = Plan.of(replace(question, world=timed).study(dts, seeds))
        planned = [each for each in plan.runs if (plan.cells[each.cell].dt, each.seed) in runs]
        return self.factor * estimate(plan, planned, *self._measured, self.workers).wall_s

    def learn(self, expected_s: float, took_s: float) -> None:
        """Take into account what runs took."""
        if expected_s > 0 and took_s > 0:
            self.factor *= took_s / expected_s


@dataclass(frozen=True)
class Spending:
    """A budget while it is spent."""

    budget: Budget
    pace: Pace
    clock: Callable[[], float]
    began_s: float
    """When the command began, by the clock."""

    def wall_s(self) -> float:
        """Since the command began."""
        return self.clock() - self.began_s

    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.budget.wall_s is not None and self.wall_s() >= self.budget.wall_s

    def has_room(self, wall_s: float, spent_h: float, simulated_h: float) -> bool:
        """Whether runs that are expected to take so long fit in, after those that were simulated before."""
        most_s, most_h = self.budget.wall_s, self.budget.simulated_h
        in_time = most_s is None or self.wall_s() + wall_s <= most_s
        return in_time and (most_h is None or spent_h + simulated_h <= most_h * (1 + 1e-9))


def simulated_h(runs: int, question: Question, env_dt: Duration) -> float:
    """Hours of the environment's time of so many runs."""
    return float(runs * question.env_steps * env_dt.exact_s / 3600)


def affordable_env_steps(question: Question, dts: Sequence[Duration], spending: Spending) -> int:
    """How long runs may be for the first look to take its share of what is left of the budget, to two digits.

    Args:
        question: Of which the length of runs is not known yet.
        dts: The candidates.
        spending: What is left.

    Raises:
        InputError: if that is too short to learn anything.
    """
    budget, pace = spending.budget, spending.pace
    first_look = [(dt, seed) for dt in dts for seed in range(question.first_seeds)]
    most = []
    if budget.simulated_h is not None:
        one_h = simulated_h(len(first_look), replace(question, env_steps=1), pace.env_dt)
        most.append(FIRST_SHARE * budget.simulated_h / one_h)
    if budget.wall_s is not None:
        # Expected times are linear in the length of runs.
        few_s, many_s = (pace.seconds(replace(question, env_steps=steps), first_look) for steps in (10**6, 2 * 10**6))
        share_s = FIRST_SHARE * (budget.wall_s - spending.wall_s())
        most.append((share_s - (2 * few_s - many_s)) / max(many_s - few_s, 1e-9) * 10**6)
    env_steps, least = _two_digits(min(most)), _least_env_steps(question, dts, pace.env_dt)
    if env_steps < least:
        raise InputError(
            f"The budget has room for runs of {env_steps:,} environment steps with {len(dts)} candidates, and learning "
            f"needs at least {least:,}: give a larger budget, fewer --dts, or --env-steps yourself."
        )
    return env_steps


def _least_env_steps(question: Question, dts: Sequence[Duration], env_dt: Duration) -> int:
    """So many that the agent learns a few times at every cycle time, after its random start."""
    steps = {dt: agent.random_steps + LEAST_LEARNINGS * agent.period for dt, agent in question.agents(dts).items()}
    return max(count * cycle_steps(dt, env_dt) for dt, count in steps.items())


def _two_digits(number: float) -> int:
    if number < 1:
        return 0
    unit: int = 10 ** max(0, floor(log10(number)) - 1)
    return floor(number / unit) * unit
