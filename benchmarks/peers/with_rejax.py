"""Rejax, pure JAX as we are, with PPO on gymnax's Pendulum: python -m benchmarks.peers.with_rejax.

Pendulum asks for less than Reacher: observations and actions are smaller (3 and 1 numbers instead of 9 and 2), and an
agent step is one environment step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version

import jax
import rejax  # type: ignore[import-not-found]

from benchmarks.peers.worker import Cases, serve

ITERATIONS = 5


def iterations(copies: int) -> Callable[[], float]:
    """Seconds of one iteration: 2000 agent steps, in so many copies of the task, and 400 updates."""
    ppo = rejax.PPO.create(
        env="Pendulum-v1",
        num_envs=copies,
        num_steps=2000 // copies,
        num_minibatches=40,
        num_epochs=10,
        gamma=0.99,
        gae_lambda=0.95,
        learning_rate=3e-4,
        ent_coef=0.0,
        vf_coef=1.0,
        agent_kwargs={"activation": "tanh"},
    )
    program = jax.jit(
        lambda state: jax.lax.scan(lambda now, _: (ppo.train_iteration(now), None), state, None, length=ITERATIONS)[0]
    )
    state = ppo.init_state(jax.random.PRNGKey(0))

    def run() -> float:
        nonlocal state
        start = time.perf_counter()
        state = jax.block_until_ready(program(state))  # type: ignore[no-untyped-call]
        return (time.perf_counter() - start) / ITERATIONS

    run()
    return run


def prepare() -> tuple[Cases, dict[str, object]]:
    """With one copy of the task as we have, and with eight, which is faster."""
    versions = f"rejax {version('rejax')}, jax {jax.__version__}"
    return {"1 copy": iterations(1), "8 copies": iterations(8)}, {"versions": versions}


if __name__ == "__main__":
    serve(prepare)
