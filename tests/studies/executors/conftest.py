"""Studies that are small, and what is left of them to compare."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cycletime.studies.executors.executor import Job
from cycletime.studies.executors.local import Local
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.running import jobs_of, run_study
from cycletime.studies.study_file import study_from

MakeStudy: TypeAlias = Callable[..., StudyFolder]
Hashes: TypeAlias = dict[str, Any]
"""By run, what its result says of its files."""


def make_study(
    path: Path,
    *,
    env_steps: int = 2000,
    seeds: int = 2,
    dts: tuple[str, ...] = ("16ms",),
    width: int = 1,
    **keys: Any,  # noqa: ANN401
) -> StudyFolder:
    """The folder of a study whose runs are short, and whose programs are compiled once for all tests."""
    table = {
        "name": "small",
        "task": "reacher",
        "algorithm": "ppo",
        "dts": list(dts),
        "rules": ["baseline"],
        "seeds": seeds,
        "env_steps": env_steps,
        "width": width,
        "tuned": {"dt": "16ms", "batch": 200, "minibatch": 50},
        "set": {"hidden": [[8, 8]], "epochs": 4},
    }
    return StudyFolder.create(path, study_from({**table, **keys}))


def hashes_of(folder: StudyFolder) -> Hashes:
    """What the finished runs of a study hold."""
    found = {file.parent.name: json.loads(file.read_text()) for file in folder.runs.glob("*/result.json")}
    return {name: (told["files"], told["average_return"], told["remarks"]) for name, told in found.items()}


@pytest.fixture(name="make_study")
def _make_study(tmp_path: Path) -> MakeStudy:
    return lambda name="study", **given: make_study(tmp_path / name, **given)


@pytest.fixture
def jobs() -> Callable[[StudyFolder], list[Job]]:
    """What an executor is given for a study."""

    def of(folder: StudyFolder) -> list[Job]:
        plan = Plan.of(folder.study)
        return list(jobs_of(plan, plan.runs))

    return of


@pytest.fixture
def hashes() -> Callable[[StudyFolder], Hashes]:
    return hashes_of


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Programs that are compiled once for all workers of the tests."""
    folder = Path(os.environ.get("CYCLETIME_CACHE") or tmp_path_factory.mktemp("cache"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CYCLETIME_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Callable[..., Hashes]:
    """The hashes of a study that ran on this machine and that nobody touched."""
    known: dict[str, Hashes] = {}

    def run(**given: Any) -> Hashes:  # noqa: ANN401
        key = repr(given)
        if key not in known:
            folder = make_study(tmp_path_factory.mktemp("undisturbed"), **given)
            run_study(folder, Local(2))
            known[key] = hashes_of(folder)
        return known[key]

    return run
