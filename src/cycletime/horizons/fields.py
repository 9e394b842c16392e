"""The studies of the search and of the trial: a grid of horizons, and rules from tuned and untuned values.

Many rules give the same values at many cycle times, and studies that follow one another leave a GPU idle at their ends.
So there is one study for each task, whose points are the values that some rule gives, each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from typing import Any, Literal, TypeAlias

from cycletime.agents import PPOAgent
from cycletime.duration import Duration
from cycletime.horizons.candidates import CANDIDATES, REFERENCES
from cycletime.paper.experiments import FRESH_SEED
from cycletime.paper.outcome import Outcome
from cycletime.paper.winners import winners
from cycletime.rules import PPO, Rule
from cycletime.runs.carried import TUNABLE
from cycletime.studies.spec.study import Study

Rules: TypeAlias = Mapping[str, str | Rule]
"""By name, those that are compared."""
Place: TypeAlias = tuple[str, ...]
"""A point of a study, as texts of few enough digits that machines agree on them."""
_CARRIED = (*TUNABLE["ppo"], "learning_rate")
_RATE = PPOAgent.learning_rate
"""Where no rule speaks of it."""


@dataclass(frozen=True)
class Field:
    """Tasks on which rules are compared."""

    name: Literal["search", "trial"]
    tasks: tuple[str, ...]
    seeds: int
    """Of every point, none of which tuning has seen."""

    def study(self, tuning: Outcome, rules: Rules) -> Study:
        """All that rules make of the values that tuning found on a task, and those values themselves."""
        (task,) = {cell.labels["task"] for cell in tuning.cells}
        study = tuning_study(task)
        points = [start.point(dt, rule) for start in starts(tuning) for rule in rules.values() for dt in study.dts]
        points += retuned(tuning).values()
        once = {place_of(point): point for point in points}
        return replace(
            study,
            name=f"{self.name}-{task}",
            rules={"ppo": ()},
            seeds=tuple(range(FRESH_SEED, FRESH_SEED + self.seeds)),
            tuned={},
            points={"ppo": tuple(once.values())},
        )


SEARCH = Field("search", ("reacher", "double-pendulum"), seeds=14)
"""What candidates are chosen on, and nothing else is."""
TRIAL = Field("trial", ("pendulum", "cart-pole", "mountain-car", "acrobot"), seeds=30)
"""What those that were chosen are judged on, and nothing else is."""
SEARCHED: Rules = {**{name: name for name in REFERENCES}, **CANDIDATES}
"""What the search compares."""


@dataclass(frozen=True)
class Start:
    """Values at a cycle time that rules carry to others."""

    task: str
    tuned: bool
    """Whether discount and trace decay were tuned there; else they are those that everybody uses."""
    values: PPO

    @property
    def kind(self) -> str:
        """In a word."""
        return "tuned" if self.tuned else "untuned"

    def point(self, dt: Duration, rule: str | Rule) -> dict[str, Any]:
        """What a rule makes of the values at a cycle time."""
        return _point(self.values.at(dt, rule))


def tuning_study(task: str) -> Study:
    """The grid of horizons on a task, at every cycle time."""
    with as_file(files(__package__) / "studies" / f"tuning-{task}.toml") as file:
        return Study.read(file)


def starts(tuning: Outcome) -> tuple[Start, ...]:
    """The starting points on a task, at the shortest, the middle and the longest cycle time.

    They are what tuning found there, and the discount and trace decay that everybody uses.
    """
    return tuple(_starts(tuning))


def _starts(tuning: Outcome) -> Iterator[Start]:
    best = winners(tuning)
    shortest, _, middle, _, longest = best
    for dt in (shortest, middle, longest):
        cell = best[dt].cell
        tuned = PPO(dt=dt, learning_rate=_RATE, **{name: cell.values[name] for name in TUNABLE["ppo"]})
        yield Start(cell.labels["task"], tuned=True, values=tuned)
        untuned = replace(tuned, discount=PPO.discount, trace_decay=PPO.trace_decay)
        yield Start(cell.labels["task"], tuned=False, values=untuned)


def retuned(tuning: Outcome) -> dict[Duration, dict[str, Any]]:
    """By cycle time, the point that tuning there found best."""
    values = {dt: {name: best.cell.values[name] for name in TUNABLE["ppo"]} for dt, best in winners(tuning).items()}
    return {dt: _point(PPO(dt=dt, learning_rate=_RATE, **found)) for dt, found in values.items()}


def place_of(point: Mapping[str, Any]) -> Place:
    """Where a point is, to ten digits: powers may differ in the last ones from machine to machine."""
    return (f"{float(Duration(point['dt'])):.10g}", *(f"{float(point[name]):.10g}" for name in _CARRIED))


def _point(values: PPO) -> dict[str, Any]:
    return {"dt": values.dt, **{name: getattr(values, name) for name in _CARRIED}}
