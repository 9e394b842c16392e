"""A run that is stopped anywhere, any number of times, and resumed gives the bytes of one that was never stopped."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.agents.exploration import AutoRegressive, OrnsteinUhlenbeck, Pink
from cycletime.engines.training import train
from cycletime.loops import compiled, stepped
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import PaperTask

SMALL_AC, SMALL_PPO = ActorCriticAgent(hidden=(8,)), PPOAgent(batch=40, minibatch=20, epochs=2, hidden=(8,))
SMALL_SAC = SACAgent(minibatch=8, warmup_steps=30, hidden=(8,), replay_capacity=100)
COMPILED: dict[str, dict[str, Any]] = {
    "compiled ppo": {"agent": SMALL_PPO, "env_steps": 8_000},
    "compiled sac, coherent": {"agent": SMALL_SAC, "exploration": OrnsteinUhlenbeck("100ms")},
    "compiled actor-critic": {"agent": SMALL_AC},
}
STEPPED: dict[str, dict[str, Any]] = {
    "stepped ppo, coherent": {"agent": replace(SMALL_PPO, learn_when="episode_end"), "exploration": Pink()},
    "stepped sac": {"agent": SMALL_SAC},
    "stepped actor-critic, coherent": {"exploration": AutoRegressive(2, "100ms")},
}


@pytest.fixture
def specs(walk: RunSpec) -> dict[str, RunSpec]:
    task: dict[str, Any] = {"world": PaperTask("double-pendulum"), "dt": "32ms", "env_steps": 1_500, "seed": 3}
    of_the_task = {name: RunSpec(**{**task, **values}) for name, values in COMPILED.items()}
    return {**of_the_task, **{name: replace(walk, **values) for name, values in STEPPED.items()}}


@pytest.mark.parametrize("name", [*COMPILED, *STEPPED])
def test_stopped_anywhere_and_resumed_it_gives_the_same_bytes(
    tmp_path: Path,
    specs: dict[str, RunSpec],
    name: str,
    make_ear: Callable[..., Any],
    after: Callable[[int], Callable[[], bool]],
    left_by: Callable[[RunFolder], dict[str, Any]],
) -> None:
    whole, ear = RunFolder.create(tmp_path / "whole", specs[name]), make_ear()
    assert train(whole, listeners=[ear]) == "finished"
    chunks = len(ear.updates)
    assert chunks > 8
    for stops in ([1], [round(chunks / 2)], [chunks - 1], [round(chunks / 4)] * 3, [1, 1, 2, round(chunks / 3)]):
        folder = RunFolder.create(tmp_path / str(stops), specs[name])
        for count in stops:
            assert train(folder, stop=after(count)) == "stopped"
        assert train(folder) == "finished"
        assert left_by(folder) == left_by(whole), stops
        assert (folder.result()["resumed"], folder.result()["sessions"]) == ("resumed, identical", len(stops) + 1)


@pytest.mark.parametrize("name", ["compiled ppo", "stepped sac"])
def test_neither_checkpoints_nor_chunks_change_a_byte(
    tmp_path: Path,
    specs: dict[str, RunSpec],
    name: str,
    left_by: Callable[[RunFolder], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = []
    for checkpoint_s, chunk_s in ((0.0, 0.0), (1e9, 0.0), (0.0, 0.01), (1e9, 1.0)):
        monkeypatch.setattr(compiled, "CHUNK_S", chunk_s)
        monkeypatch.setattr(stepped, "CHUNK_S", chunk_s)
        folder = RunFolder.create(tmp_path / f"{checkpoint_s} {chunk_s}", specs[name])
        train(folder, checkpoint_s=checkpoint_s)
        left.append(left_by(folder))
    assert left[1:] == left[:1] * 3
