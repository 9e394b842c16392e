"""Whether SAC's kernel computes on this very card what it should.

A gradient step is compared with the agent's own in float32, actions with the policy's, and runs are trained once more
in another order, in slices, and through the arrays of checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import SACAgent
from cycletime.agents.agent import Metrics, Transition
from cycletime.agents.sac import SACState
from cycletime.cuda.device import Device, DeviceRun, Slice
from cycletime.cuda.layout import POSITION_WORDS, State, position_of, timed_task_of
from cycletime.cuda.sac import METRICS, ROW, SAMPLES, agent_of, agent_state_of, describe_run, initial_state
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.cuda.device_checks.philox import PhiloxStream, normals, philox
from tests.cuda.device_checks.replay import LONG_S, Check


def replay_updates(
    spec: RunSpec, before: State, rows: NDArray[np.float32], updates: int
) -> tuple[SACState, list[Metrics]]:
    """A run after some updates, and the metrics of each of their gradient steps.

    `before` is its state after an update, or before the first; `rows` are what its replay holds after them.
    """
    task, position = timed_task_of(spec).task, position_of(before)
    agent, psi = agent_of(spec), agent_state_of(before, spec)
    all_metrics: list[Metrics] = []
    step = replace(agent, gradient_steps=1, learning_period=1)  # so that one program serves all rhythms
    for period, _ in product(range(1, updates + 1), range(agent.gradient_steps)):
        stored = int(position["agent_steps"]) + period * agent.period
        minibatch, next_noise, noise = _drawn(spec, rows, int(position["updates"]) + len(all_metrics), stored)
        actions = task.action_size
        psi, metrics = _update(step, psi, minibatch, next_noise[:, :actions], noise[:, :actions])
        all_metrics.append(metrics)
    return psi, all_metrics


def means_difference(found: SACState, truth: SACState) -> float:
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
    task = timed_task_of(spec).task
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


MOST_APART, MOST_MEANS_APART = 5e-3, 0.05
"""Of actions and reported numbers; and of Adam's means, relative to their size. The factors of products have 11 bits,
and gradients are sums of products of several of them."""


def run_of(task: str, dt: str, seed: int = 1, **agent: object) -> RunSpec:
    given = SACAgent(**{"warmup_steps": 0, **agent})  # type: ignore[arg-type]
    engine = EngineSpec("cuda", "gpu")
    return RunSpec(world=ClosedFormWorld(task), agent=given, dt=dt, env_steps=10**6, seed=seed, engine=engine)


def checks(device: Device) -> Iterator[Check]:
    for task, dt in (("reacher", "16ms"), ("double-pendulum", "4ms"), ("acrobot", "20ms")):
        spec = run_of(task, dt)
        run = begin(device, spec)
        _train(device, [run], 255)
        yield from gradient_step(device, spec, run)
    specs = [run_of(task, "16ms", seed) for seed in range(20) for task in ("reacher", "double-pendulum")]
    yield same_in_slices(device, specs, [begin(device, spec) for spec in specs], (255, 40))


def begin(device: Device, spec: RunSpec) -> DeviceRun:
    return device.place(describe_run(spec), initial_state(spec))


def gradient_step(device: Device, spec: RunSpec, run: DeviceRun) -> Iterator[Check]:
    """A run's next agent and gradient step, which must be its first."""
    name = f"sac, {spec.world.name}"
    before = device.state(run)
    reports = _train(device, [_reporting(run)], 1)[0]
    after = device.state(run)
    rows = device.replay_rows(run, int(position_of(after)["agent_steps"]))
    yield Check(f"{name}: actions", _action_apart(spec, before, rows), MOST_APART)
    truth, (metrics,) = replay_updates(spec, before, rows, 1)
    apart = [_apart(float(reports[each][0]), float(metrics[each])) for each in METRICS]
    yield Check(f"{name}: losses, entropy and values", max(apart), MOST_APART)
    yield Check(
        f"{name}: gradients, relative to their size",
        means_difference(agent_state_of(after, spec), truth),
        MOST_MEANS_APART,
    )


def same_in_slices(
    device: Device, specs: Sequence[RunSpec], runs: Sequence[DeviceRun], periods: Sequence[int]
) -> Check:
    """Runs in one slice, and once more in the reverse order, with a checkpoint between slices: how many differ."""
    again = [_restored(device, spec, each) for spec, each in zip(specs, runs, strict=True)]
    _train(device, runs, sum(periods))
    for count in periods:
        _train(device, again[::-1], count)
        again = [_restored(device, spec, each) for spec, each in zip(specs, again, strict=True)]
    differ = sum(
        device.state(one)[POSITION_WORDS:].tobytes() != device.state(other)[POSITION_WORDS:].tobytes()
        or not np.isfinite(device.state(one)[POSITION_WORDS:]).all()
        for one, other in zip(runs, again, strict=True)
    )
    name = f"sac, runs of {len(specs)} that differ in another order and after checkpoints, or diverged"
    return Check(name, differ, 0)


def _reporting(run: DeviceRun) -> DeviceRun:
    """The same run, of which each update is reported and not one of many."""
    record = run.record.copy()
    record["metrics_every"] = 1
    return replace(run, record=record)


def _apart(found: float, truth: float) -> float:
    return abs(found - truth) / max(1.0, abs(truth))


def _restored(device: Device, spec: RunSpec, run: DeviceRun) -> DeviceRun:
    """A copy of a run by way of what a checkpoint has of it."""
    state = device.state(run)
    return device.place(describe_run(spec), state, device.replay_rows(run, int(position_of(state)["agent_steps"])))


def _train(device: Device, runs: Sequence[DeviceRun], periods: int) -> list[np.ndarray]:
    results = device.train(Slice(runs, periods + 2, periods + 1, LONG_S, most_periods=periods))
    return [each.reports for each in results]


def _action_apart(spec: RunSpec, before: State, rows: np.ndarray) -> float:
    """How far the newest action is from the policy's, with the noise of its step."""
    task, step = timed_task_of(spec).task, int(position_of(before)["agent_steps"])
    newest = rows.view(ROW)[step, 0]
    noise = normals(philox(spec.seed, PhiloxStream.NOISE, step))[: task.action_size]
    psi = agent_state_of(before, spec)
    with jax.default_matmul_precision("highest"):
        action = agent_of(spec).act(psi, newest["observation"][: task.observation_size], noise.astype(np.float32))  # type: ignore[arg-type]
    return float(np.abs(np.asarray(action) - newest["action"][: task.action_size]).max())
