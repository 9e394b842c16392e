"""What learned policies do: how far from the target the fingertip ends, and how long the pendulum stays up.

Policies act with their mean, without the noise that they learned with: that is what they know. All have the same
episodes, which they begin alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isnan, nan
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from cycletime.agents.networks import ActivationName, PolicyNetwork
from cycletime.duration import Duration, cycle_steps
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import StudyFolder
from cycletime.tasks.closed_form import State
from cycletime.training.machine import code_version
from cycletime.training.worlds import ClosedFormWorld

MEASURED_STUDIES: Mapping[str, Mapping[str, object]] = {
    "ppo-baseline": {},
    "ppo-dt-aware": {"batch": 2000},
    "ppo-pendulum": {},
    "ppo-baseline-4ms": {},
    "sac-pendulum-baseline": {},
}
"""By study, the labels of the cells that are measured."""
_SEED = 0
_DIGITS = 6


def measure_behaviour(folders: Mapping[str, StudyFolder], episodes: int = 50) -> dict[str, Any]:
    """As `data.save_behaviours` keeps it, what policies of studies do: of those that are asked for and were kept."""
    found = {
        name: _measure_study(folder, MEASURED_STUDIES[name], episodes)
        for name, folder in folders.items()
        if name in MEASURED_STUDIES
    }
    return {name: each for name, each in found.items() if each["cells"]}


def policy_shares(task: str, dt: Duration, policies: Sequence[PolicyNetwork], episodes: int) -> NDArray[np.float64]:
    """[policies] the behaviour of policies of the same shape on a task, as `data.Behaviour` says."""
    world = ClosedFormWorld(task)
    weights = jax.tree.map(lambda *each: np.stack(each), *((policy.layers, policy.log_std) for policy in policies))
    keys = jax.random.split(jax.random.key(_SEED), episodes)
    simulated = _program(world, policies[0].activation, policies[0].squashed)(
        weights, keys, cycle_steps(dt, world.env_dt)
    )
    first, last, env_steps = (np.asarray(each, np.float64) for each in simulated)
    if task == "reacher":
        # [policies, episodes] the fingertip's distance from the target, which Reacher's observations tell.
        ended, began = (np.hypot(each[..., 2], each[..., 3]) for each in (last, first))
        shares = ended.mean(axis=1) / began.mean(axis=1)
    else:
        shares = env_steps.mean(axis=1) / world.task.limit_steps
    # Nothing falls that is nowhere: a pendulum whose place is no number would stay up for ever.
    return np.where(np.isfinite(last).all(axis=(1, 2)), shares, nan)


def _measure_study(folder: StudyFolder, labels: Mapping[str, object], episodes: int) -> dict[str, Any]:
    plan = Plan.of(folder.study)
    cells = {
        index: cell
        for index, cell in enumerate(plan.cells)
        if all(cell.labels.get(name, value) == value for name, value in labels.items())
    }
    wanted = {name for index in cells for name in plan.names[index]}
    networks = {
        run.name: run.policy.network for run in folder.store.runs() if run.name in wanted and run.policy is not None
    }
    measured = []
    for index, cell in cells.items():
        named = dict(zip(plan.study.seeds, plan.names[index], strict=True))
        kept = {seed: networks[name] for seed, name in named.items() if name in networks}
        if kept:
            found = policy_shares(cell.world.name, cell.dt, list(kept.values()), episodes).round(_DIGITS).tolist()
            shares = {str(seed): None if isnan(share) else share for seed, share in zip(kept, found, strict=True)}
            measured.append({"rule": str(cell.labels["rule"]), "dt": str(cell.dt), "shares": shares})
    return {"episodes": episodes, "code": code_version(), "cells": measured}


@lru_cache
def _program(world: ClosedFormWorld, activation: ActivationName, squashed: bool) -> Any:  # noqa: ANN401 - compiled by JAX
    """From [policies] weights, [episodes] keys and k to each episode's first and last observation and its steps.

    The hold is a loop of its own, and not the task's `cycle`: k is then a number like others, and one program serves
    all cycle times.
    """
    task = world.task
    EpisodeState: TypeAlias = tuple[State, jax.Array]

    def episode(weights: Any, key: jax.Array, k: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:  # noqa: ANN401
        policy = PolicyNetwork(weights[0], activation, weights[1], squashed)

        def cycle(episode_state: EpisodeState) -> EpisodeState:
            action = policy.act(task.observe(episode_state[0]), jnp.zeros(task.action_size))

            def hold(_: jax.Array, before: EpisodeState) -> EpisodeState:
                step = task.step(before[0], action)
                after = step.state, step.terminated | step.truncated
                held: EpisodeState = jax.tree.map(lambda old, new: jnp.where(before[1], old, new), before, after)
                return held

            after: EpisodeState = lax.fori_loop(0, k, hold, episode_state)
            return after

        start = task.reset(key)
        end, _ = lax.while_loop(lambda episode_state: ~episode_state[1], cycle, (start, jnp.zeros((), jnp.bool)))
        return task.observe(start), task.observe(end), end.env_steps

    return jax.jit(jax.vmap(jax.vmap(episode, (None, 0, None)), (0, None, None)))
