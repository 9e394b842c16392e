"""Rejax, pure JAX as we are, with PPO on our Reacher: python -m benchmarks.peers.with_rejax."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import rejax  # type: ignore[import-not-found]
from gymnax.environments.environment import Environment, EnvParams  # type: ignore[import-not-found]
from gymnax.environments.spaces import Box  # type: ignore[import-not-found]

from benchmarks.peers.worker import Cases, serve
from cycletime.tasks import Reacher

ITERATIONS = 5
CYCLE_STEPS = 8
TASK = Reacher()


class ReacherAt16ms(Environment):  # type: ignore[misc]
    """Our task, as gymnax has environments."""

    @property
    def default_params(self) -> EnvParams:
        """Episodes of 2.4 s."""
        return EnvParams(max_steps_in_episode=150)

    def step_env(self, key: jax.Array, state: Any, action: jax.Array, params: EnvParams) -> tuple[Any, ...]:  # noqa: ANN401
        """One cycle."""
        step = TASK.cycle(state, action, CYCLE_STEPS)
        return step.observation, step.state, step.reward, step.terminated | step.truncated, {}

    def reset_env(self, key: jax.Array, params: EnvParams) -> tuple[jax.Array, Any]:
        """Begin an episode."""
        state = TASK.reset(key)
        return TASK.observe(state), state

    def action_space(self, params: EnvParams | None = None) -> Box:
        """Actions are taken as they are."""
        return Box(-jnp.inf, jnp.inf, (TASK.action_size,))

    def observation_space(self, params: EnvParams) -> Box:
        """All that there is."""
        return Box(-jnp.inf, jnp.inf, (TASK.observation_size,))


def iterations(copies: int) -> Callable[[], float]:
    """Seconds of one iteration: 2000 agent steps, in so many copies of the task, and 400 updates."""
    ppo = rejax.PPO.create(
        env=ReacherAt16ms(),
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
