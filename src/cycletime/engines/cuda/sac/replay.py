"""SAC's gradient steps once more, by the agent itself in float32: the truth of the kernel's products of halves."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import SACAgent
from cycletime.agents.agent import Metrics
from cycletime.agents.buffer import Transition
from cycletime.agents.sac import SACState
from cycletime.engines.cuda.describing import State, world_of
from cycletime.engines.cuda.layout import position_of
from cycletime.engines.cuda.random_words import PhiloxStream, normals, philox
from cycletime.engines.cuda.sac.describing import agent_of, psi_of
from cycletime.engines.cuda.sac.layout import ROW, SAMPLES
from cycletime.runs.spec import RunSpec


def updated(spec: RunSpec, before: State, rows: NDArray[np.float32], learnings: int) -> tuple[SACState, list[Metrics]]:
    """A run after some learnings, and what each of their gradient steps reports.

    Args:
        spec: The run.
        before: Its state at the end of a learning, or where the first begins.
        rows: What its replay holds after them.
        learnings: How many.
    """
    task, position = world_of(spec).task, position_of(before)
    agent, psi = agent_of(spec), psi_of(before, spec)
    told: list[Metrics] = []
    step = replace(agent, gradient_steps=1, learning_period=1)  # so that one program serves all rhythms
    for period, _ in product(range(1, learnings + 1), range(agent.gradient_steps)):
        stored = int(position["agent_steps"]) + period * agent.period
        minibatch, next_noise, noise = _drawn(spec, rows, int(position["updates"]) + len(told), stored)
        actions = task.action_size
        psi, metrics = _update(step, psi, minibatch, next_noise[:, :actions], noise[:, :actions])
        told.append(metrics)
    return psi, told


def means_apart(found: SACState, truth: SACState) -> float:
    """How far Adam's means of a layer are from the truth's, relative to their size; of the worst layer."""

    def apart(one: Any, other: Any) -> float:  # noqa: ANN401 - arrays
        return float(np.linalg.norm(one - other) / np.linalg.norm(other))

    pairs = zip(jax.tree.leaves(_means(found)), jax.tree.leaves(_means(truth)), strict=True)
    return max(apart(np.asarray(one), np.asarray(other)) for one, other in pairs)


def _means(psi: SACState) -> tuple[Any, Any, Any]:
    return psi.policy_optimizer.mean, psi.critics_optimizer.mean, psi.temperature_optimizer.mean


def _drawn(
    spec: RunSpec, rows: NDArray[np.float32], update: int, stored: int
) -> tuple[Transition, NDArray[np.float64], NDArray[np.float64]]:
    """The samples of a gradient step, and the noise of their actions; kernel/sac/learning.cuh's draw_sample."""
    task = world_of(spec).task
    one, other = (
        philox(spec.seed, PhiloxStream.LEARNING, update, first + np.arange(SAMPLES)) for first in (0, SAMPLES)
    )
    chosen = rows.view(ROW)[:, 0][one[:, 0] % min(stored, len(rows))]
    minibatch = Transition(
        observation=jnp.asarray(chosen["observation"][:, : task.observation_size]),
        action=jnp.asarray(chosen["action"][:, : task.action_size]),
        reward=jnp.asarray(chosen["reward"]),
        next_observation=jnp.asarray(chosen["next_observation"][:, : task.observation_size]),
        terminated=jnp.asarray(1 - chosen["goes_on"]),
        truncated=jnp.asarray(1 - chosen["goes_on"]),
    )
    return minibatch, normals(one[:, 1:3]), normals(other[:, :2])


@jax.jit
def _update(
    agent: SACAgent, psi: SACState, minibatch: Transition, next_noise: jax.Array, noise: jax.Array
) -> tuple[SACState, Metrics]:
    with jax.default_matmul_precision("highest"):
        return agent.update(psi, minibatch, next_noise.astype(jnp.float32), noise.astype(jnp.float32))
