"""One run of a study, trained here and now."""

from pathlib import Path

import pytest

from cycletime.errors import InputError, RunError
from cycletime.studies.leases import hold_lease
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker import finish_run
from cycletime.training import compiled_loop
from tests.studies.small import bits_of, names_of, quick_study


def test_it_is_trained_from_its_checkpoint_to_its_end_into_the_study_s_store(
    tmp_path: Path, undisturbed: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_loop, "CHUNK_S", 0.0)
    folder = StudyFolder.create(tmp_path, quick_study())
    name = names_of(folder)[1]
    asked = iter([False] * 5)
    assert finish_run(folder, name, stop=lambda: next(asked, True)) == "stopped"
    assert folder.state_of(name) == "stopped"
    assert finish_run(folder, name) == "finished"
    assert folder.state_of(name) == "done"
    assert bits_of(folder) == {name: bits_of(undisturbed)[name]}
    assert folder.store.result(name)["resumed"] == "resumed, identical"
    assert not [*folder.runs.iterdir(), *folder.leases.iterdir()]
    files = list((folder.path / "finished").iterdir())
    assert finish_run(folder, name) == "finished"
    assert list((folder.path / "finished").iterdir()) == files


def test_what_is_no_run_of_the_study_or_a_worker_s_is_refused(tmp_path: Path) -> None:
    folder = StudyFolder.create(tmp_path, quick_study())
    name = names_of(folder)[0]
    with pytest.raises(InputError, match="'somebody-else' is not a run of"):
        finish_run(folder, "somebody-else")
    with (
        hold_lease(folder.leases, name, "worker"),
        pytest.raises(RunError, match=r"is being trained by worker on .*, process [0-9]+: wait"),
    ):
        finish_run(folder, name)
    assert folder.state_of(name) == "pending"
