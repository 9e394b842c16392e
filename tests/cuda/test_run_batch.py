"""Runs of all kinds together on the emulated kernel, through training into their folders."""

import ctypes
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.cuda import engine, run_batch
from cycletime.cuda.device import RunResult, Slice
from cycletime.cuda.layout import position_of
from cycletime.cuda.run_batch import CudaRunBatch
from cycletime.duration import Duration
from cycletime.errors import InputError, RunError
from cycletime.training import run_recorder
from cycletime.training.engine import Chunk
from cycletime.training.learning_curve import Episodes, read_curve
from cycletime.training.machine import this_machine
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.trainer import train_batch
from tests.cuda.emulated import Emulated, EmulatedCard
from tests.cuda.small import make_spec
from tests.training.engines.scripted import train

LeftBy = Callable[[RunFolder], dict[str, Any]]
After = Callable[[int], Callable[[], bool]]
SPECS = [
    make_spec(dt="64ms", batch=25, minibatch=10, epochs=1, env_steps=2500),
    make_spec("double-pendulum", batch=20, minibatch=20, epochs=1, env_steps=300),
    make_spec("double-pendulum", dt="64ms", batch=10, epochs=1, minibatch=3, env_steps=700, seed=6),
]


def jobs(folders: list[RunFolder]) -> list[TrainingJob]:
    return [TrainingJob(folder) for folder in folders]


@pytest.fixture
def make_group(device: Emulated) -> Callable[..., CudaRunBatch]:
    return partial(CudaRunBatch, device=device, slices_s=(1e6,), most_periods=1)


def test_every_run_gets_all_its_chunks_whoever_is_beside_it(make_group: Callable[..., CudaRunBatch]) -> None:
    together = _all_of(make_group(SPECS))
    alone = _all_of(make_group(SPECS[1:2]))
    assert together[1].arrays()["state"].tobytes() == alone[0].arrays()["state"].tobytes()
    assert [chunk.is_last for chunk in together.values()] == [True] * 3
    for run, chunk in together.items():
        assert chunk.env_steps == SPECS[run].env_steps
        assert chunk.episodes.env_steps.max() <= chunk.env_steps
        np.testing.assert_array_equal(np.diff(chunk.episodes.env_steps), chunk.episodes.length_steps[1:])
        assert chunk.episodes.env_steps[0] == chunk.episodes.length_steps[0]
        period = SPECS[run].agent.period
        assert chunk.metrics["agent_steps"].tolist() == list(range(period, chunk.agent_steps + 1, period))
    assert together[0].episodes.agent_steps.tolist() == [38, 76], "an episode has 37 cycles and a half"


def test_more_runs_than_fit_wait_for_their_turn_the_longest_first(
    device: Emulated, make_group: Callable[..., CudaRunBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_batch, "MOST_QUEUED", 2)
    short = [
        make_spec("double-pendulum", batch=10, minibatch=5, epochs=1, seed=seed, env_steps=30 + 60 * seed)
        for seed in range(4)
    ]
    made = make_group(short)
    queues, left = [], {run: spec.env_steps for run, spec in enumerate(short)}
    for told in made.chunks(dict.fromkeys(range(4))):
        queues.append([*told])
        assert [*told] == sorted(told, key=lambda run: (-left[run], run)), "whether they enter or go on"
        left |= {run: short[run].env_steps - chunk.env_steps for run, chunk in told.items() if isinstance(chunk, Chunk)}
    assert queues[0] == [3, 2]
    assert max(map(len, queues)) == 2
    assert left == dict.fromkeys(range(4), 0)
    assert [3, 1] in queues or [1, 3] in queues, "one entered beside one that had begun"


def test_the_next_slice_is_begun_before_the_last_is_told_of(
    device: Emulated, make_group: Callable[..., CudaRunBatch]
) -> None:
    chunks = make_group(SPECS[1:2]).chunks({0: None})
    next(iter(chunks))
    assert device.is_computing
    chunks.close()  # type: ignore[attr-defined]
    assert not device.is_computing, "nothing is left computing"


def test_what_was_computed_is_told_of_though_the_next_slice_cannot_begin(
    device: Emulated, make_group: Callable[..., CudaRunBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = make_spec("double-pendulum", batch=10, minibatch=5, epochs=1, env_steps=30)
    chunks = make_group([short, SPECS[1]]).chunks({0: None, 1: None})
    begin = device.begin

    def only_once(work: Slice) -> None:
        if device.card.launches:
            raise InputError("The card is full.")
        begin(work)

    monkeypatch.setattr(device, "begin", only_once)
    told = next(chunks)
    assert {run: isinstance(chunk, Chunk) and chunk.is_last for run, chunk in told.items()} == {0: True, 1: False}
    with pytest.raises(InputError, match="The card is full"):
        next(chunks)


def test_a_run_that_is_dropped_goes_no_further(device: Emulated, make_group: Callable[..., CudaRunBatch]) -> None:
    made = make_group(SPECS)
    seen = []
    for told in made.chunks(dict.fromkeys(range(3))):
        made.drop(0)
        seen.append(sorted(told))
    assert seen[0] == [0, 1, 2]
    assert all(0 not in runs for runs in seen[1:])


def test_arrays_that_are_no_state_are_refused_and_the_others_go_on(make_group: Callable[..., CudaRunBatch]) -> None:
    told = list(make_group(SPECS[:2]).chunks({0: {"state": np.zeros(3, np.int32)}, 1: None}))
    error = told[0][0]
    assert isinstance(error, RunError)
    assert "int32[3]" in str(error)
    assert set(told[-1]) == {1}


def test_a_chunk_ends_with_the_curve_at_the_budget(make_group: Callable[..., CudaRunBatch]) -> None:
    (chunk,) = _all_of(make_group([replace(SPECS[2], env_steps=50)])).values()
    state = chunk.arrays()["state"].view(np.float32)
    assert int(position_of(state)["ended_env_steps"]) > 50, "an episode ended beyond the budget"
    assert chunk.env_steps == 50
    assert len(chunk.episodes) == 0 or chunk.episodes.env_steps[-1] <= 50


@pytest.fixture
def on_kernel(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Emulated:
    """Let training use the emulated kernel, a learning at a time."""
    device = Emulated(library)
    made = partial(CudaRunBatch, device=device, slices_s=(1e6,), most_periods=1)
    monkeypatch.setattr(engine, "CudaRunBatch", made)
    return device


def test_training_keeps_what_the_kernel_computes(tmp_path: Path, on_kernel: Emulated) -> None:
    folders = [RunFolder.create(tmp_path, spec) for spec in SPECS]
    assert train_batch(jobs(folders)) == ["finished"] * 3
    for folder in folders:
        result, content = folder.result(), (folder.path / "curve.parquet").read_bytes()
        curve = read_curve(content, Duration("4ms"), folder.spec.env_steps)
        assert result["where"] == "closed form"
        assert result["resumed"] == "never"
        assert result["machine"]["device"] == "an emulated card"
        assert len(curve) == result["episodes"] > 0
        lines = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
        assert lines[-1].keys() == {
            *("env_steps", "agent_steps", "learnings", "policy_loss", "value_loss", "entropy", "kl", "clip_fraction")
        }
        assert all(line["value_loss"] > 0 for line in lines)


def test_a_run_that_was_stopped_goes_on_to_the_same_bits_with_other_neighbours(
    tmp_path: Path, on_kernel: Emulated, left_by: LeftBy, after: After
) -> None:
    whole = [RunFolder.create(tmp_path / "whole", spec) for spec in SPECS[1:]]
    train_batch(jobs(whole))
    cut = [RunFolder.create(tmp_path / "cut", spec) for spec in SPECS[1:]]
    assert train_batch(jobs(cut), stop=after(2)) == ["stopped", "stopped"]
    assert train(cut[1]) == "finished"
    assert train_batch(jobs([cut[0], RunFolder.create(tmp_path, SPECS[0])])) == ["finished"] * 2
    for one, other in zip(whole, cut, strict=True):
        assert left_by(one) == left_by(other)


def test_a_run_that_was_killed_goes_on_from_its_checkpoint(
    tmp_path: Path, on_kernel: Emulated, left_by: LeftBy, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = (RunFolder.create(tmp_path / name, SPECS[1]) for name in ("whole", "cut"))
    train(whole)
    finish, killed_at = on_kernel.finish, on_kernel.card.launches + 3

    def finish_or_die() -> list[RunResult]:
        if on_kernel.card.launches > killed_at:
            raise KeyboardInterrupt
        return finish()

    monkeypatch.setattr(on_kernel, "finish", finish_or_die)
    with pytest.raises(KeyboardInterrupt):
        train(cut, checkpoint_s=0)
    monkeypatch.setattr(on_kernel, "finish", finish)
    on_kernel._begun = None
    assert cut.has_begun
    assert train(cut) == "finished"
    assert left_by(whole) == left_by(cut)


def test_only_another_card_or_compiler_makes_a_resumed_run_differ(
    tmp_path: Path, on_kernel: Emulated, after: After, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [RunFolder.create(tmp_path / name, SPECS[1]) for name in ("same", "other")]
    for folder in folders:
        train(folder, stop=after(1))
    here = dict(this_machine())
    monkeypatch.setattr(run_recorder, "this_machine", lambda: {**here, "processor": "another", "jax": "another"})
    train(folders[0])
    assert folders[0].result()["resumed"] == "resumed, identical"
    monkeypatch.setattr(on_kernel.card, "name", "another card")
    monkeypatch.setattr(EmulatedCard, "about", {"NVRTC": "13.1", "driver": "for CUDA 13.1"})
    train(folders[1])
    assert folders[1].result()["remarks"] == [
        "device an emulated card then, another card now",
        "NVRTC unknown then, 13.1 now",
    ]
    assert folders[1].result()["machine"]["driver"] == "for CUDA 13.1"


def _all_of(made: CudaRunBatch) -> dict[int, Chunk]:
    """By run, all of its chunks as one."""
    parts: dict[int, list[Chunk]] = {}
    for told in made.chunks(dict.fromkeys(range(len(made.specs)))):
        for run, chunk in told.items():
            assert isinstance(chunk, Chunk)
            parts.setdefault(run, []).append(chunk)
    joined = {}
    for run, chunks in sorted(parts.items()):
        assert not any(chunk.is_last for chunk in chunks[:-1])
        metrics = {name: np.concatenate([each.metrics[name] for each in chunks]) for name in chunks[0].metrics}
        episodes = Episodes.joined([chunk.episodes for chunk in chunks])
        joined[run] = replace(chunks[-1], episodes=episodes, metrics=metrics)
    return joined
