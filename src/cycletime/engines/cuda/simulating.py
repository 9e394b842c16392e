"""The kernel's tasks against the tasks in JAX, in float64, with the kernel's own actions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.engines.cuda.layout import ENDED
from cycletime.engines.cuda.random_words import PhiloxStream, philox, symmetric
from cycletime.tasks import DoublePendulum, Reacher

TASKS = (Reacher, DoublePendulum)


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


def deviation(run: Any, rows: NDArray[Any], beside: NDArray[Any], records: NDArray[Any]) -> Deviation:  # noqa: ANN401
    """Compare the first batch of a run, from its first step on.

    After each cycle the task goes on from what the kernel saw, so that rounding does not grow for an episode.
    """
    batch, actions, seed = int(run["batch"]), int(run["actions"]), int(run["seed"])
    seen, rewards, wrong = np.zeros(batch), np.zeros((2, batch)), 0
    returns: list[float] = []
    with jax.enable_x64(True):
        task = TASKS[int(run["task"])](dtype=jnp.float64)
        cycle = jax.jit(partial(task.cycle, cycle_steps=int(run["cycle_steps"])))
        episode, length, state = 0, 0, start(task, seed, 0)
        for row in range(batch):
            observation = rows["observation"][row].astype(np.float64)
            seen[row] = np.abs(observation - np.asarray(task.observe(state))).max()
            state = as_seen(task, observation, state)
            step = cycle(state, rows["action"][row, :actions].astype(np.float64))
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
                episode, length, state = episode + 1, 0, start(task, seed, episode + 1)
    reward = np.abs(rewards[0] - rewards[1]).max() / max(1.0, np.abs(rewards[1]).max())
    return Deviation(float(seen.max()), float(np.max([reward, *returns])), wrong, episode, state)


def start(task: Any, seed: int, episode: int) -> Any:  # noqa: ANN401 - either task
    """The state that an episode of the kernel's begins with."""
    drawn: NDArray[np.float64] = symmetric(philox(seed, PhiloxStream.STARTS, episode)).astype(np.float64)
    numbers = (0.0, 0.1 * drawn[0], 0.1 * drawn[1], 0.0, 0.0, 0.0)
    if isinstance(task, Reacher):
        numbers = (3.14 * drawn[2], 3.14 * drawn[3], 0.0, 0.0, 0.27 * drawn[0], 0.27 * drawn[1])
    return task.start(*map(jnp.asarray, numbers))


def as_seen(task: Any, seen: NDArray[np.float64], state: Any) -> Any:  # noqa: ANN401 - either task
    """The state that an observation shows."""
    if isinstance(task, Reacher):
        turned = np.arctan2(seen[5], seen[4]) - float(state.q1)
        q1 = float(state.q1) + (turned + np.pi) % (2 * np.pi) - np.pi
        potential = -100 * np.hypot(seen[2], seen[3])
        return state._replace(q1=q1, q2=3 * seen[7], w1=10 * seen[6], w2=10 * seen[8], potential=jnp.asarray(potential))
    lower, upper = np.arctan2(seen[4], seen[3]), np.arctan2(seen[7], seen[6])
    speeds = {"cart_speed": seen[1], "lower_speed": seen[5], "upper_speed": seen[8]}
    return state._replace(x=seen[0], lower=lower, upper=upper, **speeds)
