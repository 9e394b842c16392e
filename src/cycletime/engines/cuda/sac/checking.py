"""Whether SAC's kernel computes on this very card what it should.

A gradient step is compared with the agent's own, actions with the policy's, and runs are trained once more in another
order, in slices, and through the arrays of checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import jax
import numpy as np

from cycletime.agents import SACAgent
from cycletime.engines.cuda.check import Check
from cycletime.engines.cuda.describing import State, world_of
from cycletime.engines.cuda.layout import POSITION_WORDS, position_of
from cycletime.engines.cuda.random_words import PhiloxStream, normals, philox
from cycletime.engines.cuda.sac.describing import agent_of, described, fresh_states, psi_of
from cycletime.engines.cuda.sac.device import Resident, SACDevice, Slice
from cycletime.engines.cuda.sac.layout import METRICS, ROW
from cycletime.engines.cuda.sac.replay import means_apart, updated
from cycletime.runs.spec import EngineSpec, RunSpec
from cycletime.runs.worlds import ClosedFormWorld

MOST_APART, MOST_MEANS_APART = 5e-3, 0.05
"""Of actions and reported numbers; and of Adam's means, relative to their size. The factors of products have 11 bits,
and gradients are sums of products of several of them."""
LONG_S = 3600.0


def run_of(task: str, dt: str, seed: int = 1, **agent: object) -> RunSpec:
    """A run on the kernel, whose policy acts from the first step on."""
    given = SACAgent(**{"warmup_steps": 0, **agent})  # type: ignore[arg-type]
    engine = EngineSpec("cuda", "gpu")
    return RunSpec(world=ClosedFormWorld(task), agent=given, dt=dt, env_steps=10**6, seed=seed, engine=engine)


def checks(device: SACDevice) -> Iterator[Check]:
    """Look at one thing after the other, on the card that is there."""
    for task, dt in (("reacher", "16ms"), ("double-pendulum", "4ms"), ("acrobot", "20ms")):
        spec = run_of(task, dt)
        resident = begin(device, spec)
        _train(device, [resident], 255)
        yield from gradient_step(device, spec, resident)
    specs = [run_of(task, "16ms", seed) for seed in range(20) for task in ("reacher", "double-pendulum")]
    yield same_in_slices(device, specs, [begin(device, spec) for spec in specs], (255, 40))


def begin(device: SACDevice, spec: RunSpec) -> Resident:
    """A run before its first step."""
    return device.place(described(spec), fresh_states([spec])[0])


def gradient_step(device: SACDevice, spec: RunSpec, resident: Resident) -> Iterator[Check]:
    """A run's next agent and gradient step, which must be its first."""
    name = f"sac, {spec.world.name}"
    before = device.state(resident)
    reports = _train(device, [_reporting(resident)], 1)[0]
    after = device.state(resident)
    rows = device.rows(resident, int(position_of(after)["agent_steps"]))
    yield Check(f"{name}: actions", _action_apart(spec, before, rows), MOST_APART)
    truth, (metrics,) = updated(spec, before, rows, 1)
    apart = [_apart(float(reports[each][0]), float(metrics[each])) for each in METRICS]
    yield Check(f"{name}: losses, entropy and values", max(apart), MOST_APART)
    yield Check(f"{name}: gradients, relative to their size", means_apart(psi_of(after, spec), truth), MOST_MEANS_APART)


def same_in_slices(
    device: SACDevice, specs: Sequence[RunSpec], residents: Sequence[Resident], periods: Sequence[int]
) -> Check:
    """Runs in one slice, and once more in the reverse order, with a checkpoint between slices: how many differ."""
    again = [_restored(device, spec, each) for spec, each in zip(specs, residents, strict=True)]
    _train(device, residents, sum(periods))
    for count in periods:
        _train(device, again[::-1], count)
        again = [_restored(device, spec, each) for spec, each in zip(specs, again, strict=True)]
    differ = sum(
        device.state(one)[POSITION_WORDS:].tobytes() != device.state(other)[POSITION_WORDS:].tobytes()
        or not np.isfinite(device.state(one)[POSITION_WORDS:]).all()
        for one, other in zip(residents, again, strict=True)
    )
    name = f"sac, runs of {len(specs)} that differ in another order and after checkpoints, or diverged"
    return Check(name, differ, 0)


def _reporting(resident: Resident) -> Resident:
    """The same run, of which each learning is reported and not one of many."""
    run = resident.run.copy()
    run["metrics_every"] = 1
    return replace(resident, run=run)


def _apart(found: float, truth: float) -> float:
    return abs(found - truth) / max(1.0, abs(truth))


def _restored(device: SACDevice, spec: RunSpec, resident: Resident) -> Resident:
    """A copy of a run by way of what a checkpoint has of it."""
    state = device.state(resident)
    return device.place(described(spec), state, device.rows(resident, int(position_of(state)["agent_steps"])))


def _train(device: SACDevice, residents: Sequence[Resident], periods: int) -> list[np.ndarray]:
    told = device.train(Slice(residents, periods + 2, periods + 1, LONG_S, most_periods=periods))
    return [each.reports for each in told]


def _action_apart(spec: RunSpec, before: State, rows: np.ndarray) -> float:
    """How far the newest action is from the policy's, with the noise of its step."""
    task, step = world_of(spec).task, int(position_of(before)["agent_steps"])
    newest = rows.view(ROW)[step, 0]
    noise = normals(philox(spec.seed, PhiloxStream.NOISE, step))[: task.action_size]
    psi = psi_of(before, spec)
    with jax.default_matmul_precision("highest"):
        action = agent_of(spec).act(psi, newest["observation"][: task.observation_size], noise.astype(np.float32))  # type: ignore[arg-type]
    return float(np.abs(np.asarray(action) - newest["action"][: task.action_size]).max())
