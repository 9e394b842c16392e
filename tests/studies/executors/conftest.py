"""Studies that are long enough for something to happen in the middle, and what comes of them undisturbed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cycletime.studies.executors import LocalExecutor
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import run_study
from tests.studies.small import bits_of

MakeStudy: TypeAlias = Callable[..., StudyFolder]
TABLE = {
    "name": "executed",
    "task": "reacher",
    "algorithm": "ppo",
    "dts": ["16ms"],
    "rules": ["baseline"],
    "seeds": 2,
    "env_steps": 2000,
    "tuned": {"dt": "16ms", "batch": 200, "minibatch": 50},
    "set": {"hidden": [[8, 8]], "epochs": 4},
}
"""Its program is compiled once for all tests."""


@pytest.fixture
def make_study(tmp_path: Path) -> MakeStudy:
    return lambda **keys: StudyFolder.create(tmp_path / "study", study_from_table({**TABLE, **keys}))


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """The bits of a study that ran on this machine and that nobody touched."""
    known: dict[str, dict[str, Any]] = {}

    def run(**keys: Any) -> dict[str, Any]:  # noqa: ANN401
        if repr(keys) not in known:
            folder = StudyFolder.create(tmp_path_factory.mktemp("alone"), study_from_table({**TABLE, **keys}))
            run_study(folder, LocalExecutor(2))
            known[repr(keys)] = bits_of(folder)
        return known[repr(keys)]

    return run
