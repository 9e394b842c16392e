"""Damaged and foreign checkpoints, a full disk, another machine, environments that forget their seeds.

Each is told in one sentence, and loses nothing.
"""

import errno
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from cycletime.duration import Duration
from cycletime.errors import InputError, RunError
from cycletime.training import atomic_files, run_recorder, stepped_engine
from cycletime.training import stepped_loop as loops_stepped
from cycletime.training.engine import closed_form_info, make_batch
from cycletime.training.machine import this_machine
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld, GymnasiumEnv, make_env
from tests.training.engines.scripted import train

Ears = Callable[..., Any]
After = Callable[[int], Callable[[], bool]]
LeftBy = Callable[[RunFolder], dict[str, Any]]


@pytest.fixture
def whole(tmp_path: Path, walk: RunSpec) -> RunFolder:
    """A run that nothing happened to."""
    folder = RunFolder.create(tmp_path / "whole", walk)
    train(folder)
    return folder


@pytest.fixture
def stopped(tmp_path: Path, walk: RunSpec, after: After) -> RunFolder:
    """The same, stopped with checkpoints at 100 and 140 environment steps."""
    folder = RunFolder.create(tmp_path, walk)
    for count in (5, 2):
        train(folder, stop=after(count))
    return folder


def checkpoints(folder: RunFolder) -> list[Path]:
    return sorted(folder.checkpoints.folder.iterdir())


def _flip_a_bit(checkpoint: Path) -> None:
    file = checkpoint / "arrays.npz"
    numbers = bytearray(file.read_bytes())
    numbers[-5] ^= 1
    file.write_bytes(numbers)


def _cut_off(checkpoint: Path) -> None:
    file = checkpoint / "arrays.npz"
    file.write_bytes(file.read_bytes()[:-1])


def _lose_the_manifest(checkpoint: Path) -> None:
    (checkpoint / "manifest.json").unlink()


def _garble_the_manifest(checkpoint: Path) -> None:
    (checkpoint / "manifest.json").write_text("{")


def _swap_for_another_run_s(checkpoint: Path) -> None:
    spec = RunFolder.open(checkpoint.parents[1]).spec
    other = RunFolder.create(checkpoint.parents[2] / "other", replace(spec, seed=4))
    train(other, stop=lambda: True)
    shutil.rmtree(checkpoint)
    shutil.copytree(checkpoints(other)[-1], checkpoint)


DAMAGES = {
    _flip_a_bit: "is damaged: arrays.npz is not what its manifest says",
    _cut_off: "is damaged: arrays.npz is not what its manifest says",
    _lose_the_manifest: "is damaged: its manifest.json cannot be read",
    _garble_the_manifest: "is damaged: its manifest.json cannot be read",
    _swap_for_another_run_s: "belongs to another run (",
}


@pytest.mark.parametrize(("damage", "says"), DAMAGES.items())
def test_a_checkpoint_that_cannot_be_used_is_told_of_and_the_one_before_it_gives_the_same_bytes(
    stopped: RunFolder,
    whole: RunFolder,
    make_ear: Ears,
    left_by: LeftBy,
    damage: Callable[[Path], None],
    says: str,
) -> None:
    damage(checkpoints(stopped)[-1])
    ear = make_ear()
    assert train(stopped, [ear]) == "finished"
    assert ear.heard[0] == ("begin", 100)
    assert len(ear.remarks) == 1
    assert f"The checkpoint {stopped.checkpoints.folder / '000002'} {says}" in ear.remarks[0]
    assert left_by(stopped) == left_by(whole)
    assert stopped.result()["resumed"] == "resumed, identical"


@pytest.mark.parametrize(("damage", "says"), DAMAGES.items())
def test_where_no_checkpoint_can_be_used_the_run_is_refused_and_nothing_removed(
    stopped: RunFolder, make_ear: Ears, damage: Callable[[Path], None], says: str
) -> None:
    for checkpoint in checkpoints(stopped):
        damage(checkpoint)
    before = sorted(stopped.path.rglob("*"))
    ear = make_ear()
    with pytest.raises(RunError) as refused:
        train(stopped, [ear])
    assert str(refused.value).count(says) == 2
    assert "No other is left: restore one" in str(refused.value)
    assert sorted(stopped.path.rglob("*")) == before
    assert ear.heard == []


def test_a_changed_spec_is_refused_and_put_back_it_goes_on(
    stopped: RunFolder, whole: RunFolder, left_by: LeftBy
) -> None:
    file = stopped.path / "spec.json"
    own = file.read_text()
    file.write_text(own.replace('"seed": 3', '"seed": 4'))
    with pytest.raises(InputError, match=r"spec.json was changed, .* Put it back, or train anew in another folder"):
        RunFolder.open(stopped.path)
    file.write_text(own)
    train(RunFolder.open(stopped.path))
    assert left_by(stopped) == left_by(whole)


@pytest.mark.parametrize("file", ["curve.parquet", "policy.safetensors", "000003", "result.json"])
def test_a_disk_that_is_full_is_one_sentence_and_with_room_the_run_goes_on_to_the_same_bytes(
    stopped: RunFolder,
    whole: RunFolder,
    make_ear: Ears,
    left_by: LeftBy,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
) -> None:
    before = {path.name for path in checkpoints(stopped)}

    def flush(path: Path) -> None:
        if file in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")

    ear = make_ear()
    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "_flush", flush)
        with pytest.raises(RunError) as refused:
            train(stopped, [ear], checkpoint_s=0)
    assert str(refused.value).endswith(
        f"{file} cannot be written: the disk is full; make room and resume, what was saved before is untouched."
    )
    assert ear.heard[-1] == ("end", "failed")
    assert not list(stopped.path.rglob(".writing-*"))
    assert file != "000003" or before == {path.name for path in checkpoints(stopped)}
    assert train(stopped) == "finished"
    assert left_by(stopped) == left_by(whole)


@pytest.mark.parametrize(("key", "label"), {"jax": "JAX", "device": "device", "processor": "processor"}.items())
def test_a_run_that_moves_to_another_machine_is_labelled_for_good(
    stopped: RunFolder, make_ear: Ears, after: After, monkeypatch: pytest.MonkeyPatch, key: str, label: str
) -> None:
    before = this_machine()
    reason = f"{label} {before[key]} then, another now"
    monkeypatch.setattr(run_recorder, "this_machine", lambda: {**before, key: "another"})
    first, second = make_ear(), make_ear()
    train(stopped, [first], stop=after(1))
    train(stopped, [second])  # there again, yet what came from elsewhere is still part of it
    assert first.remarks == second.remarks == [f"Resumed, not identical: {reason}."]
    assert first.heard[:2] == [("begin", 140), *first.remarks]
    assert (stopped.result()["resumed"], stopped.result()["remarks"]) == ("resumed, not identical", [reason])


@pytest.mark.parametrize("name", ["Unseeded", "Wearing"])
def test_an_environment_whose_seed_does_not_determine_its_episodes_is_labelled_when_resumed(
    tmp_path: Path, walk: RunSpec, make_ear: Ears, after: After, name: str
) -> None:
    spec = replace(walk, world=GymnasiumEnv(f"toys/{name}-v0", Duration("50ms")))
    reason = f"a reset of toys/{name}-v0 with a seed does not determine the episode"
    folder, alone, ear = RunFolder.create(tmp_path, spec), RunFolder.create(tmp_path / "alone", spec), make_ear()
    train(folder, stop=after(3))
    train(folder, [ear])
    assert ear.remarks == [f"Resumed, not identical: {reason}."]
    assert (folder.result()["resumed"], folder.result()["remarks"]) == ("resumed, not identical", [reason])
    train(alone)
    assert (alone.result()["resumed"], alone.result()["remarks"]) == ("never", [])


def test_an_environment_that_was_changed_in_between_is_noticed(
    stopped: RunFolder, make_ear: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_class(), "noise", lambda self: float(self.np_random.normal(0, 0.2)))
    ear = make_ear()
    train(stopped, [ear])
    assert ear.remarks == ["Resumed, not identical: toys/Walk-v0 does not behave as it did."]


def walk_class() -> type:
    return type(gymnasium.make("toys/Walk-v0").unwrapped)


def test_a_run_whose_folder_is_deleted_while_it_is_trained_writes_no_more(
    tmp_path: Path, walk: RunSpec, make_ear: Ears
) -> None:
    folder = RunFolder.create(tmp_path, walk)

    def delete_and_begin_anew() -> None:
        shutil.rmtree(folder.path)
        RunFolder.create(tmp_path, walk)

    ear = make_ear(does=delete_and_begin_anew)
    with pytest.raises(RunError, match=r"^The run .* was deleted or replaced in training: nothing was saved\.$"):
        train(folder, [ear])
    assert [each.name for each in folder.path.iterdir()] == ["spec.json"]


def test_a_finished_run_on_a_disk_that_is_read_only_by_now_is_finished(
    whole: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: RunFolder) -> None:
        raise RunError("the lock cannot be written")

    monkeypatch.setattr(RunFolder, "locked", refuse)
    assert train(whole) == "finished"


def test_environments_are_told_apart_by_whether_a_used_one_begins_like_a_fresh_one() -> None:
    def begins_alike(name: str) -> bool:
        used, fresh = (make_env(GymnasiumEnv(name, Duration("50ms")), Duration("50ms")) for _ in range(2))
        stepped_engine.trace_env(used, seed=2)
        return stepped_engine.trace_env(used, seed=1) == stepped_engine.trace_env(fresh, seed=1)

    names = ("toys/Walk-v0", "Pendulum-v1", "toys/Unseeded-v0", "toys/Wearing-v0")
    assert [begins_alike(name) for name in names] == [True, True, False, False]


def test_episodes_without_an_end_can_be_stopped_and_resumed_and_the_result_says_so(
    tmp_path: Path, walk: RunSpec, after: After, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops_stepped, "LONG_EPISODE_S", 0)
    endless = RunFolder.create(tmp_path, replace(walk, world=GymnasiumEnv("toys/Endless-v0", Duration("50ms"))))
    assert train(endless, stop=after(7)) == "stopped"
    assert len(checkpoints(endless)) == 1
    assert train(endless) == "finished"
    told = endless.result()
    assert (told["resumed"], told["remarks"]) == ("resumed, not identical", ["it was stopped inside an episode"])


def test_a_moment_inside_an_episode_does_not_replace_one_that_a_run_goes_on_from_exactly(
    tmp_path: Path, walk: RunSpec, whole: RunFolder, after: After, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.create(tmp_path / "again", walk)
    train(folder, stop=after(3))
    before = checkpoints(folder)
    monkeypatch.setattr(loops_stepped, "LONG_EPISODE_S", 0)
    assert train(folder, stop=after(2)) == "stopped"
    assert checkpoints(folder) == before
    train(folder, checkpoint_s=0)
    assert folder.result()["resumed"] == "resumed, identical"
    assert folder.policy_file.read_bytes() == whole.policy_file.read_bytes()


@pytest.mark.parametrize(
    ("env_id", "dt", "where", "simulators"),
    [
        ("toys/Walk-v0", "50ms", "Gymnasium", ("gymnasium", "numpy")),
        ("Reacher-v5", "20ms", "MuJoCo", ("gymnasium", "mujoco", "numpy")),
        ("cycletime/BulletReacher-v0", "16ms", "PyBullet", ("pybullet", "numpy")),
        ("cycletime/Reacher-v0", "16ms", "closed form", ()),
        ("cycletime/URReacher-v0", "40ms", "simulated robot", ()),
    ],
)
def test_results_are_labelled_by_what_simulates_the_world(
    walk: RunSpec, env_id: str, dt: str, where: str, simulators: tuple[str, ...]
) -> None:
    env_dt = Duration("50ms") if env_id.startswith("toys") else None
    group = make_batch([replace(walk, world=GymnasiumEnv(env_id, env_dt), dt=dt)])
    (info,) = group.env_infos
    assert (info.provenance, info.simulators) == (where, simulators)
    group.close()


@pytest.mark.parametrize(("task", "where"), [("reacher", "closed form"), ("ur-reacher", "simulated robot")])
def test_results_of_compiled_runs_are_labelled_as_their_task_says(walk: RunSpec, task: str, where: str) -> None:
    assert closed_form_info(replace(walk, world=ClosedFormWorld(task), dt=Duration("40ms"))).provenance == where


def test_a_run_for_another_device_is_refused(walk: RunSpec) -> None:
    elsewhere = replace(walk, engine=replace(walk.engine, device="gpu"))
    with pytest.raises(InputError, match=r"^The run is for a GPU, and JAX finds none here: pip"):
        make_batch([elsewhere])


def test_what_killed_processes_leave_behind_is_swept_away(
    stopped: RunFolder, whole: RunFolder, left_by: LeftBy
) -> None:
    shutil.copytree(checkpoints(stopped)[-1], stopped.checkpoints.folder / ".writing-000003")
    (stopped.path / ".writing-result.json").write_text("{")
    (stopped.path / ".writing-curve.parquet").write_bytes(b"PAR1")
    with (stopped.path / "metrics.jsonl").open("a") as file:
        file.write('{"env_steps": 160, "agent_st')
    assert train(stopped) == "finished"
    assert not list(stopped.path.rglob(".writing-*"))
    assert left_by(stopped) == left_by(whole)


def test_a_run_that_was_killed_after_its_result_was_written_is_finished(stopped: RunFolder, whole: RunFolder) -> None:
    shutil.copy(whole.path / "result.json", stopped.path)
    assert train(stopped) == "finished"
    assert not stopped.checkpoints.folder.exists()
