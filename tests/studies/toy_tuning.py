"""A tuning that takes no time and whose best is known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from random import Random
from typing import Any

from cycletime.agents import ActorCriticAgent, PPOAgent
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.studies.executors.executor import Event, Job
from cycletime.studies.tuning import tune
from cycletime.studies.tuning_file import tuning_from
from cycletime.studies.tuning_outcome import Outcome

BEST = 0.9
"""The toy's best discount."""
MACHINE = {"cycletime": "1", "jax": "2", "jaxlib": "3", "device": "toy", "processor": "none", "python": "4"}
TABLE: dict[str, Any] = {
    "name": "toy",
    "task": "reacher",
    "algorithm": "actor-critic",
    "dt": "16ms",
    "seeds": 3,
    "fresh_seeds": 4,
    "env_steps": 1200,
    "set": {"hidden": [[8]]},
}
GRID = {**TABLE, "tuned": {"discount": [0.5, 0.8, 0.9, 0.95, 0.99]}}
SEARCH = {**TABLE, "search": {"discount": {"low": 0.2, "high": 0.999, "horizon": True}}, "trials": 12}


class Killed(BaseException):
    """The process is gone."""


def discount_of(spec: RunSpec) -> float:
    assert isinstance(spec.agent, ActorCriticAgent | PPOAgent)
    return spec.agent.discount


def noise(spec: RunSpec) -> float:
    return Random(f"{discount_of(spec)} {spec.seed}").gauss(0.0, 1.0)


def toy(spec: RunSpec) -> float | None:
    """Best at a horizon, and worse the more the logarithm of the horizon is off."""
    off = log(log(discount_of(spec)) / log(BEST))
    return 10 - off**2 + 0.1 * noise(spec)


@dataclass
class Toy:
    """An executor that writes results at once, and may be killed after some."""

    score: Callable[[RunSpec], float | None] = toy
    workers: int = 2
    kill_after: int | None = None
    done: list[RunSpec] = field(default_factory=list)

    def execute(
        self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], stop: Callable[[], bool]
    ) -> None:
        for told in [spec for job in jobs for spec in job.specs]:
            if len(self.done) == self.kill_after:
                raise Killed
            spec = RunSpec.from_json(told)
            run = RunFolder.create(Path(folder) / "runs", spec)
            run.write_result({"average_return": self.score(spec), "machine": MACHINE})
            self.done.append(spec)
            tell(Event(spec.name, outcome="done"))


def tuned(table: dict[str, Any], path: Path, executor: Toy | None = None) -> Outcome:
    outcome = tune(tuning_from(table), path, executor or Toy())
    assert outcome is not None
    return outcome


def files_of(table: dict[str, Any], path: Path, executor: Toy) -> list[bytes]:
    tuned(table, path, executor).write(path, path / "tuned.toml")
    return [(path / name).read_bytes() for name in ("tuned.toml", "ranking.json")]
