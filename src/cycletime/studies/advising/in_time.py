"""Which candidates act and learn in time on this machine, by `cycletime.loops.latency`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cycletime.agents import Agent
from cycletime.duration import Duration
from cycletime.loops.latency import Conditions, measure_agents, verdict
from cycletime.loops.real_time import LearnerName
from cycletime.runs.machine import cores, load, processor
from cycletime.studies.advising.worlds import WorldFacts

MEASURE_S = 1.0
"""How long each call is repeated, and at least five times."""


@dataclass(frozen=True)
class InTime:
    """What a cycle time leaves room for; times are 99th percentiles."""

    act_s: float
    learn_s: float
    act_share: float
    """`act` over the cycle."""
    learn_share: float
    """The average `learn` over the time between two of them."""
    way: LearnerName | None
    """Inline: both fit into the cycle in which learning falls due. Background: `act` fits into the cycle, and learning
    beside it is done before the next. Half of each cycle stays free for everything else."""

    @property
    def fits(self) -> bool:
        """Whether there is a way."""
        return self.way is not None

    def as_json(self) -> dict[str, Any]:
        """What advice.json keeps."""
        return asdict(self)


def measured_in_time(
    agents: Mapping[Duration, Agent], facts: WorldFacts, tell: Callable[[str], object] = lambda what: None
) -> dict[Duration, InTime]:
    """Time `act` and `learn` at each cycle time."""
    act, learn = measure_agents(agents, facts.observation_size, facts.action_size, MEASURE_S, tell)
    found = {}
    for dt, agent in agents.items():
        told = verdict(dt, agent.period, act, learn[dt], Conditions())
        way: LearnerName | None = "inline" if told.inline.fits else "background" if told.background.fits else None
        found[dt] = InTime(act.p99_s, learn[dt].p99_s, told.act.share, told.background.share, way)
    return found


def machine() -> dict[str, Any]:
    """Where this was measured, and how busy it was."""
    return {"processor": processor(), "cores": cores(), "load": load()}
