"""Runs side by side in one program: each is what it is anywhere else, and what happens to one is its own affair."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, Agent, PPOAgent, SACAgent
from cycletime.engines.compiled import CompiledGroup
from cycletime.engines.record import Trainee
from cycletime.engines.training import train, train_together
from cycletime.errors import InputError, RunError
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import EngineSpec, RunSpec
from cycletime.runs.worlds import PaperTask

After = Callable[[int], Callable[[], bool]]
LeftBy = Callable[[RunFolder], dict[str, Any]]
SMALL: dict[str, Agent] = {
    "actor-critic": ActorCriticAgent(hidden=(8,)),
    "ppo": PPOAgent(batch=40, minibatch=20, epochs=2, hidden=(8,)),
    "sac": SACAgent(minibatch=8, warmup_steps=30, hidden=(8,), replay_capacity=100),
}
LONG = ("ppo", "sac")
"""They take too long to compile for CI."""
STEPS = {"actor-critic": 1_500, "ppo": 6_000, "sac": 1_000}


def specs(kind: str, runs: int = 4) -> list[RunSpec]:
    """Runs that differ in seeds and discounts."""
    return [
        RunSpec(
            world=PaperTask("double-pendulum"),
            agent=replace(SMALL[kind], discount=0.9 + 0.02 * run),  # type: ignore[type-var]
            dt="32ms",
            env_steps=STEPS[kind],
            seed=run,
            engine=EngineSpec(width=3),
        )
        for run in range(runs)
    ]


def made(out: Path, of: Sequence[RunSpec]) -> list[RunFolder]:
    return [RunFolder.create(out, spec) for spec in of]


def together(folders: Sequence[RunFolder], **how: Any) -> list[Any]:  # noqa: ANN401
    return train_together([Trainee(folder) for folder in folders], **how)


@pytest.mark.parametrize("kind", ["actor-critic", *(pytest.param(kind, marks=pytest.mark.slow) for kind in LONG)])
def test_places_neighbours_and_stops_leave_no_trace_in_a_run(
    tmp_path: Path, kind: str, after: After, left_by: LeftBy
) -> None:
    whole = made(tmp_path / "whole", specs(kind))
    assert together(whole[:3], checkpoint_s=0) == ["finished"] * 3
    assert train(whole[3]) == "finished"  # with its own repetition in the other lanes
    moved = made(tmp_path / "moved", specs(kind))
    zero, one, two, three = moved
    assert together([three, zero], stop=after(5)) == ["stopped"] * 2
    assert together([one], stop=after(2)) == ["stopped"]
    reached = [folder.checkpoints.newest(folder.spec.identity)[0] for folder in moved]
    steps = [checkpoint.manifest.env_steps if checkpoint else 0 for checkpoint in reached]
    assert steps[0] > steps[1] > steps[2] == 0  # three of them begin at different moments, those behind go first
    assert together([zero, two, one], stop=after(4)) == ["stopped"] * 3
    assert together([three, one, two]) == ["finished"] * 3
    assert together([zero]) == ["finished"]
    assert [left_by(folder) for folder in moved] == [left_by(folder) for folder in whole]
    assert {folder.result()["resumed"] for folder in moved} == {"resumed, identical"}
    assert not list(tmp_path.rglob("checkpoints"))


def test_a_run_that_cannot_be_written_ends_alone(tmp_path: Path, make_ear: Callable[..., Any], left_by: LeftBy) -> None:
    whole, folders = (
        made(tmp_path / "whole", specs("actor-critic", 3)),
        made(tmp_path / "one", specs("actor-critic", 3)),
    )
    assert together(whole) == ["finished"] * 3
    ears, asked = [make_ear() for _ in folders], iter(range(100))

    def lost() -> None:
        if next(asked) == 4:
            raise RunError("It belongs to somebody else.")

    guards: list[Callable[[], object]] = [lambda: None, lost, lambda: None]
    trainees = [Trainee(folder, [ear], guard) for folder, ear, guard in zip(folders, ears, guards, strict=True)]
    ends = train_together(trainees, checkpoint_s=0)
    assert [str(end) for end in ends] == ["finished", "It belongs to somebody else.", "finished"]
    assert [ear.heard[-1] for ear in ears] == [("end", "finished"), ("end", "failed"), ("end", "finished")]
    assert len(ears[1].updates) < len(ears[0].updates)
    assert not folders[1].is_finished
    assert train(folders[1]) == "finished"
    assert [left_by(folder) for folder in folders] == [left_by(folder) for folder in whole]


def test_runs_that_are_finished_locked_or_damaged_are_told_apart(tmp_path: Path) -> None:
    finished, locked, damaged, well = made(tmp_path, [*specs("actor-critic", 4)])
    for folder in (finished, damaged):
        train(folder, stop=lambda: folder is damaged)  # noqa: B023 - called at once
    for file in damaged.checkpoints.folder.rglob("arrays.safetensors"):
        file.write_bytes(b"")
    with locked.locked():
        ends = together([finished, locked, damaged, well])
    assert (ends[0], ends[3]) == ("finished", "finished")
    assert "is being trained by process" in str(ends[1])
    assert "is damaged" in str(ends[2])


def test_a_checkpoint_of_other_shapes_is_the_error_of_its_run_alone() -> None:
    group = CompiledGroup(tuple(specs("actor-critic", 2)))
    (_, bad), *others = [
        item for told in group.chunks({0: {"period": np.asarray(3)}, 1: None}) for item in told.items()
    ]
    assert isinstance(bad, RunError)
    assert "The checkpoint holds nothing as" in str(bad)
    assert {run for run, _ in others} == {1}


def test_who_is_dropped_is_neither_told_of_nor_waited_for() -> None:
    group = CompiledGroup(tuple(specs("actor-critic", 2)))
    first = next(iter(group.chunks({1: None})))[1]
    assert not isinstance(first, RunError)
    ahead, told = first.moment.arrays(), []
    for chunks in group.chunks({0: None, 1: ahead}):
        told.append(set(chunks))
        group.drop(0)
        if len(told) == 3:
            break
    assert told == [{0}, {1}, {1}]


def test_what_one_program_cannot_carry_is_refused() -> None:
    one, *_, last = specs("actor-critic")
    with pytest.raises(InputError, match="There are 4 runs: a program of the width 3 takes 3 of them"):
        CompiledGroup(tuple(specs("actor-critic")))
    other = replace(last, dt="16ms")
    with pytest.raises(InputError, match=f"{other.name} and {one.name} need different programs: train them apart"):
        CompiledGroup((one, other))
