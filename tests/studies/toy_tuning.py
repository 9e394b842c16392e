"""A tuning that takes no time and whose best is known."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, log
from pathlib import Path
from random import Random
from typing import Any

from cycletime.agents import ActorCriticAgent, PPOAgent
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.tuning import TuningResult, tune
from cycletime.studies.tuning_spec import tuning_from_table
from cycletime.training.spec import RunSpec
from tests.studies.small import finished, specs_of

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
    """An executor that finishes runs at once, and may be killed after some."""

    score: Callable[[RunSpec], float | None] = toy
    workers: int = 2
    kill_after: int | None = None
    done: list[RunSpec] = field(default_factory=list)
    waiting: dict[str, Path] = field(default_factory=dict)

    def find_workers(self, study: Path) -> Iterable[str]:
        return ()

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        self.waiting |= {f"{command}-{len(self.waiting) + place}": study for place in range(count)}
        return list(self.waiting)

    def poll(self, wait_s: float) -> Mapping[str, str]:
        for study in self.waiting.values():
            folder = StudyFolder.open(study)
            for spec in specs_of(folder):
                if spec.name not in folder.store:
                    if len(self.done) == self.kill_after:
                        raise Killed
                    score = self.score(spec)
                    folder.store.add([finished(spec, inf if score is None else score, machine=MACHINE)])
                    self.done.append(spec)
        over, self.waiting = self.waiting, {}
        return dict.fromkeys(over, "")

    def stop(self, study: Path) -> None:
        pass

    def kill(self, name: str) -> None:
        pass

    def close(self, wait_s: float) -> None:
        pass


def tuned(table: dict[str, Any], path: Path, executor: Toy | None = None) -> TuningResult:
    outcome = tune(tuning_from_table(table), path, executor or Toy())
    assert outcome is not None
    return outcome


def files_of(table: dict[str, Any], path: Path, executor: Toy) -> list[bytes]:
    tuned(table, path, executor).write(path, path / "tuned.toml")
    return [(path / name).read_bytes() for name in ("tuned.toml", "ranking.json")]
