from __future__ import annotations

import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.agents import PPOAgent
from cycletime.agents.exploration import OrnsteinUhlenbeck
from cycletime.cli.output import result_line
from cycletime.duration import Duration
from cycletime.errors import InputError, RunError
from cycletime.training import spec as spec_module
from cycletime.training.finished_run import FinishedRun
from cycletime.training.learning_curve import Episodes, read_curve
from cycletime.training.policy_file import read_policy
from cycletime.training.run_folder import RunFolder
from cycletime.training.sealed_json import sealed_text
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.training.runs.finished import AGENTS, all_of, make_policy, run_of, save_checkpoint

SPEC = RunSpec(
    world=ClosedFormWorld("reacher"),
    agent=PPOAgent(),
    dt="16ms",
    env_steps=1000,
    seed=4,
    exploration=OrnsteinUhlenbeck("100ms"),
    origin={"rule": "dt-aware", "tuned_at": "16ms", "tuned": {"batch": 2000}},
)
SMALL = replace(SPEC, agent=AGENTS["ppo"])


def edit(folder: RunFolder, **changes: Any) -> None:  # noqa: ANN401 - anything that JSON can say
    reseal(folder.path / "spec.json", changes)


def reseal(file: Path, changes: dict[str, Any]) -> None:
    """Change what a file tells, and its seal with it."""
    told = json.loads(file.read_text())
    del told["sha256"]
    file.write_text(sealed_text({**told, **changes}))


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        RunFolder.open(path)
    return str(caught.value)


def with_a_checkpoint(folder: RunFolder) -> RunFolder:
    return save_checkpoint(folder, replace(make_policy(SMALL), env_steps=1))


def test_a_new_folder_holds_the_spec_and_its_identity(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a" / "b", SPEC)
    assert folder.path == tmp_path / "a" / "b" / SPEC.name
    assert [each.name for each in folder.path.iterdir()] == ["spec.json"]
    told = json.loads((folder.path / "spec.json").read_text())
    assert len(told.pop("sha256")) == 64
    assert told == {"format": 2, "identity": SPEC.identity, **SPEC.as_json()}
    assert RunFolder.open(folder.path) == RunFolder.open(str(folder.path)) == folder
    assert folder.spec == SPEC


def test_the_same_spec_finds_its_folder_as_it_was(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path, SPEC)
    before = (first.path / "spec.json").stat()
    again = RunFolder.create(tmp_path, replace(SPEC, origin={}))
    assert again.path == first.path
    assert RunFolder.open(first.path).spec.origin == SPEC.origin
    after = (first.path / "spec.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_folder_is_found_while_it_is_trained(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, SPEC).locked():
        assert RunFolder.create(tmp_path, SPEC).spec == SPEC


def test_other_specs_have_other_folders(tmp_path: Path) -> None:
    paths = {RunFolder.create(tmp_path, replace(SPEC, seed=seed)).path for seed in range(3)}
    assert len(paths) == 3


def test_those_who_create_one_run_at_the_same_time_all_get_it(tmp_path: Path) -> None:
    begin = threading.Barrier(4)

    def create() -> list[RunSpec]:
        begin.wait()
        return [RunFolder.create(tmp_path / str(number), SPEC).spec for number in range(40)]

    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(create) for _ in range(4)]
    assert all(each.result() == [SPEC] * 40 for each in made)
    assert len(list(tmp_path.glob("*/*/spec.json"))) == len(list(tmp_path.glob("*/*/*"))) == 40


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path) == f"{str(tmp_path)!r} is not a run: there is no spec.json in it."
    missing, file = str(tmp_path / "missing"), str(tmp_path / "file")
    assert refusal(Path(missing)) == f"There is no folder {missing!r}: give a run's, which 'cycletime train' prints."
    assert refusal(Path(file)) == f"{file!r} is a file: give the run's folder."


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
        ({"format": 3, "world": "something new"}, "has the format 3: this version of cycletime reads 1 and 2."),
        ({"algorithm": "dqn"}, "it lacks, or does not know, 'dqn'."),
        ({"seed": -1}, "seed is -1: it must be a whole number of at least 0."),
        ({"dt": "15ms"}, "the nearest cycle times are 14ms and 16ms."),
        ({"agent": {"gamma": 1}}, "unexpected keyword argument 'gamma'."),
        ({"agent": []}, "cannot be read as a run's spec: "),
        ({"engine": {"device": "metal"}}, "device is 'metal': it must be 'cpu' or 'gpu'."),
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
    with pytest.raises(RunError, match="is a file; give a folder"):
        RunFolder.create(tmp_path / "file", SPEC)
    with pytest.raises(RunError, match="cannot be written: the folder is read-only for you; give one"):
        RunFolder.create(Path("/sys/kernel"), SPEC)  # not even root may


# A run's life.


def write_finished(folder: RunFolder, run: FinishedRun | None = None) -> FinishedRun:
    run = run or run_of(folder.spec, a_curve())
    folder.write_finished(run, Duration("2ms"))
    return run


def a_curve() -> Episodes:
    ends = np.array([300, 700, 1000], np.int64)
    return Episodes(ends, ends // 8, np.array([1.0, -2.5, 3.0]), np.diff(ends, prepend=0))


def test_a_run_begins_with_its_first_checkpoint_and_is_finished_with_its_result(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SMALL)
    assert (folder.has_begun, folder.is_finished) == (False, False)
    with_a_checkpoint(folder)
    assert (folder.has_begun, folder.is_finished) == (True, False)
    run = write_finished(folder)
    assert (folder.has_begun, folder.is_finished) == (False, True)
    files = {"curve.parquet", "metrics.jsonl", "policy.safetensors"}
    assert json.loads((folder.path / "result.json").read_text())["files"].keys() == files
    assert folder.result() == run.result
    assert {each.name for each in folder.path.iterdir()} == {*files, "result.json", "spec.json"}
    assert len({each.stat().st_mode for each in folder.path.iterdir()}) == 1, "others may read all or none"
    assert all_of(folder.finished()) == all_of(run)


def test_a_run_that_learned_nothing_and_one_that_went_astray_come_back(tmp_path: Path) -> None:
    ends = np.array([300, 1000], np.int64)
    astray = Episodes(ends, ends, np.array([np.nan, np.inf]), np.diff(ends, prepend=0))
    for number, run in enumerate((run_of(SMALL, Episodes.none(), lines=0), run_of(SMALL, astray))):
        if run.metrics:
            run = replace(run, metrics={**run.metrics, "kl": np.full(5, np.nan)})
        folder = RunFolder.create(tmp_path / str(number), SMALL)
        write_finished(folder, run)
        assert all_of(folder.finished()) == all_of(run)


def test_a_snapshot_is_how_far_a_run_is_and_no_result(tmp_path: Path) -> None:
    folder, run = RunFolder.create(tmp_path, SMALL), run_of(SMALL, a_curve())
    assert run.policy is not None
    folder.write_snapshot(a_curve(), run.metrics, run.policy, Duration("2ms"))
    assert not folder.is_finished
    assert read_curve((folder.path / "curve.parquet").read_bytes(), Duration("2ms"), 3).returns.tolist() == [
        1.0,
        -2.5,
        3.0,
    ]
    lines = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
    assert [line["agent_steps"] for line in lines] == run.metrics["agent_steps"].tolist()
    assert read_policy(folder.policy_file).description() == run.policy.description()


@pytest.mark.parametrize("name", ["curve.parquet", "metrics.jsonl", "policy.safetensors"])
def test_a_finished_run_with_a_changed_or_missing_file_is_told_of(tmp_path: Path, name: str) -> None:
    folder = RunFolder.create(tmp_path, SMALL)
    write_finished(folder)
    path = folder.path / name
    content = path.read_bytes()
    path.write_bytes(content + b" ")
    with pytest.raises(RunError, match=f"{name} of {folder.path} is not what was written: its hash is"):
        folder.finished()
    path.unlink()
    with pytest.raises(RunError, match=str(folder.path)):
        folder.finished()


def test_a_result_that_does_not_fit_the_files_is_told_of(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SMALL)
    write_finished(folder)
    file = folder.path / "result.json"
    own = file.read_text()
    for change, reason in (
        ({"average_return": 7.0}, "its result says 7.0 as average_return, and it is"),
        ({"env_dt_s": "soon"}, "is not a finished run: "),
        ({"files": {}}, "is not what was written"),
        ({"files": []}, "is not what was written"),
        ({"sha257": ""}, "its result says sha257, which no result does"),
    ):
        file.write_text(own)
        reseal(file, change)
        with pytest.raises(RunError, match=reason):
            folder.finished()
    file.write_text(own.replace('"seed": 4', '"seed": 5'))
    for read in (folder.finished, folder.result):
        with pytest.raises(RunError, match=r"result\.json cannot be read: it was changed since it was written\."):
            read()


def test_the_policy_is_the_last_checkpoint_s_until_there_is_a_file(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SMALL)
    with pytest.raises(InputError, match="a run writes its policy with its first checkpoint"):
        folder.policy()
    with_a_checkpoint(folder)
    assert folder.policy().env_steps == 1
    write_finished(folder)
    assert folder.policy().env_steps == 1000


def test_a_folder_is_made_with_the_first_checkpoint_and_removed_when_the_run_is_kept_elsewhere(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / SMALL.name, SMALL)
    assert not folder.path.exists()
    folder.make()
    with_a_checkpoint(folder)
    assert RunFolder.open(folder.path).has_begun
    folder.remove()
    folder.remove()
    assert not list((tmp_path / "runs").iterdir())


def test_a_result_that_cannot_be_written_keeps_the_checkpoints(tmp_path: Path) -> None:
    folder = with_a_checkpoint(RunFolder.create(tmp_path, SMALL))
    (folder.path / "result.json").mkdir()
    (folder.path / "result.json" / "in the way").touch()
    with pytest.raises(RunError, match=r"result\.json cannot be written: "):
        write_finished(folder)
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


def test_a_spec_s_origin_is_protected_too(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    file = folder.path / "spec.json"
    file.write_text(file.read_text().replace('"dt-aware"', '"dt-awars"'))
    assert refusal(folder.path).endswith("cannot be read as a run's spec: it was changed since it was written.")


def test_a_spec_without_a_seal_is_one_of_an_older_version(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    told = {"format": 1, "identity": SPEC.identity, **SPEC.as_json()}
    (folder.path / "spec.json").write_text(json.dumps(told))
    assert RunFolder.open(folder.path) == folder
    (folder.path / "spec.json").write_text(json.dumps({**told, "sha257": ""}))
    assert "it was changed" in refusal(folder.path)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 10**5, b'{"format": 1, "seed": ' + b"9" * 400])
def test_who_knows_the_spec_writes_one_that_is_damaged_anew(tmp_path: Path, content: bytes) -> None:
    folder = with_a_checkpoint(RunFolder.create(tmp_path, SMALL))
    before = (folder.path / "spec.json").read_bytes()
    (folder.path / "spec.json").write_bytes(content)
    folder.make()
    assert (folder.path / "spec.json").read_bytes() == before
    assert RunFolder.open(folder.path).has_begun


# What is in a folder of someone else's.

FILES = ("curve.parquet", "metrics.jsonl", "policy.safetensors", "result.json")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("hostile", ["fifo", "/dev/zero"])
def test_a_file_that_does_not_end_is_refused_and_not_waited_for(tmp_path: Path, name: str, hostile: str) -> None:
    folder = RunFolder.create(tmp_path, SMALL)
    write_finished(folder)
    replace_by(folder.path / name, hostile)
    for read in (folder.finished, folder.result) if name == "result.json" else (folder.finished, folder.policy):
        with pytest.raises((RunError, InputError), match=r"is a (pipe|device): give a regular file"):
            read()
    replace_by(folder.path / "spec.json", hostile)
    with pytest.raises(InputError, match=r"spec.json is a (pipe|device): give a regular file"):
        RunFolder.open(folder.path)


@pytest.mark.parametrize("name", ["manifest.json", "arrays.npz"])
@pytest.mark.parametrize("hostile", ["fifo", "/dev/zero"])
def test_a_checkpoint_that_does_not_end_is_damaged(tmp_path: Path, name: str, hostile: str) -> None:
    folder = with_a_checkpoint(RunFolder.create(tmp_path, SMALL))
    replace_by(folder.path / "checkpoints" / "000001" / name, hostile)
    with pytest.raises(RunError, match=f"is damaged: its {name} cannot be read"):
        folder.policy()


def replace_by(path: Path, hostile: str) -> None:
    path.unlink()
    if hostile == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(hostile)


def test_a_deleted_seal_is_found_unless_the_first_versions_wrote_the_whole_folder(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SMALL)
    write_finished(folder)
    result, spec = folder.path / "result.json", folder.path / "spec.json"
    unseal(result, average_return=999.0)
    with pytest.raises(RunError, match="it was changed since it was written"):
        folder.result()
    unseal(spec)
    assert "it was changed since it was written" in refusal(folder.path)
    unseal(spec, format=1)
    old = RunFolder.open(folder.path)
    assert not old.is_sealed
    with pytest.raises(RunError, match=r"its result says 999\.0 as average_return"):
        old.result()
    unseal(result, average_return=run_of(SMALL, a_curve()).result["average_return"])
    told = old.result()
    assert told == {**run_of(SMALL, a_curve()).result, "finished": told["finished"], "sealed": False}
    assert result_line(told, old.path).splitlines()[0].endswith(" s, not sealed")


def unseal(file: Path, **changes: Any) -> None:  # noqa: ANN401 - anything that JSON can say
    told = {**json.loads(file.read_text()), **changes}
    told.pop("sha256", None)
    file.write_text(json.dumps(told))


def test_every_flip_in_a_policy_of_a_finished_run_is_found(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SMALL)
    write_finished(folder)
    content = folder.policy_file.read_bytes()
    for place in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        folder.policy_file.write_bytes(flipped)
        with pytest.raises(RunError, match="is not what was written"):
            folder.policy()


def test_an_unfinished_run_is_read_from_its_checkpoint_and_not_from_what_is_for_other_programs(tmp_path: Path) -> None:
    folder, run = with_a_checkpoint(RunFolder.create(tmp_path, SMALL)), run_of(SMALL, a_curve())
    assert run.policy is not None
    folder.write_snapshot(a_curve(), run.metrics, run.policy, Duration("2ms"))
    assert (folder.policy().env_steps, len(folder.so_far().curve)) == (1, 0)
    arrays = folder.path / "checkpoints" / "000001" / "arrays.npz"
    content = arrays.read_bytes()
    arrays.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(RunError, match="is not what its manifest says"):
        folder.so_far()
    assert arrays.exists(), "who only reads puts nothing aside"
