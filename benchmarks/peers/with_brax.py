"""brax's PPO on our Reacher, as a brax environment: python -m benchmarks.many_envs_card --party brax."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.robots.shims import install_device_put_replicated, install_stand_ins
from cycletime.tasks import Reacher

install_stand_ins()
install_device_put_replicated()

from brax.envs.base import Env, State  # noqa: E402
from brax.training.agents.ppo import networks, train  # noqa: E402

CYCLE_STEPS, EPISODE_STEPS = 8, 150


class ReacherAt16ms(Env):  # type: ignore[misc]
    """The task; brax's wrapper ends its episodes and begins them anew."""

    task = Reacher()
    observation_size = task.observation_size
    action_size = task.action_size
    backend = "closed form"

    def reset(self, rng: jax.Array) -> State:
        state = self.task.reset(rng)
        return State(state, self.task.observe(state), jnp.zeros(()), jnp.zeros(()), {}, {})

    def step(self, state: State, action: jax.Array) -> State:
        after = self.task.cycle(state.pipeline_state, action, CYCLE_STEPS)
        done = after.terminated.astype(jnp.float32)
        return state.replace(pipeline_state=after.state, obs=after.observation, reward=after.reward, done=done)


def seconds_per_update(
    num_envs: int, rollout: int, minibatches: int, epochs: int, updates: int, turns: int
) -> tuple[list[float], float]:
    """Of each turn of so many updates but the first, which compiles; and the mean return at the end."""
    speeds, returns = list[float](), list[float]()

    def told(_: int, metrics: dict[str, Any]) -> None:
        if "training/sps" in metrics:
            speeds.append(float(metrics["training/sps"]))
        returns.append(float(metrics["eval/episode_reward"]))

    batch = num_envs * rollout
    train.train(
        environment=ReacherAt16ms(),
        num_timesteps=batch * updates * turns,
        num_evals=turns + 1,
        num_envs=num_envs,
        num_eval_envs=128,
        episode_length=EPISODE_STEPS,
        unroll_length=rollout,
        batch_size=num_envs // minibatches,
        num_minibatches=minibatches,
        num_updates_per_batch=epochs,
        normalize_observations=True,
        learning_rate=3e-4,
        discounting=0.99,
        gae_lambda=0.95,
        entropy_cost=0.0,
        clipping_epsilon=0.2,
        network_factory=partial(
            networks.make_ppo_networks,
            policy_hidden_layer_sizes=(64, 64),
            value_hidden_layer_sizes=(64, 64),
            activation=jax.nn.tanh,
        ),
        progress_fn=told,
    )
    return [batch / speed for speed in speeds[1:]], returns[-1]
