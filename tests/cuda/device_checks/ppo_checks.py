"""Whether PPO's kernel computes on this very card what it should.

Batches are replayed in float64, the tasks are followed in JAX in float64, runs are trained once more in another order
and in slices, and a short training is compared with the compiled loop's. Takes about a minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.agents.ppo import PPOState
from cycletime.cuda.device import Device
from cycletime.cuda.layout import State, position_of, timed_task_of
from cycletime.cuda.ppo import agent_of, agent_state_of, describe_run, initial_state, networks_of
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.learning_curve import Episodes
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.cuda.device_checks.philox import PhiloxStream, normals, philox
from tests.cuda.device_checks.replay import Check, deviation, last_batch, replay_update, slice_of, train_runs

MOST_APART = 1e-4
"""Of observations, rewards and advantages; and of what learning changes, relative to the change."""
MOST_ERRORS = 3.0
"""Standard errors between the means of two engines."""
_ENGINE = EngineSpec("cuda", "gpu")


@dataclass(frozen=True)
class Sizes:
    batches: tuple[RunSpec, ...]
    """Whose first two batches are replayed."""
    ordered: tuple[RunSpec, ...]
    training: RunSpec
    kernel_seeds: int = 128
    jax_seeds: int = 8
    slice_s: float = 0.02


def run_of(task: str, dt: str, env_steps: int = 10**7, seed: int = 1, **agent: Any) -> RunSpec:  # noqa: ANN401
    return RunSpec(
        world=ClosedFormWorld(task), agent=PPOAgent(**agent), dt=dt, env_steps=env_steps, seed=seed, engine=_ENGINE
    )


def full_sizes() -> Sizes:
    """What a user's card is checked with: all tasks, with short last mini-batches, and longer ones than a chunk.

    Actions of half a second swing the car and the acrobot up to their goals by chance.
    """
    return Sizes(
        batches=(
            run_of("reacher", "6ms", batch=1700, minibatch=37),
            run_of("double-pendulum", "12ms", batch=1700, minibatch=37),
            run_of("reacher", "16ms", batch=2000, minibatch=50),
            run_of("double-pendulum", "16ms", batch=2000, minibatch=12),
            run_of("reacher", "16ms", batch=500, minibatch=200),
            run_of("pendulum", "18ms", batch=1700, minibatch=37),
            run_of("cart-pole", "64ms", batch=1000, minibatch=50),
            run_of("mountain-car", "500ms", batch=1000, minibatch=50),
            run_of("acrobot", "500ms", batch=1000, minibatch=100),
        ),
        ordered=tuple(
            run_of(task, dt, 60_000, seed, batch=batch, minibatch=minibatch)
            for seed in range(20)
            for task, dt, batch, minibatch in (
                ("reacher", "16ms", 500, 50),
                ("double-pendulum", "12ms", 1000, 37),
                ("reacher", "64ms", 300, 200),
                ("double-pendulum", "32ms", 400, 12),
                ("pendulum", "64ms", 300, 50),
                ("cart-pole", "32ms", 500, 37),
                ("mountain-car", "16ms", 1000, 100),
                ("acrobot", "64ms", 300, 25),
            )
        ),
        training=run_of("reacher", "32ms", 300_000),
    )


def checks(device: Device, sizes: Sizes) -> Iterator[Check]:
    for spec in sizes.batches:
        yield from _batches(device, spec)
    yield _order(device, sizes)
    yield _training(device, sizes)


def _batches(device: Device, spec: RunSpec) -> Iterator[Check]:
    """A run's first two batches: the task, values and advantages, and what is learned from them."""
    agent, k = agent_of(spec), timed_task_of(spec).cycle_steps
    name = f"{spec.world.name}, k {k}, b {agent.batch}, m {agent.minibatch}"
    run, before = describe_run(spec), initial_state(spec)
    changed, values, actions = [], [], []
    for update in range(2):
        work = slice_of([spec], [before], most_periods=1)
        (result,) = device.train(work)
        rows, beside = last_batch(device, work)
        if update == 0:
            apart = deviation(spec, rows, beside, result.records)
            yield Check(f"{name}: observations", apart.observation, MOST_APART)
            yield Check(f"{name}: rewards", apart.reward, MOST_APART)
            yield Check(f"{name}: ends of {apart.episodes} episodes that are wrong", apart.wrong_ends, 0)
        samples, truth = replay_update(spec, before, rows, beside)
        actions.append(_actions_apart(run, before, rows[: agent.batch], beside[: agent.batch]))
        changed.append(_changed_apart(spec, before, result.run.state, truth))
        names = ("advantage", "old_log_probability", "lambda_return")
        apart_from = {name: np.abs(rows[name][: agent.batch] - samples[name]).max() for name in names}
        values.append(_largest([apart_from[name] / max(1.0, np.abs(samples[name]).max()) for name in names]))
        before = result.run.state
    yield Check(f"{name}: actions", _largest(actions), MOST_APART)
    yield Check(f"{name}: values, advantages and log-probabilities", _largest(values), MOST_APART)
    yield Check(f"{name}: what is learned, relative to the change", _largest(changed), MOST_APART)


def _largest(found: Sequence[float]) -> float:
    """The largest of some numbers, or no number if one of them is none: max() would pass over it."""
    return float(np.max(found))


def _actions_apart(run: Any, before: NDArray[np.float32], rows: NDArray[Any], beside: NDArray[Any]) -> float:  # noqa: ANN401
    """How far actions are from the policy's means for what stands in the rows, and the noise of their steps.

    This also tells whether all lanes of the acting warp saw the same.
    """
    steps = int(position_of(before)["agent_steps"]) + np.arange(len(rows))
    noise = normals(philox(int(run["seed"]), PhiloxStream.NOISE, steps))
    std = np.exp(networks_of(before)[0]["log_std"].astype(np.float64))
    apart = np.abs(rows["action"] - (beside["old_mean"] + std * noise))
    return float(apart[:, : int(run["actions"])].max())


def _changed_apart(spec: RunSpec, before: State, after: State, truth: PPOState) -> float:
    """How far a layer's weights are from the replay's, relative to how far they moved; of the worst layer.

    In the Euclidean norm: where a gradient is nearly zero, Adam makes a step of its rounding.
    """
    first, last = (agent_state_of(state, spec).parameters for state in (before, after))
    worst = []
    for leaves in zip(*map(jax.tree.leaves, (first, last, truth.parameters)), strict=True):
        old, new, expected = (np.asarray(leaf, np.float64) for leaf in leaves)
        moved, apart = np.linalg.norm(expected - old), np.linalg.norm(new - expected)
        worst.append(float(apart / moved if moved else apart))
    return _largest(worst)


def _order(device: Device, sizes: Sizes) -> Check:
    """Runs in one launch, and once more in the reverse order and in slices: how many differ in any bit.

    Diverged runs are alike whatever went wrong, and count as well.
    """
    once = train_runs(device, sizes.ordered)
    again = train_runs(device, sizes.ordered[::-1], sizes.slice_s)[::-1]
    differ = sum(one.bits != other.bits or not one.is_sound for one, other in zip(once, again, strict=True))
    return Check(f"runs of {len(once)} that differ in another order and in slices, or diverged", differ, 0)


def _training(device: Device, sizes: Sizes) -> Check:
    """Mean returns of a short training on both engines, in standard errors of their difference."""
    spec = sizes.training
    trained = train_runs(device, [replace(spec, seed=seed) for seed in range(sizes.kernel_seeds)])
    ours = np.array([each.episodes.mean_return for each in trained])
    theirs = _in_jax(spec, sizes.jax_seeds)
    error = np.sqrt(sum(each.var(ddof=1) / len(each) for each in (ours, theirs)))
    name = (
        f"{spec.world.name} at {spec.dt}, {spec.env_steps:,} environment steps: mean return {ours.mean():.2f} of "
        f"{len(ours)} seeds, {theirs.mean():.2f} of {len(theirs)} in JAX"
    )
    return Check(name, float(abs(ours.mean() - theirs.mean()) / error), MOST_ERRORS, " standard errors apart")


def _in_jax(spec: RunSpec, seeds: int) -> NDArray[np.float64]:
    task = timed_task_of(spec).task
    loop = CompiledLoop(task=task, agent=spec.own_agent, dt=spec.dt, env_steps=spec.env_steps, width=seeds)
    curves = [[Episodes.none()] for _ in range(seeds)]
    for chunk in loop.run(list(range(seeds))):
        for curve, episodes in zip(curves, chunk.episodes, strict=True):
            curve.append(episodes)
    return np.array([Episodes.joined(curve).mean_return for curve in curves])
