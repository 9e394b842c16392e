"""What advice found: which cycle time, what it gains over staying, and what every candidate came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cycletime.agents import SACAgent
from cycletime.bounded import read_text
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.runs.carried import TUNABLE
from cycletime.runs.files import make_folder, write_last
from cycletime.runs.tables import MOST_BYTES_KEPT
from cycletime.runs.told import reason_of, sealed_text, told_by, unsealed
from cycletime.statistics import Comparison, Judgement, Looks, mean_and_error
from cycletime.studies.advising.in_time import InTime
from cycletime.studies.advising.question import Question

FORMAT = 1
FILE = "advice.json"
Ended: TypeAlias = Literal["decided", "enough", "alone", "budget", "stopped"]
"""Decided: one candidate is left. Enough: others can be better only by what does not matter. Alone: there was nothing
to compare. Budget: the next look costs more than is left. Stopped: someone asked to."""


@dataclass(frozen=True)
class Next:
    """The look that was not made."""

    seeds: int
    """Of each candidate that is left."""
    runs: int
    """That are missing for it."""
    wall_s: float
    """What they are expected to take here."""
    simulated_h: float


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What was found, so far or in the end."""

    question: Question
    env_dt: Duration
    tried: tuple[Duration, ...]
    """The candidates that were compared, the present one among them."""
    in_time: Mapping[Duration, InTime]
    """What each candidate leaves room for on this machine; empty where nobody asked."""
    machine: Mapping[str, Any]
    """Where that was measured."""
    not_tried: Mapping[str, str]
    """Cycle times that were left out, and why."""
    comparable: bool | None
    """Whether a held action earned the same at all of them; None where that cannot be told."""
    judgements: tuple[Judgement[Duration], ...] = ()
    """One for each look."""
    scores: Mapping[Duration, tuple[float | None, ...]] = field(default_factory=dict)
    """Of each candidate, as many seeds as were judged."""
    without_mean: Mapping[Duration, str] = field(default_factory=dict)
    """Candidates that were left out since runs of theirs have no score, and how many."""
    ended: Ended = "stopped"
    next: Next | None = None
    """What would make it surer, where the answer is open."""
    wall_s: float = 0.0
    """That this call took."""

    @property
    def looks(self) -> Looks:
        """When it looked, and how sure each comparison must be."""
        return self.question.looks(max(2, len(self.tried)))

    @property
    def leader(self) -> Duration | None:
        """The candidate with the highest mean; None without any look."""
        if self.ended == "alone":
            return self.question.present
        return self.judgements[-1].leader if self.judgements else None

    @property
    def left(self) -> tuple[Duration, ...]:
        """The candidates that may be the best."""
        return self.judgements[-1].left if self.judgements else self.tried

    @property
    def gain(self) -> Comparison | None:
        """The leader against the present cycle time; None where they are the same, or the present has no mean."""
        leader, present = self.leader, self.question.present
        if leader is None or leader == present or present in self.without_mean or not self.judgements:
            return None
        return self.against(leader, present)

    def against(self, x: Duration, y: Duration) -> Comparison:
        """One candidate against another, by all scores of theirs that were judged, at the last look's confidence."""
        return self.looks.compare(self.judgements[-1].look, self.numbers(x), self.numbers(y))

    def numbers(self, dt: Duration) -> list[float]:
        """The scores of a candidate that has a mean."""
        return [score for score in self.scores[dt] if score is not None]

    def can_stay(self) -> bool:
        """Whether the present cycle time can be used at all."""
        present = self.question.present
        return present not in self.without_mean and (present not in self.in_time or self.in_time[present].fits)

    @property
    def advised(self) -> Duration | None:
        """The leader, but the present cycle time where the data do not decide that the leader is better."""
        leader, present = self.leader, self.question.present
        if leader is None or leader == present or not self.can_stay():
            return leader
        return leader if self.gain is not None and self.gain.verdict == "better" else present

    def values(self, dt: Duration) -> dict[str, Any]:
        """The hyper-parameters at a cycle time, by the rule."""
        agent = self.question.cell(dt).agent
        values = {name: getattr(agent, name) for name in TUNABLE[self.question.algorithm]}
        if isinstance(agent, SACAgent) and agent.updates_per_step != 1:
            values["updates_per_step"] = agent.updates_per_step
        return values

    @property
    def simulated_h(self) -> float:
        """Hours of the environment's time of all runs that were judged."""
        runs = sum(map(len, self.scores.values()))
        return float(runs * self.question.env_steps * self.env_dt.exact_s / 3600)

    def as_json(self) -> dict[str, Any]:
        """What advice.json has, but for the sentences."""
        advised = self.advised
        return {
            "format": FORMAT,
            "question": self.question.as_json(),
            "env_dt_s": float(self.env_dt),
            "comparable": self.comparable,
            "machine": dict(self.machine),
            "in_time": {str(dt): each.as_json() for dt, each in self.in_time.items()},
            "not_tried": dict(self.not_tried),
            "ended": self.ended,
            "advised": None
            if advised is None
            else {"dt": str(advised), "dt_s": float(advised), "values": self.values(advised)},
            "leader": None if self.leader is None else str(self.leader),
            "left": [str(dt) for dt in self.left],
            "gain": None if self.gain is None else _told(self.gain),
            "candidates": [self._candidate(dt) for dt in self.tried],
            "looks": [_look(each) for each in self.judgements],
            "next": None if self.next is None else vars(self.next),
            "simulated_hours": self.simulated_h,
            "wall_s": self.wall_s,
        }

    def _candidate(self, dt: Duration) -> dict[str, Any]:
        scores = self.scores.get(dt, ())
        mean = mean_and_error(self.numbers(dt)) if dt not in self.without_mean and scores else None
        return {
            "dt": str(dt),
            "dt_s": float(dt),
            "values": self.values(dt),
            "n": len(scores),
            "mean": None if mean is None else mean.value,
            "standard_error": None if mean is None or mean.high is None else mean.high - mean.value,
            "left": dt in self.left and dt not in self.without_mean,
            "without_mean": self.without_mean.get(dt),
        }


def write_advice(folder: Path, told: Mapping[str, Any]) -> None:
    """Write advice.json into a study's folder; whoever reads sees the old file or the new one."""
    make_folder(folder)
    text = sealed_text(json.loads(json.dumps(told)))
    write_last(folder / FILE, lambda file: file.write_text(text))


def read_advice(folder: Path) -> dict[str, Any] | None:
    """What advice.json of a folder says; None where there is none.

    Raises:
        InputError: if it is damaged, or of another version.
    """
    file = folder / FILE
    if not file.exists():
        return None
    try:
        told = unsealed(told_by(read_text(file, MOST_BYTES_KEPT).encode()))
        version = told["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file} cannot be read: {reason_of(error)}. Delete it, and the same command goes on: runs stay."
        ) from error
    if version != FORMAT:
        raise InputError(f"{file} has the format {version}, and this version of cycletime reads {FORMAT}.")
    return told


def _told(comparison: Comparison) -> dict[str, Any]:
    difference = comparison.difference
    return {
        "value": difference.value,
        "low": difference.low,
        "high": difference.high,
        "decided": comparison.verdict == "better",
        "confidence_of_one": comparison.confidence,
        "n": list(difference.cells),
    }


def _look(judgement: Judgement[Duration]) -> dict[str, Any]:
    scores: Mapping[Duration, Sequence[float]] = judgement.scores
    return {
        "look": judgement.look,
        "seeds": max(map(len, scores.values())),
        "compared": [str(dt) for dt in scores],
        "dropped": {str(worse): str(better) for worse, better in judgement.dropped.items()},
    }
