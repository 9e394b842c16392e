import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.errors import InputError
from cycletime.runs.folder import RunFolder
from cycletime.studies.folder import (
    StudyFolder,
    add_failure,
    failure_of,
    failures_of,
    forget_failures,
    is_hopeless,
)
from cycletime.studies.lease import leased
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Study


def first_run(folder: StudyFolder) -> RunFolder:
    plan = Plan.of(folder.study)
    return folder.run_folder(plan.spec(plan.runs[0]))


def test_it_is_opened_as_it_was_created(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder(seeds=[4, 2], device="cpu")
    again = StudyFolder.open(folder.path)
    assert list(again.study.runs()) == list(folder.study.runs())
    assert again.study.name == "small"
    assert not list(folder.path.glob(".*"))


def test_creating_it_again_keeps_what_is_there(
    make_folder: Callable[..., StudyFolder], finish: Callable[[RunFolder], None]
) -> None:
    folder = make_folder()
    run = first_run(folder)
    finish(run)
    before = (run.path / "result.json").stat()
    written = (folder.path / "study.json").stat()
    assert (make_folder().path / "study.json").stat().st_ino == written.st_ino  # the same: not written again
    grown = make_folder(seeds=3)
    assert StudyFolder.open(folder.path).study.seeds == (0, 1, 2)
    assert grown.state_of(run.spec.name) == "done"
    after = (run.path / "result.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_another_study_or_another_engine_is_refused_and_nothing_changes(
    make_folder: Callable[..., StudyFolder], make_study: Callable[..., Study]
) -> None:
    folder = make_folder()
    before = (folder.path / "study.json").read_bytes()
    for keys, says in (
        ({"name": "other"}, f"{folder.path} holds the study 'small', and not 'other': give another folder."),
        (
            {"device": "gpu", "width": 30},
            f"The study in {folder.path} began on cpu, and is now to go on with gpu with 30 runs in a program: its "
            "runs would not be comparable bit for bit, so give the same engine, or --change-engine.",
        ),
    ):
        with pytest.raises(InputError) as refusal:
            make_folder(**keys)
        assert str(refusal.value) == says
    assert (folder.path / "study.json").read_bytes() == before
    changed = StudyFolder.create(folder.path, make_study(device="gpu"), change_engine=True)
    assert StudyFolder.open(folder.path).study.device == changed.study.device == "gpu"


def test_many_may_create_it_at_once(tmp_path: Path) -> None:
    """Each in a process of its own, a study that grows: all that is ever seen is a whole file."""
    program = """
import json, os, sys
from pathlib import Path
from cycletime.studies.folder import StudyFolder
from cycletime.studies.study_file import study_from
table = json.loads(sys.argv[2])
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        for seeds in range(1, 15):
            StudyFolder.create(Path(sys.argv[1]), study_from({**table, "seeds": seeds + number}))
            StudyFolder.open(Path(sys.argv[1]))
        os._exit(0)
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
    table = {"name": "s", "task": "reacher", "algorithm": "actor-critic", "dt": "16ms", "env_steps": 9}
    words = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "study"), json.dumps(table)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "study").iterdir()) == ["runs", "study.json"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot be read as a study: Expecting value"),
        ("[]", "cannot be read as a study: list indices must be"),
        ('{"format": 2, "study": {}}', "has the format 2: this version of cycletime reads 1."),
        ('{"format": 1, "study": {"name": "s"}}', "study.json cannot be read as a study: 'algorithm' is missing: a"),
        ('{"format": 1, "study": 3}', "study.json cannot be read as a study: 'int' object is not iterable."),
    ],
)
def test_what_is_no_study_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(InputError) as refusal:
        StudyFolder.open(tmp_path)
    assert says in str(refusal.value)
    (tmp_path / "study.json").unlink()
    with pytest.raises(InputError) as refusal:
        StudyFolder.open(tmp_path)
    assert str(refusal.value) == f"'{tmp_path}' is no study: there is no study.json in it."


def test_a_tuning_s_folder_is_told_from_a_study_s(tmp_path: Path, make_study: Callable[..., Study]) -> None:
    StudyFolder.create(tmp_path / "trials", make_study())
    with pytest.raises(InputError, match=r"no study\.json in it; it is a tuning, whose studies are trials and fresh"):
        StudyFolder.open(tmp_path)


def test_a_run_goes_through_its_states(
    make_folder: Callable[..., StudyFolder], finish: Callable[[RunFolder], None]
) -> None:
    folder = make_folder()
    name = Plan.of(folder.study).runs[0].name
    assert folder.state_of(name) == "pending"
    run = first_run(folder)
    assert folder.state_of(name) == "pending"
    with leased(run.path, "somebody"):
        assert folder.state_of(name) == "running"
    (run.path / "checkpoints" / "000001").mkdir(parents=True)
    assert folder.state_of(name) == "stopped"
    for _ in range(2):
        add_failure(run.path, failure_of("no"))
        assert folder.state_of(name) == "stopped"
    add_failure(run.path, failure_of("no"))
    assert folder.state_of(name) == "failed"
    forget_failures(run.path)
    assert folder.state_of(name) == "stopped"
    add_failure(run.path, failure_of("hopeless", gives_up=True))
    assert folder.state_of(name) == "failed"
    finish(run)
    assert folder.state_of(name) == "done"


def test_a_lease_of_the_dead_makes_no_run_running(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder()
    run = first_run(folder)
    with leased(run.path, "somebody"):
        text = (run.path / "lease.json").read_text()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    (run.path / "lease.json").write_text(text.replace(str(os.getpid()), str(process.pid)))
    assert folder.state_of(run.spec.name) == "pending"


def test_failures_survive_a_torn_line(tmp_path: Path) -> None:
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        add_failure(tmp_path, failure_of(error))
    with (tmp_path / "failures.jsonl").open("a") as file:
        file.write('{"error": "to')
    add_failure(tmp_path, failure_of("third"))
    first, second = failures_of(tmp_path)
    assert first["error"] == "ZeroDivisionError: division by zero"
    assert "_ = 1 / 0" in first["traceback"]
    assert second["error"] == "third"
    assert not is_hopeless([first, second])
