"""One small study that is done."""

from pathlib import Path

import pytest

from cycletime.studies.spec_file import read_study
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker import work

QUICK = """\
name = "quick"
task = "reacher"
algorithm = "actor-critic"
dt = "32ms"
seeds = 3
env_steps = 6_400
[set]
hidden = [8]
"""
"""Three runs of one program, which is compiled and computed soon; five episodes each."""


@pytest.fixture(scope="session")
def quick_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("quick") / "quick.toml"
    file.write_text(QUICK)
    return file


@pytest.fixture(scope="session")
def quick(quick_file: Path) -> StudyFolder:
    """The quick study, of which all runs are done, by a worker in this very process. Tests must leave it as it is."""
    folder = StudyFolder.create(quick_file.parent / "study", read_study(quick_file))
    folder.workers.mkdir()
    work(str(folder.path), "here-0", 1)
    folder.store.tidy()
    return StudyFolder.open(folder.path)
