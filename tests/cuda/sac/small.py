"""Runs of SAC that are about to learn: their replays are filled beforehand, since the emulator takes long to act."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.agents import SACAgent
from cycletime.cuda.layout import State, Status, position_of, timed_task_of
from cycletime.cuda.sac import ROW, initial_state
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld


def make_spec(task: str = "reacher", dt: str = "16ms", seed: int = 5, env_steps: int = 10**6, **agent: Any) -> RunSpec:  # noqa: ANN401
    return RunSpec(
        world=ClosedFormWorld(task),
        agent=SACAgent(**{"warmup_steps": 0, **agent}),
        dt=dt,
        env_steps=env_steps,
        seed=seed,
        engine=EngineSpec("cuda", "gpu"),
    )


def about_to_learn(spec: RunSpec, stored: int = 255) -> tuple[State, NDArray[np.float32]]:
    """A run's state one agent step before its first gradient step, and its replay."""
    rng, task = np.random.default_rng(spec.seed), timed_task_of(spec).task
    state = initial_state(spec)
    position = position_of(state)
    position["agent_steps"] = position["episode_steps"] = position["period"] = stored
    position["status"] = Status.FRESH
    rows = np.zeros(stored, ROW)
    rows["observation"][:, : task.observation_size] = rng.normal(size=(stored, task.observation_size))
    rows["next_observation"][:, : task.observation_size] = rng.normal(size=(stored, task.observation_size))
    rows["action"][:, : task.action_size] = rng.uniform(-1, 1, (stored, task.action_size))
    rows["one"], rows["goes_on"] = 1, rng.random(stored) < 0.9
    rows["reward"] = rng.normal(size=stored)
    return state, rows.view(np.float32).reshape(stored, -1)
