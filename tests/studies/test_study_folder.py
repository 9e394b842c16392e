import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from cycletime.errors import InputError
from cycletime.studies import leases as lease_module
from cycletime.studies import study_folder as folder_module
from cycletime.studies.leases import hold_lease
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import RunState, StudyFolder, open_run, policy_of
from cycletime.training.finished_run import FinishedRun
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import SaveOptions
from cycletime.training.sealed_json import sealed_text
from tests.studies.small import finish, finished, names_of, small_study, specs_of, state_of


def test_it_is_opened_as_it_was_created(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder(seeds=[4, 2], device="cpu")
    again = StudyFolder.open(folder.path)
    assert list(again.study.runs()) == list(folder.study.runs())
    assert again.study.name == "small"
    assert not list(folder.path.glob(".*"))


def test_creating_it_again_keeps_what_is_there(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder()
    finish(folder, specs_of(folder)[:1])
    (file,) = (folder.path / "finished").iterdir()
    before, written = file.stat(), (folder.path / "study.json").stat()
    assert (make_folder().path / "study.json").stat().st_ino == written.st_ino  # the same: not written again
    grown = make_folder(seeds=3)
    assert StudyFolder.open(folder.path).study.seeds == (0, 1, 2)
    assert state_of(grown, names_of(folder)[0]) == "done"
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_is_wanted_of_runs_is_kept_with_it(tmp_path: Path) -> None:
    StudyFolder.create(tmp_path, small_study(), keep=SaveOptions(episodes=False, policies=False))
    assert StudyFolder.open(tmp_path).keep == SaveOptions(episodes=False, policies=False)
    assert StudyFolder.create(tmp_path, small_study(seeds=3)).keep == SaveOptions(episodes=False, policies=False)
    assert StudyFolder.create(tmp_path, small_study(), keep=SaveOptions(policies=False)).keep == SaveOptions(
        True, False
    )


def test_another_study_or_another_engine_is_refused_and_nothing_changes(
    make_folder: Callable[..., StudyFolder],
) -> None:
    folder = make_folder()
    before = (folder.path / "study.json").read_bytes()
    for keys, says in (
        ({"name": "other"}, "holds the study 'small', not 'other'"),
        ({"device": "gpu", "width": 30}, "began on cpu, and is now to go on with gpu with 30 runs in a program"),
        ({"width": 2}, "began on cpu, and is now to go on with cpu with 2 runs in a program"),
    ):
        with pytest.raises(InputError, match=says):
            StudyFolder.create(folder.path, small_study(**keys))
    assert (folder.path / "study.json").read_bytes() == before


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(InputError, match="/out' is a file: give a new folder or an empty one"):
        StudyFolder.create(tmp_path / "out", small_study())


@pytest.mark.parametrize("there", ["reacher-ppo-16ms-seed0-21f85191d8/spec.json", "notes.txt", "runs/x/spec.json"])
def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path, there: str) -> None:
    other = tmp_path / "out" / there
    other.parent.mkdir(parents=True)
    other.touch()
    with pytest.raises(InputError) as refusal:
        StudyFolder.create(tmp_path / "out", small_study())
    assert str(refusal.value) == (
        f"{str(tmp_path / 'out')!r} is not a study, and has other things in it, such as {there.split('/')[0]!r}: "
        "give a new folder or an empty one."
    )
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [other]


@pytest.mark.parametrize("there", [".hidden", "finished", "leases", "workers", "advice.json", "code-1a2b3c"])
def test_what_is_left_of_a_study_or_made_for_it_is_in_no_one_s_way(tmp_path: Path, there: str) -> None:
    (tmp_path / there).mkdir()
    (tmp_path / there / "other.txt").touch()
    assert StudyFolder.open(StudyFolder.create(tmp_path, small_study()).path).study.name == "small"


def test_a_study_keeps_its_folder_though_other_things_came_into_it(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder()
    (folder.path / "notes.txt").touch()
    make_folder(seeds=3)
    (folder.path / "study.json").unlink()
    assert make_folder().path == folder.path


def test_many_may_create_it_at_once(tmp_path: Path) -> None:
    """Each in a process of its own, a study that grows: all that is ever seen is a whole file."""
    program = """
import json, os, sys
from pathlib import Path
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.spec_file import study_from_table
table = json.loads(sys.argv[2])
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        for seeds in range(1, 15):
            StudyFolder.create(Path(sys.argv[1]), study_from_table({**table, "seeds": seeds + number}))
            StudyFolder.open(Path(sys.argv[1]))
        os._exit(0)
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
    table = {"name": "s", "task": "reacher", "algorithm": "actor-critic", "dt": "16ms", "env_steps": 1200}
    words = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "study"), json.dumps(table)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "study").iterdir()) == ["leases", "runs", "study.json"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Expecting value"),
        ("[" * 10**5, "it is nested too deep"),
        ("\x00", "Expecting value"),
        ('{"format": ' + "9" * 400 + "}", "it has a number of 400 digits"),
        ("[]", "it is not a JSON object"),
        ('{"format": 2, "study": {"name": "s"}, "keep": {}}', "'algorithm' is missing"),
        ('{"format": 2, "study": 3, "keep": {}}', "3 is not a table"),
        ('{"format": 2, "study": {}}', ""),
    ],
)
def test_what_is_no_study_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(InputError, match=r"study\.json cannot be read as a study: .*" + says):
        StudyFolder.open(tmp_path)
    (tmp_path / "study.json").unlink()
    with pytest.raises(InputError, match=r"is not a study: there is no study\.json in it\.$"):
        StudyFolder.open(tmp_path)


def test_what_to_keep_is_true_or_false(tmp_path: Path) -> None:
    file = StudyFolder.create(tmp_path, small_study()).path / "study.json"
    told = {name: told for name, told in json.loads(file.read_text()).items() if name in ("format", "study")}
    file.write_text(sealed_text({**told, "keep": {"episodes": "no"}}))
    with pytest.raises(InputError, match=r"read as a study: keep\.episodes is 'no': it must be true or false\. Put it"):
        StudyFolder.open(tmp_path)


@pytest.mark.parametrize("keys", [{"engine": "cuda"}, {"dts": ["3ms"]}])
def test_what_cannot_run_is_refused_before_anything_is_written(tmp_path: Path, keys: dict[str, object]) -> None:
    with pytest.raises(InputError):
        StudyFolder.create(tmp_path / "study", small_study(**keys))
    assert not list(tmp_path.iterdir())


def test_a_tuning_s_folder_is_told_from_a_study_s(tmp_path: Path) -> None:
    StudyFolder.create(tmp_path / "trials", small_study())
    with pytest.raises(InputError, match=r"no study\.json in it; it is a tuning, whose studies are trials and fresh"):
        StudyFolder.open(tmp_path)


def test_a_run_goes_through_its_states(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder()
    spec, failures = specs_of(folder)[0], folder.failures(names_of(folder)[0])
    assert state_of(folder, spec.name) == "pending"
    with hold_lease(folder.leases, spec.name, "somebody"):
        assert state_of(folder, spec.name) == "running"
    failures.add("no")
    assert state_of(folder, spec.name) == "pending"
    (folder.runs / spec.name / "checkpoints" / "000001").mkdir(parents=True)
    assert state_of(folder, spec.name) == "stopped"
    for _ in range(2):
        failures.add("no")
    assert state_of(folder, spec.name) == "failed"
    with hold_lease(folder.leases, spec.name, "resume"):
        assert state_of(folder, spec.name) == "running"
    failures.forget()
    assert state_of(folder, spec.name) == "stopped"
    finish(folder, [spec])
    with hold_lease(folder.leases, spec.name, "late"):
        assert state_of(folder, spec.name) == "done"
    assert list(folder.states(names_of(folder)).values()) == ["done", *["pending"] * 5]


def test_what_is_left_is_neither_done_nor_failed_for_good() -> None:
    plan = Plan.of(small_study())
    states = dict(zip((run.name for run in plan.runs), (*get_args(RunState), "pending"), strict=True))
    assert [states[run.name] for run in StudyFolder.runs_left(plan, states)] == [
        "running",
        "stopped",
        "pending",
        "pending",
    ]
    unclaimed = StudyFolder.runs_left(plan, states, is_unclaimed=True)
    assert [states[run.name] for run in unclaimed] == ["stopped", "pending", "pending"]


def test_a_run_that_is_finished_in_the_very_moment_is_done_or_running_and_never_left(
    make_folder: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker puts it into the store first, and then gives its lease back."""
    folder = make_folder()
    spec = specs_of(folder)[0]
    really = lease_module.lease_holders

    def just_finished(leases: Path) -> dict[str, str]:
        StudyFolder.open(folder.path).store.add([finished(spec)])
        return really(leases)

    monkeypatch.setattr(folder_module, "lease_holders", just_finished)
    assert state_of(folder, spec.name) == "done"


def test_a_lease_of_the_dead_makes_no_run_running(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder()
    name = names_of(folder)[0]
    lease = folder.leases / f"{name}.json"
    with hold_lease(folder.leases, name, "somebody"):
        text = lease.read_text()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    lease.write_text(text.replace(str(os.getpid()), str(process.pid)))
    assert state_of(folder, name) == "pending"


def test_a_run_is_opened_by_its_path_wherever_it_is_by_now(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder()
    done, begun, pending, *_ = specs_of(folder)
    finish(folder, [done])
    folder.run_folder(begun).make()
    found = open_run(folder.runs / done.name)
    assert isinstance(found, FinishedRun)
    assert found.spec == done
    assert policy_of(found).identity == done.identity
    assert isinstance(open_run(folder.runs / begun.name), RunFolder)
    with pytest.raises(InputError, match=f"'{pending.name}' is not a run of"):
        open_run(folder.runs / pending.name)
    assert StudyFolder.of_run(folder.runs / pending.name) == folder.path.resolve()
    assert StudyFolder.of_run(folder.path / "elsewhere" / pending.name) is None
    with pytest.raises(InputError):
        open_run(folder.path / "nowhere")


def test_a_policy_that_was_not_wanted_is_not_there(make_folder: Callable[..., StudyFolder]) -> None:
    run = finished(specs_of(make_folder())[0])
    with pytest.raises(InputError, match="came without its policy"):
        policy_of(FinishedRun(run.spec, run.result, run.curve, run.metrics))
