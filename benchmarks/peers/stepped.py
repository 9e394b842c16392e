"""Our stepped loop on environments of Gymnasium's: python -m benchmarks.peers.stepped."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np

from benchmarks.peers.worker import Cases, serve
from cycletime.agents import PPOAgent, SACAgent
from cycletime.training.machine import keep_compiled_programs
from cycletime.training.random_numbers import Purpose, draw_updates, keys_for, seed_key
from cycletime.training.stepped_loop import SteppedLoop, _SteppedRun

AGENT_STEPS = 2000
UPDATES = 50
REPLAY, WARM_UP_STEPS = 62_500, 300


def run_on(name: str, agent: Any) -> _SteppedRun:  # noqa: ANN401 - any agent
    """A run before its first step."""
    options: dict[str, Any] = {"dt": "16ms"} if name.startswith("cycletime/") else {}
    env = gymnasium.make(name, **options)
    loop = SteppedLoop(env=env, agent=agent, env_steps=10_000_000)
    return _SteppedRun(loop, 0, loop.start(0))


def steps(run: _SteppedRun, count: int, unit: int) -> Callable[[], float]:
    """Seconds of so many agent steps with all that belongs to them, of `count` that are taken."""

    def take() -> float:
        start = time.perf_counter()
        for _ in range(count):
            run.step()
        jax.block_until_ready(run.learner.psi)  # type: ignore[no-untyped-call]
        return (time.perf_counter() - start) / count * unit

    take()
    return take


def updates(run: _SteppedRun) -> Cases:
    """Seconds of one update of SAC, each by a call of its own as the loop makes it, or many in one call."""
    learner, seen = run.learner, run.observation
    action = learner.act(seen)
    result = run.env.step(action)

    def singly() -> float:
        start = time.perf_counter()
        for _ in range(UPDATES):
            learner.store(seen, action, result)
            learner.learn_if_due(0, ended=False)
            jax.block_until_ready(learner.flush())  # type: ignore[no-untyped-call] # since the next action waits for it
        return (time.perf_counter() - start) / UPDATES

    keys = keys_for(seed_key(0), {Purpose.LEARNING: jax.numpy.arange(UPDATES)})[Purpose.LEARNING]
    draws = draw_updates(learner.agent, keys, 1)
    scan = jax.jit(lambda psi, buffer, draws: jax.lax.scan(lambda p, d: learner.agent.learn(p, buffer, d), psi, draws))

    def scanned() -> float:
        buffer, psi = learner.flush(), jax.tree.map(jax.numpy.asarray, learner.psi)
        start = time.perf_counter()
        jax.block_until_ready(scan(psi, buffer, draws))  # type: ignore[no-untyped-call]
        return (time.perf_counter() - start) / UPDATES

    for case in (singly, scanned):
        case()
    return {"update": singly, "update scanned": scanned}


def prepare() -> tuple[Cases, dict[str, object]]:
    """PPO by 2000 agent steps with their learning, SAC by an agent step with its update, and updates by themselves."""
    keep_compiled_programs()
    cases: dict[str, Callable[[], float]] = {}
    for name in ("Pendulum-v1", "Reacher-v5", "cycletime/Reacher-v0"):
        cases[f"ppo {name}"] = steps(run_on(name, PPOAgent()), AGENT_STEPS, AGENT_STEPS)
    sac = run_on("Pendulum-v1", SACAgent(replay_capacity=REPLAY, warmup_steps=WARM_UP_STEPS))
    steps(sac, WARM_UP_STEPS, 1)
    cases["sac Pendulum-v1"] = steps(sac, UPDATES, 1)
    return {**cases, **updates(sac)}, {"numpy": np.__version__}


if __name__ == "__main__":
    serve(prepare)
