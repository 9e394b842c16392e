"""Runs side by side in one program: each is what it is anywhere else, and what happens to one is its own affair."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, Agent, PPOAgent, SACAgent
from cycletime.agents.exploration import OrnsteinUhlenbeck
from cycletime.errors import InputError, RunError
from cycletime.training import compiled_loop
from cycletime.training.checkpoints import named_arrays
from cycletime.training.compiled_engine import CompiledBatch, _as_tree, _LaneSnapshots
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.trainer import train_batch
from cycletime.training.worlds import ClosedFormWorld
from tests.training.engines.scripted import Clock, train

After = Callable[[int], Callable[[], bool]]
LeftBy = Callable[[RunFolder], dict[str, Any]]
SMALL: dict[str, Agent] = {
    "actor-critic": ActorCriticAgent(hidden=(8,)),
    "ppo": PPOAgent(batch=40, minibatch=20, epochs=2, hidden=(8,)),
    "sac": SACAgent(minibatch=8, warmup_steps=20, hidden=(8,), replay_capacity=40),
}
LONG = ("ppo", "sac")
"""They take too long to compile for CI."""
STEPS = {"actor-critic": 320, "ppo": 6_000, "sac": 320}


def specs(kind: str, runs: int = 4) -> list[RunSpec]:
    """Runs that differ in seeds and discounts."""
    return [
        RunSpec(
            world=ClosedFormWorld("double-pendulum"),
            agent=replace(SMALL[kind], discount=0.9 + 0.02 * run),  # type: ignore[type-var]
            dt="32ms",
            env_steps=STEPS[kind],
            seed=run,
            engine=EngineSpec(width=3),
            exploration=OrnsteinUhlenbeck("100ms") if kind == "sac" else None,
        )
        for run in range(runs)
    ]


def made(out: Path, of: Sequence[RunSpec]) -> list[RunFolder]:
    return [RunFolder.create(out, spec) for spec in of]


def together(folders: Sequence[RunFolder], **how: Any) -> list[Any]:  # noqa: ANN401
    return train_batch([TrainingJob(folder) for folder in folders], **{"clock": Clock(), **how})


@pytest.mark.parametrize("kind", ["actor-critic", *(pytest.param(kind, marks=pytest.mark.slow) for kind in LONG)])
def test_places_neighbours_and_stops_leave_no_trace_in_a_run(
    tmp_path: Path, kind: str, after: After, left_by: LeftBy
) -> None:
    """Nor do checkpoints, or how long chunks are."""
    whole = made(tmp_path / "whole", specs(kind))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_loop, "CHUNK_S", 1e9)
        assert together(whole[:3]) == ["finished"] * 3
        assert train(whole[3]) == "finished"  # with its own repetition in the other lanes
    moved = made(tmp_path / "moved", specs(kind))
    zero, one, two, three = moved
    assert together([three, zero], stop=after(5)) == ["stopped"] * 2
    assert together([one], stop=after(2)) == ["stopped"]
    reached = [folder.checkpoints.newest(folder.spec.identity)[0] for folder in moved]
    steps = [checkpoint.manifest.env_steps if checkpoint else 0 for checkpoint in reached]
    assert steps[0] > steps[1] > steps[2] == 0  # three of them begin at different moments, those behind go first
    assert together([zero, two, one], stop=after(4), checkpoint_s=0) == ["stopped"] * 3
    assert together([three, one, two]) == ["finished"] * 3
    assert together([zero]) == ["finished"]
    assert [left_by(folder) for folder in moved] == [left_by(folder) for folder in whole]
    assert {folder.result()["resumed"] for folder in moved} == {"resumed, identical"}
    assert not list(tmp_path.rglob("checkpoints"))


def test_a_checkpoint_of_other_shapes_is_the_error_of_its_run_alone() -> None:
    group = CompiledBatch(tuple(specs("actor-critic", 2)))
    (_, bad), *others = [
        item for told in group.chunks({0: {"period": np.asarray(3)}, 1: None}) for item in told.items()
    ]
    assert isinstance(bad, RunError)
    assert "The checkpoint holds nothing as" in str(bad)
    assert {run for run, _ in others} == {1}


def test_what_is_kept_of_a_replay_is_what_the_run_can_fill() -> None:
    agent = SACAgent(minibatch=8, hidden=(), replay_capacity=5_000)
    spec = RunSpec(world=ClosedFormWorld("double-pendulum"), agent=agent, dt="32ms", env_steps=320, seed=3)
    lanes = CompiledBatch((spec,))
    loop = lanes.loop
    assert 40 < loop.room < 500 < loop.shape.capacity == 5_000
    start = loop.start([3])
    rows = 1 + np.arange(loop.room * 22, dtype=np.float32).reshape(loop.room, 1, -1)
    arrays = {**_LaneSnapshots(start, loop).arrays(0), "state.buffer.rows": rows}
    assert arrays.keys() == named_arrays(_as_tree(start)).keys()
    assert _LaneSnapshots(start, loop).arrays(0)["state.buffer.rows"].shape == rows.shape
    found = lanes._joined_position([arrays]).state.buffer.rows
    np.testing.assert_array_equal(found[: loop.room], rows)
    assert found.shape == start.state.buffer.rows.shape
    wrong = lanes._start_errors({0: {**arrays, "state.buffer.rows": rows[1:]}})
    assert "The checkpoint holds float32[" in str(wrong[0])


def test_who_is_dropped_is_neither_told_of_nor_waited_for() -> None:
    group = CompiledBatch(tuple(specs("actor-critic", 2)))
    first = next(iter(group.chunks({1: None})))[1]
    assert not isinstance(first, RunError)
    ahead, told = first.arrays(), []
    for chunks in group.chunks({0: None, 1: ahead}):
        told.append(set(chunks))
        group.drop(0)
        if len(told) == 3:
            break
    assert told == [{0}, {1}, {1}]


def test_what_one_program_cannot_carry_is_refused() -> None:
    one, *_, last = specs("actor-critic")
    with pytest.raises(InputError, match="There are 4 runs: a program of the width 3 takes 3 of them"):
        CompiledBatch(tuple(specs("actor-critic")))
    other = replace(last, dt="16ms")
    with pytest.raises(InputError, match=f"{other.name} and {one.name} need different programs: train them apart"):
        CompiledBatch((one, other))
