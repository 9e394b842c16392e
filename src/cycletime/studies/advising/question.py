"""What advice is asked for: where, with which tuned values, and which cycle times are candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import Any

from cycletime.agents import Agent
from cycletime.agents.checks import check_counts
from cycletime.duration import Duration, cycle_steps
from cycletime.engines.registry import AUTO
from cycletime.errors import InputError, unknown
from cycletime.runs.carried import DEFAULT_RULES
from cycletime.runs.result import MEASURES
from cycletime.runs.spec import AGENTS, refuse_longer_than
from cycletime.runs.worlds import ClosedFormWorld, World
from cycletime.statistics import Looks
from cycletime.statistics.means import percent
from cycletime.statistics.sequential import FIRST_RUNS
from cycletime.studies.spec.study import Cell, Study, Tuned

FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
"""Of the present cycle time: the candidates where none are named."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked."""

    world: World
    """Where the agent learns."""
    algorithm: str
    """ppo or sac, whose values rules carry."""
    present: Duration
    """The cycle time that the values were tuned at, and at which one could stay."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The tuned values; others are the paper's baseline."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the agent, the same at every cycle time."""
    rule: str | None = None
    """How values are carried, by default the algorithm's own rule."""
    dts: tuple[Duration, ...] = ()
    """Candidates beside the present one; left out, quarter, half, double and four times as long."""
    env_steps: int = 10**6
    """How long each run trains, the same for all, and so as long in seconds; a million until the budget decides."""
    measure: str = MEASURES[0]
    """A run's score, as results name it."""
    confidence: float = 0.95
    """Of all comparisons together."""
    enough: float = 0.0
    """A difference of mean scores that does not matter."""
    first_seeds: int = FIRST_RUNS
    """Of each candidate at the first look."""
    real_time: bool = True
    """Whether candidates must act and learn in time on this machine."""
    device: str = "cpu"
    """Where runs are computed."""
    engine: str = AUTO
    """What computes them."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.algorithm not in AGENTS:
            raise unknown(self.algorithm, "an algorithm", DEFAULT_RULES)
        if self.algorithm not in DEFAULT_RULES:
            raise InputError(f"No rule carries the values of {self.algorithm}: give one of {', '.join(DEFAULT_RULES)}.")
        if not (isfinite(self.enough) and self.enough >= 0):
            raise InputError(f"enough is {self.enough}: it must be a difference of returns, at least 0.")
        check_counts(self, "first_seeds", least=2)
        percent(self.confidence)
        if isinstance(self.world, ClosedFormWorld):
            refuse_longer_than(self.world.task.time_limit, self.present)
        object.__setattr__(self, "rule", self.rule or DEFAULT_RULES[self.algorithm])

    def candidates(self, env_dt: Duration) -> tuple[tuple[Duration, ...], dict[str, str]]:
        """The cycle times that the environment has, the present one among them; and why others are none.

        Raises:
            InputError: if the present one, or one that was named, is no multiple of the environment's step.
        """
        cycle_steps(self.present, env_dt)
        for dt in self.dts:
            cycle_steps(dt, env_dt)
        wanted = {self.present, *(self.dts or (self.present * factor for factor in FACTORS))}
        why = {dt: self._why_none(dt, env_dt) for dt in sorted(wanted)}
        return (
            tuple(dt for dt, reason in why.items() if reason is None),
            {str(dt): reason for dt, reason in why.items() if reason is not None},
        )

    def _why_none(self, dt: Duration, env_dt: Duration) -> str | None:
        """Why the world has no such cycle time; None where it has."""
        if (dt / env_dt).denominator != 1:
            return f"no multiple of the environment's step, {env_dt}"
        if isinstance(self.world, ClosedFormWorld) and dt > self.world.task.time_limit:
            return f"longer than an episode, {self.world.task.time_limit}"
        return None

    def looks(self, candidates: int) -> Looks:
        """When to look at how many seeds."""
        return Looks(candidates, self.confidence, self.first_seeds)

    def study(self, dts: Iterable[Duration], seeds: int) -> Study:
        """The runs of some candidates with the first seeds, as a study like any other."""
        assert self.rule is not None, "it was chosen when the question was made"
        return Study(
            name=f"advise {self.world.name} {self.algorithm}",
            worlds=(self.world,),
            algorithms=(self.algorithm,),
            dts=tuple(sorted(dts)),
            rules={self.algorithm: (self.rule,)},
            seeds=tuple(range(seeds)),
            env_steps=self.env_steps,
            tuned={self.algorithm: Tuned(self.present, {name: (value,) for name, value in self.values.items()})},
            others={self.algorithm: {name: (value,) for name, value in self.others.items()}},
            device=self.device,
            engine=self.engine,
        )

    def cell(self, dt: Duration) -> Cell:
        """One candidate."""
        (cell,) = self.study([dt], 1).cells()
        return cell

    def agents(self, dts: Iterable[Duration]) -> dict[Duration, Agent]:
        """The agent at each cycle time, by the rule."""
        return {dt: self.cell(dt).agent for dt in dts}

    def as_json(self) -> dict[str, Any]:
        """What decides the answer, as advice.json keeps it."""
        told = {
            "world": self.world.name,
            "env_dt": None if self.world.env_dt is None else str(self.world.env_dt),
            "algorithm": self.algorithm,
            "present": str(self.present),
            "values": dict(self.values),
            "others": {name: list(each) if isinstance(each, tuple) else each for name, each in self.others.items()},
            "rule": self.rule,
            "dts": [str(dt) for dt in self.dts],
        }
        names = ("env_steps", "measure", "confidence", "enough", "first_seeds", "real_time", "device", "engine")
        return {**told, **{name: getattr(self, name) for name in names}}


def differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first thing in which two questions differ, in words; None where they are the same."""
    for name, value in now.items():
        with suppress(KeyError):
            if before[name] == value:
                continue
        return f"{name} was {before.get(name)} and is now {value}"
    return None
