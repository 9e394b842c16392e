"""One training in process: what it leaves, what its listeners hear, and what faults around it do."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cycletime.engines import record, training
from cycletime.engines.engine import Chunk
from cycletime.engines.training import train
from cycletime.errors import RunError
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec

Ears = Callable[..., Any]
After = Callable[[int], Callable[[], bool]]
LeftBy = Callable[[RunFolder], dict[str, Any]]


def test_a_finished_run_has_its_files_and_no_others(tmp_path: Path, walk: RunSpec) -> None:
    folder = RunFolder.create(tmp_path, walk)
    assert train(folder, checkpoint_s=0) == "finished"
    names = ["curve.parquet", "lock", "metrics.jsonl", "policy.safetensors", "result.json", "spec.json"]
    assert sorted(path.name for path in folder.path.iterdir()) == names
    assert folder.result()["resumed"] == "never"


def test_checkpoints_wait_their_time_and_take_a_twentieth_of_it_at_most(
    tmp_path: Path, walk: RunSpec, make_ear: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, saved = 0.0, []

    def pass_time(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    def save(self: object, chunk: Chunk) -> None:
        saved.append(chunk.env_steps)
        pass_time(2)

    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(record.Record, "save", save)
    ear = make_ear(does=lambda: pass_time(1))  # each episode of 20 steps takes a second
    train(RunFolder.create(tmp_path, replace(walk, env_steps=2_000)), listeners=[ear], checkpoint_s=10)
    assert saved == [200, 1_000, 1_800]


def test_a_finished_run_is_left_alone(
    tmp_path: Path, walk: RunSpec, make_ear: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ear = RunFolder.create(tmp_path, walk), make_ear()
    train(folder)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir()}
    before.pop("lock")
    monkeypatch.setattr(training, "engine_for", None)
    assert train(folder, listeners=[ear]) == "finished"
    after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir()}
    after.pop("lock")
    assert (after, ear.heard) == (before, [])


def test_listeners_hear_the_beginning_each_step_and_the_end(
    tmp_path: Path, walk: RunSpec, make_ear: Ears, after: After
) -> None:
    folder = RunFolder.create(tmp_path, walk)
    first, second = make_ear(), make_ear()
    train(folder, listeners=[first], stop=after(5))
    train(folder, listeners=[second])
    for ear, begins, ends in ((first, None, "stopped"), (second, 100, "finished")):
        assert ear.heard[0] == ("begin", begins)
        assert ear.heard[-1] == ("end", ends)
        assert ear.heard[1:-1] == ear.updates
    updates = first.updates + second.updates
    assert [update.env_steps for update in updates] == list(range(20, 301, 20))
    assert [update.agent_steps for update in updates] == list(range(20, 301, 20))
    assert [update.episodes.env_steps.tolist() for update in updates] == [[steps] for steps in range(20, 301, 20)]
    lines = [line for update in updates for line in update.lines]
    assert lines == [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]


def test_listeners_hear_that_it_failed_and_a_later_training_goes_on(
    tmp_path: Path, walk: RunSpec, make_ear: Ears, left_by: LeftBy
) -> None:
    whole, folder = RunFolder.create(tmp_path / "whole", walk), RunFolder.create(tmp_path, walk)
    train(whole)
    divisors = iter([1, 1, 1, 0])
    other, failing = make_ear(), make_ear(does=lambda: 1 / next(divisors))
    with pytest.raises(ZeroDivisionError):
        train(folder, listeners=[other, failing], checkpoint_s=0)
    assert [other.heard[-1], failing.heard[-1]] == [("end", "failed")] * 2
    assert train(folder) == "finished"
    assert left_by(folder) == left_by(whole)


def test_who_comes_second_is_told_so_and_harms_nothing(tmp_path: Path, walk: RunSpec, make_ear: Ears) -> None:
    folder, ear = RunFolder.create(tmp_path, walk), make_ear()
    with folder.locked(), pytest.raises(RunError, match=r"is being trained by process \d+ on .*: wait for it"):
        train(folder, listeners=[ear])
    assert ear.heard == []
    assert train(folder) == "finished"
