"""Studies in folders, and trainings that take no time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.studies import worker
from cycletime.studies.study_folder import StudyFolder
from tests.studies.small import quick_study, small_study
from tests.studies.stand_ins import Trained


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., StudyFolder]:
    """The folder of the small study, with some keys of its file changed."""
    return lambda name="study", **keys: StudyFolder.create(tmp_path / name, small_study(**keys))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    """Let training take no time in this process."""
    stand_in = Trained()
    monkeypatch.setattr(worker, "train_batch", stand_in)
    return stand_in


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    """The quick study, trained in this process from its beginning to its end."""
    folder = StudyFolder.create(tmp_path_factory.mktemp("undisturbed"), quick_study())
    folder.workers.mkdir()
    worker.work(str(folder.path), "cycletime-here-0", 1)
    return folder
