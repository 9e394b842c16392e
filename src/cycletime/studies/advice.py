"""Advice on the cycle time: the question, and the answer with the scores of every candidate."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cycletime.agents import Agent, SACAgent
from cycletime.agents.checks import check_counts
from cycletime.bounded import read_bounded_text
from cycletime.duration import Duration, cycle_steps, refuse_longer_than
from cycletime.errors import InputError, unknown_name_error
from cycletime.rules import recommend
from cycletime.statistics import Comparison, Judgement, SequentialDesign, mean_and_error
from cycletime.statistics.means import percent
from cycletime.statistics.sequential import FIRST_RUNS
from cycletime.studies.cycle_time_checks import RealTimeFit
from cycletime.studies.scores import MEASURES
from cycletime.studies.spec import Cell, StudySpec, Tuned
from cycletime.training.atomic_files import make_folder, write_whole
from cycletime.training.engine import AUTO
from cycletime.training.external import ExternalAgent, TrainerSpec, tuned_hyperparameters
from cycletime.training.make_specs import agent_values, algorithms_with_rules, known_algorithms, tunable_names
from cycletime.training.sealed_json import check_seal, error_reason, parse_json, sealed_text
from cycletime.training.toml_files import MOST_BYTES_KEPT
from cycletime.training.worlds import ClosedFormWorld, ForeignEnv, World

CANDIDATE_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))


@dataclass(frozen=True, kw_only=True)
class Question:
    world: World
    algorithm: str
    present: Duration
    """The cycle time that the values were tuned at, and at which one could stay."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The tuned values; others are the paper's baseline."""
    tuned_fields: Collection[str] = ()
    others: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the agent, the same at every cycle time."""
    rule: str | None = None
    """How values are carried, by default as recommended for such values."""
    dts: tuple[Duration, ...] = ()
    """Candidates beside the present one; left out, quarter, half, double and four times as long."""
    env_steps: int = 10**6
    """How long each run trains, the same for all, and so as long in seconds; a million until the budget decides."""
    measure: str = "average"
    """A run's score: a name of `MEASURES`."""
    confidence: float = 0.95
    enough: float = 0.0
    """A difference of mean scores that does not matter."""
    first_seeds: int = FIRST_RUNS
    num_envs: int = 1
    real_time: bool = True
    """Whether candidates must act and learn in time on this machine."""
    device: str = "cpu"
    engine: str = AUTO
    trainer: TrainerSpec | None = None
    """Another library's, whose time to act and learn is not measured."""

    def __post_init__(self) -> None:
        carried = algorithms_with_rules(self.trainer)
        if self.algorithm not in known_algorithms(self.trainer):
            raise unknown_name_error(self.algorithm, "an algorithm", carried)
        if self.algorithm not in carried:
            raise InputError(f"No rule carries the values of {self.algorithm}: give one of {', '.join(carried)}.")
        if not (isfinite(self.enough) and self.enough >= 0):
            raise InputError(f"enough is {self.enough}: it must be a difference of returns, at least 0.")
        check_counts(self, "first_seeds", least=2)
        percent(self.confidence)
        if isinstance(self.world, ClosedFormWorld):
            refuse_longer_than(self.world.task.time_limit, self.present)
        given = self.algorithm, self.values, self.others, self.present, self.tuned_fields
        object.__setattr__(self, "rule", self.rule or recommend(tuned_hyperparameters(self.trainer, *given)).rule)
        object.__setattr__(self, "real_time", self.real_time and self.trainer is None)

    def candidates(self, env_dt: Duration) -> tuple[tuple[Duration, ...], dict[str, str]]:
        """Cycle times that the environment can run, the present one among them; and why others are left out."""
        for dt in () if isinstance(self.world, ForeignEnv) else (self.present, *self.dts):
            cycle_steps(dt, env_dt)
        wanted = {self.present, *(self.dts or (self.present * factor for factor in CANDIDATE_FACTORS))}
        why = {dt: self._why_none(dt, env_dt) for dt in sorted(wanted)}
        tried = tuple(dt for dt, reason in why.items() if reason is None)
        return tried, {dt.shortest: reason for dt, reason in why.items() if reason is not None}

    def _why_none(self, dt: Duration, env_dt: Duration) -> str | None:
        if (dt / env_dt).denominator != 1 and not isinstance(self.world, ForeignEnv):
            return f"no multiple of the environment's step, {env_dt}"
        if isinstance(self.world, ClosedFormWorld) and dt > self.world.task.time_limit:
            return f"longer than an episode, {self.world.task.time_limit}"
        return None

    def looks(self, candidates: int) -> SequentialDesign:
        return SequentialDesign(candidates, self.confidence, self.first_seeds)

    def study(self, dts: Iterable[Duration], seeds: int) -> StudySpec:
        assert self.rule is not None, "it was chosen when the question was made"
        return StudySpec(
            name=f"advise {self.world.name} {self.algorithm}",
            worlds=(self.world,),
            algorithms=(self.algorithm,),
            dts=tuple(sorted(dts)),
            rules={self.algorithm: (self.rule,)},
            seeds=tuple(range(seeds)),
            env_steps=self.env_steps,
            tuned={self.algorithm: Tuned(self.present, {name: (value,) for name, value in self.values.items()})},
            others={self.algorithm: {name: (value,) for name, value in self.others.items()}},
            num_envs=self.num_envs,
            device=self.device,
            engine=self.engine,
            trainer=self.trainer,
        )

    def cell(self, dt: Duration) -> Cell:
        (cell,) = self.study([dt], 1).cells()
        return cell

    def agents(self, dts: Iterable[Duration]) -> dict[Duration, Agent | ExternalAgent]:
        return {dt: self.cell(dt).agent for dt in dts}

    def own_agents(self, dts: Iterable[Duration]) -> dict[Duration, Agent]:
        return {dt: self.cell(dt).run(0).own_agent for dt in dts}

    def simulated_h(self, runs: int, env_dt: Duration) -> float:
        return float(runs * self.env_steps * env_dt.exact_s / 3600)

    def as_json(self) -> dict[str, Any]:
        data = {
            "world": self.world.name,
            "env_dt": self.world.env_dt and self.world.env_dt.shortest,
            "algorithm": self.algorithm,
            "present": self.present.shortest,
            "values": dict(self.values),
            "others": {name: list(each) if isinstance(each, tuple) else each for name, each in self.others.items()},
            "rule": self.rule,
            "dts": [dt.shortest for dt in self.dts],
            "env_steps": self.env_steps,
            "measure": MEASURES[self.measure][0],
        }
        names = ("confidence", "enough", "first_seeds", "real_time", "device", "engine")
        several = {} if self.num_envs == 1 else {"num_envs": self.num_envs}
        trainer = {} if self.trainer is None else {"trainer": self.trainer.as_json()}
        return {**data, **{name: getattr(self, name) for name in names}, **several, **trainer}


_NAMES = {"world": "task", "present": "tuned_at", "others": "set"}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    names = [name for name, value in now.items() if name not in before or before[name] != value]
    return " and ".join(f"{_NAMES.get(name, name)} {before.get(name)} instead of {now[name]}" for name in names)


FORMAT = 1
ADVICE_FILE = "advice.json"
EndReason: TypeAlias = Literal["decided", "enough", "alone", "budget", "stopped"]
"""Decided: one candidate is left. Enough: others can be better only by what does not matter. Alone: there was nothing
to compare. Budget: the next look costs more than is left. Stopped: someone asked to."""


@dataclass(frozen=True)
class NextLook:
    seeds: int
    runs: int
    wall_s: float
    simulated_h: float


@dataclass(frozen=True, kw_only=True)
class Advice:
    question: Question
    env_dt: Duration
    tried: tuple[Duration, ...]
    in_time: Mapping[Duration, RealTimeFit]
    """Whether each candidate leaves time to act and learn; empty if not measured."""
    machine: Mapping[str, Any]
    not_tried: Mapping[str, str]
    comparable: bool | None
    """Whether a held action earned the same at all of them; None if unknown."""
    judgements: tuple[Judgement[Duration], ...] = ()
    scores: Mapping[Duration, tuple[float | None, ...]] = field(default_factory=dict)
    without_mean: Mapping[Duration, str] = field(default_factory=dict)
    """Candidates without a mean, and how many of their runs have no score."""
    ended: EndReason = "stopped"
    next: NextLook | None = None
    wall_s: float = 0.0

    @property
    def looks(self) -> SequentialDesign:
        return self.question.looks(max(2, len(self.tried)))

    @property
    def leader(self) -> Duration | None:
        if self.ended == "alone":
            return self.question.present
        return self.judgements[-1].leader if self.judgements else None

    @property
    def left(self) -> tuple[Duration, ...]:
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
        return [score for score in self.scores[dt] if score is not None]

    def can_stay(self) -> bool:
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
        agent = self.question.cell(dt).agent
        values = agent_values(agent, tunable_names(self.question.algorithm, self.question.trainer))
        if isinstance(agent, SACAgent) and agent.updates_per_step != 1:
            values["updates_per_step"] = agent.updates_per_step
        return values

    @property
    def simulated_h(self) -> float:
        return self.question.simulated_h(sum(map(len, self.scores.values())), self.env_dt)

    def as_json(self) -> dict[str, Any]:
        advised, gain = self.advised, self.gain
        return {
            "format": FORMAT,
            "question": self.question.as_json(),
            "env_dt_s": float(self.env_dt),
            "comparable": self.comparable,
            "machine": dict(self.machine),
            "in_time": {dt.shortest: asdict(each) for dt, each in self.in_time.items()},
            "not_tried": dict(self.not_tried),
            "ended": self.ended,
            "advised": advised and {"dt": advised.shortest, "dt_s": float(advised), "values": self.values(advised)},
            "leader": self.leader and self.leader.shortest,
            "left": [dt.shortest for dt in self.left],
            "gain": gain
            and {
                "value": gain.difference.value,
                "low": gain.difference.low,
                "high": gain.difference.high,
                "decided": gain.verdict == "better",
                "confidence_of_one": gain.confidence,
                "n": list(gain.difference.cells),
            },
            "candidates": [self._candidate(dt) for dt in self.tried],
            "looks": [
                {
                    "look": each.look,
                    "seeds": max(map(len, each.scores.values())),
                    "compared": [dt.shortest for dt in each.scores],
                    "dropped": {worse.shortest: better.shortest for worse, better in each.dropped.items()},
                }
                for each in self.judgements
            ],
            "next": None if self.next is None else vars(self.next),
            "simulated_hours": self.simulated_h,
            "wall_s": self.wall_s,
        }

    def _candidate(self, dt: Duration) -> dict[str, Any]:
        scores = self.scores.get(dt, ())
        mean = mean_and_error(self.numbers(dt)) if dt not in self.without_mean and scores else None
        return {
            "dt": dt.shortest,
            "dt_s": float(dt),
            "values": self.values(dt),
            "n": len(scores),
            "mean": None if mean is None else mean.value,
            "standard_error": None if mean is None or mean.high is None else mean.high - mean.value,
            "left": dt in self.left and dt not in self.without_mean,
            "without_mean": self.without_mean.get(dt),
        }


def write_advice(folder: Path, data: Mapping[str, Any]) -> None:
    make_folder(folder)
    text = sealed_text(json.loads(json.dumps(data)))
    write_whole(folder / ADVICE_FILE, lambda file: file.write_text(text))


def read_advice(folder: Path) -> dict[str, Any] | None:
    file = folder / ADVICE_FILE
    if not file.exists():
        return None
    try:
        data = check_seal(parse_json(read_bounded_text(file, MOST_BYTES_KEPT).encode()))
        version = data["format"]
    except (ValueError, KeyError, TypeError) as error:
        remedy = "Delete it, and the same command goes on: runs stay."
        raise InputError(f"{file} cannot be read: {error_reason(error)}. {remedy}") from error
    if version != FORMAT:
        raise InputError(f"{file} has the format {version}, and this version of cycletime reads {FORMAT}.")
    return data
