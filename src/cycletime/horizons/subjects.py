"""The algorithms whose rules are compared: what is carried of each, by which rules, and from where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from cycletime.agents import PPOAgent, SACAgent, agent_for
from cycletime.duration import Duration
from cycletime.horizons.candidates import PPO_CANDIDATES, SAC_AFTERWARDS, SAC_CANDIDATES, SAC_SUGGESTED
from cycletime.rules import PPO, SAC, Rule
from cycletime.runs.carried import TUNABLE

Algorithm: TypeAlias = Literal["ppo", "sac"]
Rules: TypeAlias = Mapping[str, str | Rule]
"""By name, those that are compared."""
Place: TypeAlias = tuple[str, ...]
"""A point of a study, as texts of few enough digits that machines agree on them."""


@dataclass(frozen=True)
class Subject:
    """An algorithm whose rules are compared."""

    algorithm: Algorithm
    usual: PPO | SAC
    """What everybody uses, with all stated that some candidate carries."""
    also: tuple[str, ...]
    """Fields of the agent that candidates change, beside those that are tuned."""
    references: tuple[str, ...]
    """The paper's rules, by name. 'scaled' is the candidate without a floor that leaves all else alone."""
    default: str
    """The one of them that would be replaced."""
    candidates: Mapping[str, Rule]
    """By name, those that are not the paper's."""
    in_use: str | None = None
    """The candidate that users had before the trial, under the name 'horizons'."""
    suggested: str | None = None
    """The candidate that the search of the others suggested."""
    afterwards: Rule | None = None
    """What the trial suggested, and none has judged; the runs of search and trial must have its values."""

    @property
    def prefix(self) -> str:
        """What the names of its studies, files and figures begin with; PPO's were there first."""
        return "" if self.algorithm == "ppo" else f"{self.algorithm}-"

    @property
    def option(self) -> str:
        """What commands say of it, after a space."""
        return "" if self.algorithm == "ppo" else f" --algorithm {self.algorithm}"

    @property
    def rules(self) -> Rules:
        """What the search compares."""
        return self.against_references(self.candidates)

    def against_references(self, candidates: Mapping[str, Rule]) -> Rules:
        """Candidates, and the paper's rules before them."""
        return {**{name: name for name in self.references}, **candidates}

    @property
    def horizons(self) -> tuple[str, ...]:
        """The values that are tuned as horizons in seconds."""
        return tuple(quantity.field for quantity in self.usual.quantities if quantity.is_horizon)

    def tuned(self, dt: Duration, found: Mapping[str, Any]) -> PPO | SAC:
        """Values with which tuning did best at a cycle time."""
        return replace(self.usual, dt=dt, **{name: found[name] for name in TUNABLE[self.algorithm]})

    def untuned(self, tuned: PPO | SAC) -> PPO | SAC:
        """The same without tuned horizons: they are in steps those that everybody uses."""
        return replace(tuned, **{name: getattr(self.usual, name) for name in self.horizons})

    def point(self, values: PPO | SAC) -> dict[str, Any]:
        """What a study has of values."""
        agent = agent_for(values)
        return {"dt": values.dt, **{name: getattr(agent, name) for name in self._fields}}

    def place(self, point: Mapping[str, Any]) -> Place:
        """Where a point is, to ten digits: powers may differ in the last ones from machine to machine."""
        return (f"{float(Duration(point['dt'])):.10g}", *(f"{float(point[name]):.10g}" for name in self._fields))

    @property
    def _fields(self) -> tuple[str, ...]:
        return (*TUNABLE[self.algorithm], *self.also)


SUBJECTS: Mapping[str, Subject] = {
    "ppo": Subject(
        algorithm="ppo",
        usual=PPO(dt="16ms", learning_rate=PPOAgent.learning_rate),
        also=("learning_rate",),
        references=("baseline", "dt-aware", "scaled"),
        default="dt-aware",
        candidates=PPO_CANDIDATES,
    ),
    "sac": Subject(
        algorithm="sac",
        usual=SAC(dt="16ms", target_smoothing=SACAgent.target_smoothing, updates_per_step=1),
        also=("target_smoothing", "gradient_steps", "learning_period"),
        references=("baseline", "scaled"),
        default="scaled",  # which of tuned values is called 'tuned-scaled'
        candidates=SAC_CANDIDATES,
        in_use="floor-6",
        suggested=SAC_SUGGESTED,
        afterwards=SAC_AFTERWARDS,
    ),
}
"""By algorithm."""
