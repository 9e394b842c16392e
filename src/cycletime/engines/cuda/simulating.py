"""The kernel's tasks against the tasks in JAX, in float64, with the kernel's own actions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.engines.cuda.describing import world_of
from cycletime.engines.cuda.layout import ENDED, OBSERVATION
from cycletime.engines.cuda.random_words import PhiloxStream, philox
from cycletime.engines.cuda.tasks import TASKS
from cycletime.runs.spec import RunSpec


@dataclass(frozen=True)
class Deviation:
    """How far a batch of the kernel's is from the task's."""

    observation: float
    """The largest difference."""
    reward: float
    """The largest difference, relative to the largest reward where that is more than 1; or of an episode's return,
    relative to the sum of its rewards' sizes."""
    wrong_ends: int
    """Cycles after which an episode ended in one of them only, or of whose length the record is wrong."""
    episodes: int
    """That ended in the batch."""

    state: Any
    """The task's, after the batch."""


def deviation(spec: RunSpec, rows: NDArray[Any], beside: NDArray[Any], records: NDArray[Any]) -> Deviation:
    """Compare the first batch of a run, from its first step on.

    After each cycle the task goes on from what the kernel saw, so that rounding does not grow for an episode: that of
    a chaotic task, such as the acrobot, would.
    """
    batch, world, known = spec.agent.period, world_of(spec), TASKS[spec.world.name]
    seen, rewards, wrong = np.zeros(batch), np.zeros((2, batch)), 0
    returns: list[float] = []
    with jax.enable_x64(True):
        task = replace(world.task, dtype=jnp.float64)
        cycle = jax.jit(partial(task.cycle, cycle_steps=world.cycle_steps))
        episode, length, state = 0, 0, start(spec, task, 0)
        for row in range(batch):
            observation = rows["observation"][row].astype(np.float64)
            seen[row] = np.abs(observation - padded(task.observe(state))).max()
            state = known.as_seen(observation, state)
            step = cycle(state, rows["action"][row, : task.action_size].astype(np.float64))
            rewards[:, row] = beside["reward"][row], step.reward
            length, state, ended = length + 1, step.state, bool(step.terminated | step.truncated)
            wrong += bool(rows["next"][row] & ENDED) != ended
            if ended:
                told = records[episode : episode + 1]
                expected = [(length, int(state.env_steps))]
                wrong += list(zip(told["agent_steps"].tolist(), told["env_steps"].tolist(), strict=True)) != expected
                sums = rewards[1, row + 1 - length : row + 1]
                scale = max(1.0, float(np.abs(sums).sum()))
                returns += [abs(float(each) - float(sums.sum())) / scale for each in told["episode_return"]]
                episode, length, state = episode + 1, 0, start(spec, task, episode + 1)
    reward = np.abs(rewards[0] - rewards[1]).max() / max(1.0, np.abs(rewards[1]).max())
    return Deviation(float(seen.max()), float(np.max([reward, *returns])), wrong, episode, state)


def start(spec: RunSpec, task: Any, episode: int) -> Any:  # noqa: ANN401 - any task
    """The state that an episode of the kernel's begins with."""
    numbers = TASKS[spec.world.name].begin(philox(spec.seed, PhiloxStream.STARTS, episode))
    return task.start(*map(jnp.asarray, numbers))


def padded(observation: Any) -> NDArray[np.float64]:  # noqa: ANN401 - an array of JAX's or NumPy's
    """An observation as the kernel has it, with zeros for what the task has not."""
    found = np.zeros(OBSERVATION)
    found[: len(observation)] = observation
    return found
