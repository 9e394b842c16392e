from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cycletime.errors import RunError
from cycletime.training import checkpoints as module
from cycletime.training.checkpoints import POLICY, Checkpoint, Checkpoints, Manifest
from tests.training.runs.finished import make_policy, make_run

IDENTITY, OTHER = "a" * 64, "b" * 64
ARRAYS: dict[str, Any] = {
    "position/weights": np.arange(12, dtype=np.float32).reshape(3, 4).T,
    "position/count": np.int64(7),
    "position/key": np.array([1, 2**32 - 1], np.uint32),
    "position/exact": np.bool_(True),
    "position/special": np.array([np.nan, np.inf, -0.0, 5e-324]),
    "curve/returns": np.zeros(0),
    "empty/table": np.zeros((0, 3), np.int32),
}


def a_manifest(env_steps: int = 100, **overrides: Any) -> Manifest:  # noqa: ANN401 - any of its fields
    values: dict[str, Any] = {
        "identity": IDENTITY,
        "env_steps": env_steps,
        "agent_steps": 50,
        "exact": True,
        "sessions": 2,
        "wall_s": 1.5,
        "world": "1f",
        "machine": {"jax": "0.10", "processor": "\N{GREEK SMALL LETTER MU}P"},
        "policy": {"world": "reacher", "format": 1},
        "remarks": ("stopped inside an episode",),
        **overrides,
    }
    return Manifest(**values)


def kept(folder: Path, *env_steps: int) -> Checkpoints:
    """A run with checkpoints at these steps."""
    checkpoints = Checkpoints(folder / "checkpoints")
    for steps in env_steps:
        checkpoints.save(Checkpoint(a_manifest(steps), ARRAYS))
    return checkpoints


def newest_file(checkpoints: Checkpoints, name: str) -> Path:
    return max(checkpoints.folder.glob("[0-9]*")) / name


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def falls_back(checkpoints: Checkpoints) -> str:
    """Expect the older of two checkpoints, and give what is said of the newer."""
    damaged = newest_file(checkpoints, "").absolute()
    checkpoint, sentences = checkpoints.newest(IDENTITY)
    assert checkpoint is not None
    assert checkpoint.manifest == a_manifest(1)
    assert len(sentences) == 1
    aside = damaged.with_name(f"unusable-{damaged.name}")
    assert sentences[0].startswith(f"The checkpoint {damaged} ")
    assert sentences[0].endswith(f"; it is now {aside}.")
    return sentences[0].removeprefix(f"The checkpoint {damaged} ").partition(";")[0]


def test_what_is_kept_comes_back_bit_for_bit(tmp_path: Path) -> None:
    checkpoint, sentences = kept(tmp_path, 100).newest(IDENTITY)
    assert checkpoint is not None
    assert sentences == []
    assert checkpoint.manifest == a_manifest()
    assert checkpoint.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        back = checkpoint.arrays[name]
        assert (back.shape, back.dtype, back.tobytes()) == (np.shape(array), array.dtype, array.tobytes())


def test_arrays_are_told_apart_by_what_their_names_begin_with() -> None:
    below = Checkpoint(a_manifest(), ARRAYS).below("position/")
    assert below.keys() == {"weights", "count", "key", "exact", "special"}
    assert below["count"] == 7


def test_the_policy_is_among_the_arrays(tmp_path: Path) -> None:
    policy = make_policy(make_run().spec)
    arrays = {**ARRAYS, **{POLICY + name: array for name, array in policy.arrays().items()}}
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.save(Checkpoint(a_manifest(policy=policy.description()), arrays))
    newest, _ = checkpoints.newest(IDENTITY)
    assert newest is not None
    back = newest.policy()
    assert back.description() == policy.description()
    seen = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(back.in_numpy().act(seen), policy.in_numpy().act(seen))


def test_before_the_first_there_is_none(tmp_path: Path) -> None:
    assert kept(tmp_path).newest(IDENTITY) == (None, [])


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, *range(1, 5))
    assert sorted(each.name for each in checkpoints.folder.iterdir()) == ["000003", "000004"]
    newest, _ = checkpoints.newest(IDENTITY)
    assert newest is not None
    assert newest.manifest.env_steps == 4


def test_the_newest_is_the_one_with_the_greatest_number_not_the_last_name(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1)
    (checkpoints.folder / "000001").rename(checkpoints.folder / "999999")
    for steps in (2, 3):
        checkpoints.save(Checkpoint(a_manifest(steps), ARRAYS))
    newest, _ = checkpoints.newest(IDENTITY)
    assert newest is not None
    assert newest.manifest.env_steps == 3


def test_all_are_removed_in_the_end(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    checkpoints.remove()
    checkpoints.remove()
    assert list(tmp_path.iterdir()) == []


# Damage.


@settings(max_examples=25)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_flipped_bit_anywhere_in_the_arrays_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    checkpoints = kept(tmp_path_factory.mktemp("run"), 1, 2)
    path = newest_file(checkpoints, "arrays.npz")
    flip(path, int(share * path.stat().st_size))
    assert falls_back(checkpoints) == "is damaged: arrays.npz is not what its manifest says"


@settings(max_examples=25)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_flipped_bit_anywhere_in_the_manifest_is_noticed_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    checkpoints = kept(tmp_path_factory.mktemp("run"), 1, 2)
    path = newest_file(checkpoints, "manifest.json")
    flip(path, int(share * path.stat().st_size))
    checkpoint, sentences = checkpoints.newest(IDENTITY)
    assert checkpoint is not None
    assert checkpoint.manifest == a_manifest(1 if sentences else 2)


@pytest.mark.parametrize("each", fields(Manifest), ids=lambda each: each.name)
def test_another_value_in_the_manifest_is_noticed(tmp_path: Path, each: Any) -> None:  # noqa: ANN401 - a field
    checkpoints = kept(tmp_path, 1, 2)
    path = newest_file(checkpoints, "manifest.json")
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, each.name: "another"}))
    assert falls_back(checkpoints) == "is damaged: its manifest.json was changed"


@pytest.mark.parametrize("name", ["arrays.npz", "manifest.json"])
@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_noticed(tmp_path: Path, name: str, share: float) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    path = newest_file(checkpoints, name)
    os.truncate(path, int(share * path.stat().st_size))
    assert falls_back(checkpoints).startswith("is damaged: ")


@pytest.mark.parametrize("name", ["arrays.npz", "manifest.json"])
def test_a_missing_file_is_noticed(tmp_path: Path, name: str) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    newest_file(checkpoints, name).unlink()
    assert falls_back(checkpoints) == f"is damaged: its {name} cannot be read"


@pytest.mark.parametrize("content", ["[]", "null", "3", '"text"', "\x00\xff", "[" * 10**5, "{}", '{"format": 1}'])
def test_any_other_manifest_is_noticed(tmp_path: Path, content: str) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    newest_file(checkpoints, "manifest.json").write_text(content)
    what = "was changed" if content.startswith("{") else "cannot be read"
    assert falls_back(checkpoints) == f"is damaged: its manifest.json {what}"


def test_a_checkpoint_of_another_run_is_not_taken(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1)
    checkpoints.save(Checkpoint(a_manifest(2, identity=OTHER), ARRAYS))
    assert falls_back(checkpoints) == "belongs to another run (bbbbbbbbbb, and this is aaaaaaaaaa)"


def write_manifest(path: Path, told: dict[str, Any]) -> None:
    """A manifest whose own hash is right."""
    digest = sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**told, "sha256": digest}))


def test_a_checkpoint_of_another_format_is_not_taken_whatever_else_it_says(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    write_manifest(newest_file(checkpoints, "manifest.json"), {"format": 1, "arrays_sha256": "", "new": 1})
    assert falls_back(checkpoints) == "has the format 1, and this version of cycletime reads 2"


class Bomb:
    """What pickle would run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def with_an_object(bomb: Bomb) -> bytes:
    """An archive of NumPy's with a pickle in it."""
    buffer = BytesIO()
    np.savez(buffer, weights=np.array([bomb], object))
    return buffer.getvalue()


@pytest.mark.parametrize("as_bytes", [pickle.dumps, with_an_object])
def test_a_pickle_in_place_of_the_arrays_is_never_run(tmp_path: Path, as_bytes: Callable[[Bomb], bytes]) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    bomb = as_bytes(Bomb(tmp_path / "exploded"))
    path = newest_file(checkpoints, "arrays.npz")
    path.write_bytes(bomb)
    told = json.loads(path.with_name("manifest.json").read_text())
    del told["sha256"]
    write_manifest(path.with_name("manifest.json"), {**told, "arrays_sha256": sha256(bomb).hexdigest()})
    assert falls_back(checkpoints) == "is damaged: its arrays.npz cannot be read"
    assert not (tmp_path / "exploded").exists()
    pickle.loads(pickle.dumps(Bomb(tmp_path / "exploded")))
    assert (tmp_path / "exploded").exists()


def test_where_none_is_left_all_are_told_of_and_stay(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    for path in checkpoints.folder.glob("*/manifest.json"):
        path.unlink()
    with pytest.raises(RunError) as caught:
        checkpoints.newest(IDENTITY)
    one, two = (
        f"The checkpoint {checkpoints.folder / name} is damaged: its manifest.json cannot be read."
        for name in ("000001", "000002")
    )
    assert str(caught.value) == f"{two} {one} No other is left: restore one, or delete {tmp_path} to begin anew."
    assert sorted(each.name for each in checkpoints.folder.iterdir()) == ["000001", "000002"]


def test_one_that_cannot_be_used_does_not_count_as_one_of_the_last_two(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1)
    for _ in range(2):
        checkpoints.save(Checkpoint(a_manifest(2), ARRAYS))
        flip(newest_file(checkpoints, "arrays.npz"), -1)
        falls_back(checkpoints)
    checkpoints.save(Checkpoint(a_manifest(3), ARRAYS))
    flip(checkpoints.folder / "000002" / "arrays.npz", -1)
    falls_back(checkpoints)
    checkpoints.remove()
    assert not checkpoints.folder.exists()


# Being stopped while saving.


def test_being_killed_while_saving_leaves_the_last_one(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1)
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from cycletime.training import checkpoints as module\n"
        "from tests.training.runs.test_checkpoints import kept\n"
        "def save_half(file, **arrays):\n"
        "    file.write(b'half')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "module.np.savez = save_half\n"
        "kept(Path(sys.argv[1]), 2)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(list(checkpoints.folder.iterdir())) == 2
    newest, sentences = checkpoints.newest(IDENTITY)
    assert newest is not None
    assert (newest.manifest.env_steps, sentences) == (1, [])
    assert [each.name for each in checkpoints.folder.iterdir()] == ["000001"]


def test_a_full_disk_while_saving_leaves_the_last_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = kept(tmp_path, 1, 2)

    def save_until_full(file: object, **arrays: Any) -> None:  # noqa: ANN401
        with Path("/dev/full").open("wb") as disk:
            np.save(disk, np.zeros(10_000))

    monkeypatch.setattr("cycletime.training.checkpoints.np.savez", save_until_full)
    with pytest.raises(RunError, match="000003 cannot be written: the disk is full; make room and resume"):
        checkpoints.save(Checkpoint(a_manifest(3), ARRAYS))
    assert sorted(each.name for each in checkpoints.folder.iterdir()) == ["000001", "000002"]


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(RunError, match="is a file; give a folder"):
        kept(tmp_path / "run", 1)


def test_a_checkpoint_that_was_half_removed_does_not_matter(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    shutil.copytree(checkpoints.folder / "000002", checkpoints.folder / "000003")
    (checkpoints.folder / "000001" / "manifest.json").unlink()
    newest, sentences = checkpoints.newest(IDENTITY)
    assert newest is not None
    assert (newest.manifest, sentences) == (replace(a_manifest(), env_steps=2), [])
    checkpoints.save(Checkpoint(a_manifest(4), ARRAYS))
    assert sorted(each.name for each in checkpoints.folder.iterdir()) == ["000003", "000004"]


def test_one_that_may_not_be_read_is_not_called_damaged_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = kept(tmp_path, 1, 2)

    def refuse(path: Path, most_bytes: int) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(module, "read_bounded", refuse)
        with pytest.raises(RunError, match=r"json may not be read by you \(Permission denied\): have its owner"):
            checkpoints.newest(IDENTITY)
    newest, sentences = checkpoints.newest(IDENTITY)
    assert newest is not None
    assert (newest.manifest.env_steps, sentences) == (2, [])


def test_whether_any_can_be_used_is_told_without_a_change(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    flip(newest_file(checkpoints, "arrays.npz"), -1)
    before = sorted(tmp_path.rglob("*"))
    assert checkpoints.fault(IDENTITY) is None
    assert "No other is left" in (checkpoints.fault(OTHER) or "")
    assert sorted(tmp_path.rglob("*")) == before


def test_arrays_that_declare_more_than_there_is_are_refused(tmp_path: Path) -> None:
    checkpoints = kept(tmp_path, 1, 2)
    path = newest_file(checkpoints, "arrays.npz")
    np.savez_compressed(path, zeros=np.zeros(10**6))
    told = json.loads(path.with_name("manifest.json").read_text())
    del told["sha256"]
    digest = sha256(path.read_bytes()).hexdigest()
    write_manifest(path.with_name("manifest.json"), {**told, "arrays_sha256": digest})
    assert falls_back(checkpoints) == "is damaged: its arrays.npz cannot be read"
