"""A run that is stopped anywhere, any number of times, and resumed gives the bytes of one that was never stopped."""

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.agents.exploration import OrnsteinUhlenbeck, Pink
from cycletime.errors import InputError
from cycletime.training import compiled_loop, stepped_loop
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.training.engines.scripted import Clock, train

SMALL_AC, SMALL_PPO = ActorCriticAgent(hidden=(8,)), PPOAgent(batch=40, minibatch=20, epochs=2, hidden=(8,))
SMALL_SAC = SACAgent(minibatch=8, warmup_steps=20, hidden=(8,), replay_capacity=40)
COMPILED: dict[str, dict[str, Any]] = {
    "compiled ppo": {"agent": SMALL_PPO, "env_steps": 5_000},
    "compiled sac, coherent": {"agent": SMALL_SAC, "exploration": OrnsteinUhlenbeck("100ms")},
    "compiled actor-critic": {"agent": SMALL_AC},
    "compiled ppo, 4 environments": {"agent": SMALL_PPO, "env_steps": 9_000, "num_envs": 4},
}
STEPPED: dict[str, dict[str, Any]] = {
    "stepped ppo, coherent": {"agent": replace(SMALL_PPO, learn_when="episode_end"), "exploration": Pink()},
    "stepped sac": {"agent": SMALL_SAC},
    "stepped actor-critic, coherent": {"exploration": OrnsteinUhlenbeck("100ms")},
    "stepped ppo, 2 environments": {"agent": SMALL_PPO, "env_steps": 800, "num_envs": 2},
}


@pytest.fixture
def specs(walk: RunSpec) -> dict[str, RunSpec]:
    task: dict[str, Any] = {"world": ClosedFormWorld("double-pendulum"), "dt": "32ms", "env_steps": 480, "seed": 3}
    of_the_task = {name: RunSpec(**{**task, **values}) for name, values in COMPILED.items()}
    return {**of_the_task, **{name: replace(walk, **values) for name, values in STEPPED.items()}}


class KilledError(BaseException):
    """What nobody handles, so that all is left as it is on the disk."""


LONG = {*COMPILED, "stepped ppo, coherent", "stepped sac"} - {"compiled sac, coherent", "compiled ppo, 4 environments"}
"""Each has programs of its own. For CI, tests of kills, lanes, studies and of the stepped loop have such runs; but for
the compiled loop's SAC."""


def _marked(name: str) -> Any:  # noqa: ANN401
    return pytest.param(name, marks=pytest.mark.slow) if name in LONG else name


@pytest.mark.parametrize("name", [_marked(name) for name in (*COMPILED, *STEPPED)])
def test_stopped_or_killed_anywhere_and_resumed_it_gives_the_same_bytes(
    tmp_path: Path,
    specs: dict[str, RunSpec],
    name: str,
    make_ear: Callable[..., Any],
    after: Callable[[int], Callable[[], bool]],
    left_by: Callable[[RunFolder], dict[str, Any]],
) -> None:
    whole, ear = RunFolder.create(tmp_path / "whole", specs[name]), make_ear()
    assert train(whole, [ear]) == "finished"
    chunks = len(ear.updates)
    assert chunks > 8
    assert whole.result()["episodes"] > 2
    # Stopped again and again, sooner or later.
    folder, stops = RunFolder.create(tmp_path / "stopped", specs[name]), cycle((1, 1, 2, 1, 3, 5, 8))
    sessions = 1
    while train(folder, stop=after(next(stops))) == "stopped":
        sessions += 1
    assert sessions > 5
    assert left_by(folder) == left_by(whole)
    assert (folder.result()["resumed"], folder.result()["sessions"]) == ("resumed, identical", sessions)
    # Killed some chunks after its last checkpoint.
    folder, clock = RunFolder.create(tmp_path / "killed", specs[name]), Clock()
    for _ in range(2):
        left = iter([*[clock.go] * 5, _be_killed])
        with pytest.raises(KilledError):
            train(folder, [make_ear(does=lambda: next(left)())], checkpoint_s=3, clock=clock)  # noqa: B023
    assert train(folder) == "finished"
    assert left_by(folder) == left_by(whole)
    assert (folder.result()["resumed"], folder.result()["sessions"]) == ("resumed, identical", 3)


def _be_killed() -> None:
    raise KilledError


@pytest.mark.parametrize("name", [_marked("compiled ppo"), "stepped actor-critic, coherent"])
def test_neither_checkpoints_nor_chunks_change_a_byte(
    tmp_path: Path,
    specs: dict[str, RunSpec],
    name: str,
    left_by: Callable[[RunFolder], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = []
    for checkpoint_s, chunk_s in ((0.0, 0.0), (1e9, 1e9)):
        monkeypatch.setattr(compiled_loop, "CHUNK_S", chunk_s)
        monkeypatch.setattr(stepped_loop, "CHUNK_S", chunk_s)
        folder = RunFolder.create(tmp_path / f"{checkpoint_s}", specs[name])
        train(folder, checkpoint_s=checkpoint_s)
        left.append(left_by(folder))
    assert left[0] == left[1]


def test_a_run_of_an_engine_that_is_gone_is_read_but_not_resumed(tmp_path: Path, walk: RunSpec) -> None:
    spec = replace(walk, world=ClosedFormWorld("double-pendulum"), dt="32ms", engine=EngineSpec("native"))
    folder = RunFolder.create(tmp_path, spec)
    assert RunFolder.open(folder.path).spec == spec
    with pytest.raises(InputError, match=r"^The engine native was part of cycletime between 0\.2\.0 and 0\.3\.0 only"):
        train(folder)
