from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cycletime.agents import PPOAgent
from cycletime.agents.exploration import OrnsteinUhlenbeck
from cycletime.errors import InputError, RunError
from cycletime.runs import spec as spec_module
from cycletime.runs.checkpoints import Checkpoint, Manifest
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import PaperTask

SPEC = RunSpec(
    world=PaperTask("reacher"),
    agent=PPOAgent(),
    dt="16ms",
    env_steps=1000,
    seed=4,
    exploration=OrnsteinUhlenbeck("100ms"),
    origin={"rule": "dt-aware", "tuned_at": "16ms", "tuned": {"batch": 2000}},
)


def edit(folder: RunFolder, **changes: Any) -> None:  # noqa: ANN401 - anything that JSON can say
    file = folder.path / "spec.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        RunFolder.open(path)
    return str(caught.value)


def with_a_checkpoint(folder: RunFolder) -> RunFolder:
    manifest = Manifest(SPEC.identity, 1, 1, 0, exact=True, sessions=1, wall_s=0.0, world="", machine={})
    folder.checkpoints.save(Checkpoint(manifest, {}))
    return folder


def test_a_new_folder_holds_the_spec_and_its_identity(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a" / "b", SPEC)
    assert folder.path == tmp_path / "a" / "b" / SPEC.name
    assert [each.name for each in folder.path.iterdir()] == ["spec.json"]
    told = json.loads((folder.path / "spec.json").read_text())
    assert told == {"format": 1, "identity": SPEC.identity, **SPEC.as_json()}
    assert RunFolder.open(folder.path) == RunFolder.open(str(folder.path)) == folder
    assert folder.spec == SPEC


def test_the_same_spec_finds_its_folder_as_it_was(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path, SPEC)
    before = (first.path / "spec.json").stat()
    again = RunFolder.create(tmp_path, replace(SPEC, origin={}))
    assert again.path == first.path
    assert again.spec.origin == SPEC.origin
    after = (first.path / "spec.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_folder_is_found_while_it_is_trained(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, SPEC).locked():
        assert RunFolder.create(tmp_path, SPEC).spec == SPEC


def test_other_specs_have_other_folders(tmp_path: Path) -> None:
    paths = {RunFolder.create(tmp_path, replace(SPEC, seed=seed)).path for seed in range(3)}
    assert len(paths) == 3


def test_processes_that_create_one_run_at_the_same_time_all_get_it(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from cycletime.runs.folder import RunFolder\n"
        "from tests.runs.test_folder import SPEC\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "for number in range(50):\n"
        "    RunFolder.create(Path(sys.argv[1]) / str(number), SPEC)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, complaints = process.communicate(timeout=60)
        assert process.returncode == 0, complaints
    assert len(list(tmp_path.glob("*/*/spec.json"))) == 50


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        assert refusal(path) == f"{str(path)!r} is no run: there is no spec.json in it."


def changed(tree: dict[str, Any], *, at: tuple[str, ...], to: Any) -> dict[str, Any]:  # noqa: ANN401
    return {**tree, at[0]: to if len(at) == 1 else changed(tree[at[0]], at=at[1:], to=to)}


@pytest.mark.parametrize(
    ("at", "to"),
    [
        (("env_steps",), 1001),
        (("seed",), 5),
        (("dt",), "18ms"),
        (("world", "task"), "double-pendulum"),
        (("agent", "discount"), 0.98),
        (("agent", "hidden"), [64]),
        (("engine", "device"), "gpu"),
        (("exploration",), None),
        (("exploration", "correlation"), "101ms"),
    ],
)
def test_a_changed_spec_is_refused(tmp_path: Path, at: tuple[str, ...], to: object) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    edit(folder, **changed(SPEC.as_json(), at=at, to=to))
    told = refusal(folder.path)
    assert "spec.json was changed, or written by a version of cycletime whose runs give other numbers" in told
    assert f"it says {SPEC.identity[:10]} and is " in told


def test_a_spec_that_says_the_same_in_other_words_is_the_same(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    edit(folder, dt="62.5Hz", origin={})
    assert RunFolder.open(folder.path).spec.identity == SPEC.identity


def test_a_run_of_code_that_gives_other_numbers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    monkeypatch.setattr(spec_module, "RESULT_VERSION", spec_module.RESULT_VERSION + 1)
    assert "whose runs give other numbers" in refusal(folder.path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": 2, "world": "something new"}, "has the format 2: this version of cycletime reads 1."),
        ({"algorithm": "dqn"}, "it lacks, or does not know, 'dqn'."),
        ({"seed": -1}, "seed is -1: it must be a whole number of at least 0."),
        ({"dt": "15ms"}, "the nearest cycle times are 14ms and 16ms."),
        ({"agent": {"gamma": 1}}, "unexpected keyword argument 'gamma'."),
        ({"agent": []}, "cannot be read as a run's spec: "),
        ({"engine": {"name": "metal"}}, "name is 'metal': it must be 'compiled' or 'stepped' or 'cuda'."),
        ({"exploration": {"noise": "brown"}}, "it lacks, or does not know, 'brown'."),
        ({"identity": 3}, "it says 3 and is "),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    edit(folder, **changes)
    told = refusal(folder.path)
    assert sentence in told
    assert str(folder.path / "spec.json") in told
    assert ".." not in told


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe", b'{"format": 1}'])
def test_a_spec_that_is_damaged_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    (folder.path / "spec.json").write_bytes(content)
    assert "cannot be read as a run's spec" in refusal(folder.path)


def test_a_folder_that_holds_another_run_is_not_taken_for_this_one(tmp_path: Path) -> None:
    other = RunFolder.create(tmp_path, replace(SPEC, seed=5))
    other.path.rename(tmp_path / SPEC.name)
    with pytest.raises(InputError, match=re.escape(f"holds another run, {other.spec.name}: put it back")):
        RunFolder.create(tmp_path, SPEC)


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=f"{SPEC.name} cannot be written: Not a directory"):
        RunFolder.create(tmp_path / "file", SPEC)
    with pytest.raises(RunError, match="cannot be written: the folder is read-only for you; give one"):
        RunFolder.create(Path("/sys/kernel"), SPEC)  # not even root may


# A run's life.


def test_a_run_begins_with_its_first_checkpoint_and_is_finished_with_its_result(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    assert (folder.has_begun, folder.is_finished) == (False, False)
    with_a_checkpoint(folder)
    assert (folder.has_begun, folder.is_finished) == (True, False)
    folder.write_result({"average_return": 1.5})
    assert (folder.has_begun, folder.is_finished) == (False, True)
    assert folder.result() == {"average_return": 1.5}
    assert sorted(each.name for each in folder.path.iterdir()) == ["result.json", "spec.json"]


def test_a_result_that_cannot_be_written_keeps_the_checkpoints(tmp_path: Path) -> None:
    folder = with_a_checkpoint(RunFolder.create(tmp_path, SPEC))
    (folder.path / "result.json").mkdir()
    (folder.path / "result.json" / "in the way").touch()
    with pytest.raises(RunError, match=r"result\.json cannot be written: "):
        folder.write_result({})
    assert folder.has_begun
    assert not folder.is_finished


@pytest.mark.parametrize("content", [None, b"{", b"\xff"])
def test_a_result_that_cannot_be_read_is_told_of(tmp_path: Path, content: bytes | None) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    if content is not None:
        (folder.path / "result.json").write_bytes(content)
    with pytest.raises(RunError, match=r"result\.json cannot be read: "):
        folder.result()


def test_sweeping_removes_what_was_left_unfinished_and_nothing_else(tmp_path: Path) -> None:
    folder = with_a_checkpoint(RunFolder.create(tmp_path, SPEC))
    (folder.path / ".writing-curve.parquet").touch()
    folder.sweep()
    assert sorted(each.name for each in folder.path.iterdir()) == ["checkpoints", "spec.json"]
    (folder.path / "result.json").write_text("{}")
    folder.sweep()
    assert sorted(each.name for each in folder.path.iterdir()) == ["result.json", "spec.json"]
