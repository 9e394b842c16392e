"""PPO's normalised rewards beside Stable-Baselines3's VecNormalize itself. Run by './check trainers'."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import PPOAgent, Transition
from cycletime.duration import Duration
from cycletime.trainers.stable_baselines3 import train
from cycletime.trainers.trainer_run import TrainerRun
from cycletime.training.worlds import GymnasiumEnv

pytestmark = pytest.mark.trainers
ENVS, STEPS = 4, 300


def test_returns_have_the_deviation_that_vec_normalize_has() -> None:
    import gymnasium
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    rewards = np.random.default_rng(0).normal(1, 3, size=(STEPS, ENVS)).astype(np.float32)
    ended = np.random.default_rng(1).uniform(size=(STEPS, ENVS)) < 0.05

    class Scripted(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-1, 1, (1,))
        action_space = gymnasium.spaces.Box(-1, 1, (1,))

        def __init__(self, column: int) -> None:
            self.column, self.row = column, -1

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
            return np.zeros(1, np.float32), {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
            self.row += 1
            at = self.row, self.column
            return np.zeros(1, np.float32), float(rewards[at]), bool(ended[at]), False, {}

    env = VecNormalize(DummyVecEnv([lambda column=column: Scripted(column) for column in range(ENVS)]), gamma=0.97)
    env.reset()
    for _ in range(STEPS):
        _, normalized, _, _ = env.step(np.zeros((ENVS, 1), np.float32))

    agent = PPOAgent(batch=STEPS * ENVS, normalize_rewards=True, discount=0.97, hidden=(5,))
    psi = agent.initialize(jax.random.key(0), 1, 1, ENVS)
    zeros = jnp.zeros((STEPS, ENVS, 1))
    batch = Transition(zeros, zeros, jnp.asarray(rewards), zeros, jnp.asarray(ended, jnp.float32), zeros[..., 0])
    returns = agent.returns_after(psi.returns, batch)  # type: ignore[arg-type]
    # Theirs began with a ten-thousandth of an observation.
    np.testing.assert_allclose(returns.moments.variance[0], env.ret_rms.var, rtol=1e-4)
    np.testing.assert_allclose(returns.newest, np.where(ended[-1], 0, env.returns), rtol=1e-4)
    np.testing.assert_allclose(rewards[-1] / np.sqrt(returns.moments.variance[0] + 1e-8), normalized, rtol=1e-3)


def test_an_entrys_gamma_gives_way_to_the_agents_as_in_the_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stable_baselines3.common import vec_env

    made = []

    class Recorded(vec_env.VecNormalize):  # type: ignore[misc]  # where it is not installed
        def __init__(self, *args: Any, **keywords: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **keywords)
            made.append((self.gamma, self.norm_reward))

    monkeypatch.setattr(vec_env, "VecNormalize", Recorded)
    values = {"n_steps": 64, "gamma": 0.8, "normalize": "{'norm_obs': True, 'norm_reward': False, 'gamma': 0.9}"}
    train(
        TrainerRun(
            world=GymnasiumEnv("Pendulum-v1", Duration("50ms")),
            algorithm="ppo",
            dt=Duration("50ms"),
            values=values,
            num_envs=1,
            seed=0,
            simulated_s=12,
            device="cpu",
            folder=tmp_path,
            resumes=False,
        )
    )
    assert made == [(0.8, False)]
