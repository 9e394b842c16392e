"""Runs of SAC together, through slices, checkpoints and a device's limits; the device follows a script."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.cuda import engine
from cycletime.cuda.device import Device
from cycletime.cuda.kernels import SAC, kernel_digest
from cycletime.cuda.layout import RECORD, Status, position_of
from cycletime.cuda.run_batch import CudaRunBatch
from cycletime.cuda.sac import REPORT, ROW, RUN, SAC_KERNEL, STATE_WORDS
from cycletime.errors import NoGpuError, RunError
from cycletime.training.engine import Chunk
from cycletime.training.policy_file import read_policy
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.trainer import train_batch
from tests.cuda.emulated import EmulatedCard, at_address
from tests.cuda.sac.small import make_spec

SPECS = [make_spec(dt=dt, seed=seed, env_steps=6000) for seed, dt in enumerate(("16ms", "16ms", "32ms", "64ms"))]
STEPS = 100
"""Agent steps of a run in a slice."""


def jobs(folders: list[RunFolder]) -> list[TrainingJob]:
    return [TrainingJob(folder) for folder in folders]


@dataclass
class Scripted(EmulatedCard):
    """As many runs as there are blocks act for a while in each slice, in episodes of 1,200 environment steps."""

    library: Any = None
    slices: list[int] = field(default_factory=list)

    def launch(self, argument: NDArray[Any], blocks: int) -> None:
        given = argument.view(SAC_KERNEL.launch)[0]
        count = int(given["queued"])
        self.slices.append(count)
        records = at_address(given["records"], RECORD, count * int(given["most_records"])).reshape(count, -1)
        reports = at_address(given["reports"], REPORT, count * int(given["most_reports"])).reshape(count, -1)
        for index, run in enumerate(at_address(given["runs"], RUN, count)[:blocks]):
            _act(run, at_address(run["state"], np.dtype(np.float32), STATE_WORDS), records[index], reports[index])


def _act(run: Any, state: NDArray[np.float32], records: NDArray[Any], reports: NDArray[Any]) -> None:  # noqa: ANN401
    position = position_of(state)
    position["status"], position["records"], position["reports"] = Status.GOING, 0, 1
    rows = at_address(run["replay"], ROW, int(run["capacity"]))
    for _ in range(STEPS):
        rows["reward"][position["agent_steps"] % int(run["capacity"])] = position["agent_steps"]
        position["agent_steps"] += 1
        position["episode_steps"] += 1
        position["world_steps"] += run["cycle_steps"]
        if position["world_steps"] >= 1200:
            records[int(position["records"])] = (7.0, 1200, position["episode_steps"])
            position["records"] += 1
            position["ended_env_steps"] += 1200
            position["world_steps"] = position["episode_steps"] = 0
    reports[0]["agent_steps"] = position["agent_steps"]
    if position["ended_env_steps"] + position["world_steps"] >= run["env_steps"]:
        position["status"] = Status.FINISHED


@pytest.fixture
def make_group() -> Callable[..., CudaRunBatch]:
    def made(**card: Any) -> CudaRunBatch:  # noqa: ANN401
        return CudaRunBatch(SPECS, Device(SAC_KERNEL, Scripted(**card)), slices_s=(1.0,))

    return made


def _all_of(group: CudaRunBatch, starts: dict[int, Any] | None = None) -> dict[int, list[Chunk]]:
    told: dict[int, list[Chunk]] = {run: [] for run in range(len(SPECS))}
    for chunks in group.chunks(starts or dict.fromkeys(range(len(SPECS)))):
        for run, chunk in chunks.items():
            assert isinstance(chunk, Chunk)
            told[run].append(chunk)
    return told


@pytest.mark.parametrize("blocks", [1, 2, 8])
def test_every_run_reaches_its_budget_whoever_waits(make_group: Callable[..., CudaRunBatch], blocks: int) -> None:
    """Also runs that are on the device and not taken in a slice, which have nothing to tell of it."""
    for run, chunks in _all_of(make_group(blocks=blocks)).items():
        lengths = np.concatenate([chunk.episodes.length_steps for chunk in chunks])
        ends = np.concatenate([chunk.episodes.env_steps for chunk in chunks])
        assert lengths.tolist() == [1200] * 5, SPECS[run].dt
        assert ends.tolist() == list(range(1200, 6001, 1200))
        assert [chunk.is_last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
        steps = [int(step) for chunk in chunks for step in chunk.metrics["agent_steps"]]
        assert steps == [chunk.agent_steps for chunk in chunks] == list(range(STEPS, STEPS * len(chunks) + 1, STEPS))


def test_a_run_goes_on_from_the_arrays_of_a_moment(make_group: Callable[..., CudaRunBatch]) -> None:
    group = make_group()
    kept = {}
    for chunks in group.chunks({0: None}):
        moment = chunks[0]
        assert isinstance(moment, Chunk)
        kept = moment.arrays()
        break
    assert kept["replay"].shape == (STEPS, ROW.itemsize // 4)
    np.testing.assert_array_equal(kept["replay"].view(ROW)["reward"][:, 0], np.arange(STEPS))
    after = _all_of(make_group(), {0: kept})[0]
    assert after[0].agent_steps == 2 * STEPS
    assert after[0].agent_state().policy[0].weight.shape == (9, 256)


@pytest.mark.parametrize(
    ("name", "changed", "sentence"),
    [
        ("state", lambda each: each[:-1], "as 'state': it should be int32["),
        ("replay", lambda each: each[:-1], "as 'replay': it should be float32[100, 24]"),
    ],
)
def test_a_checkpoint_of_another_shape_is_refused(
    make_group: Callable[..., CudaRunBatch], name: str, changed: Callable[[Any], Any], sentence: str
) -> None:
    chunk = next(iter(make_group().chunks({0: None})))[0]
    assert isinstance(chunk, Chunk)
    arrays = chunk.arrays()
    wrong = next(iter(make_group().chunks({0: {**arrays, name: changed(arrays[name])}})))[0]
    assert isinstance(wrong, RunError)
    assert sentence in str(wrong)


def test_runs_are_trained_into_their_folders_and_go_on_after_a_stop(
    tmp_path: Path, make_group: Callable[..., CudaRunBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        engine, "CudaRunBatch", lambda specs: CudaRunBatch(specs, Device(SAC_KERNEL, Scripted()), slices_s=(1.0,))
    )
    folders = [RunFolder.create(tmp_path, spec) for spec in SPECS[:2]]
    stops = iter([False, True])
    assert train_batch(jobs(folders), stop=lambda: next(stops)) == ["stopped"] * 2
    assert train_batch(jobs(folders)) == ["finished"] * 2
    result = folders[0].result()
    assert (result["resumed"], result["agent_steps"], result["episodes"]) == ("resumed, identical", 800, 5)
    assert result["machine"]["device"] == "an emulated card"
    assert result["machine"]["kernel"] == kernel_digest(SAC)[:12]
    assert read_policy(folders[0].policy_file).network.observation_size == 9


def test_a_run_that_never_fits_is_refused(make_group: Callable[..., CudaRunBatch]) -> None:
    with pytest.raises(NoGpuError, match="an emulated card has 1 MiB free, and a run needs 3 MiB"):
        _all_of(make_group(available_bytes=2**20))


def test_dropped_runs_are_left(make_group: Callable[..., CudaRunBatch]) -> None:
    group = make_group(blocks=8)
    told = []
    for chunks in group.chunks(dict.fromkeys(range(len(SPECS)))):
        told.append(set(chunks))
        group.drop(0)
        group.drop(1)
    assert told[0] == {0, 1, 2, 3}
    assert not set().union(*told[1:]) & {0, 1}
