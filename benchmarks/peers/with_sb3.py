"""Stable-Baselines3, or SBX, its sibling in JAX, on environments: python -m benchmarks.peers.with_sb3 sb3|sbx [N].

They are Gymnasium's and ours, of which one is PyBullet's; with a number, N copies of our Reacher alone.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import gymnasium
import numpy as np
import torch

import cycletime.tasks  # noqa: F401 - registers the task
from benchmarks.peers.worker import Cases, serve

STEPS = 2000
PPO_ON = ("Pendulum-v1", "Reacher-v5", "cycletime/Reacher-v0", "cycletime/BulletReacher-v0")
SAC_STEPS, SAC_STARTS = 50, 300
REPLAY, MINIBATCH = 62_500, 256


def environment(name: str) -> Any:  # noqa: ANN401
    """One of Gymnasium's as it is, or one of ours at 16 ms."""
    options: dict[str, Any] = {"dt": "16ms", "disable_env_checker": True} if name.startswith("cycletime/") else {}
    return gymnasium.make(name, **options)


def ppo_iteration(library: Any, tanh: object, name: str, copies: int = 1) -> Callable[[], float]:  # noqa: ANN401
    """Seconds of 2000 agent steps and 400 updates, with our networks and settings."""
    vectors = importlib.import_module("stable_baselines3.common.vec_env")
    model = library.PPO(
        "MlpPolicy",
        vectors.DummyVecEnv([partial(environment, name)] * copies),
        learning_rate=3e-4,
        n_steps=STEPS // copies,
        batch_size=50,
        n_epochs=10,
        gamma=0.99,
        gae_lambda=0.95,
        clip_range=0.2,
        ent_coef=0.0,
        vf_coef=1.0,
        max_grad_norm=1e9,
        policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "activation_fn": tanh, "log_std_init": 0.0},
        seed=0,
        device="cpu",
    )

    def run() -> float:
        start = time.perf_counter()
        model.learn(STEPS, log_interval=None, reset_num_timesteps=False)
        return time.perf_counter() - start

    run()
    return run


def sac_update(library: Any, steps: int, calls: int) -> Callable[[], float]:  # noqa: ANN401
    """Seconds of one update, in calls of so many; without the agent steps between them, and from a full replay."""
    model = library.SAC(
        "MlpPolicy",
        environment("cycletime/Reacher-v0"),
        buffer_size=REPLAY,
        batch_size=MINIBATCH,
        learning_starts=150,
        policy_kwargs={"net_arch": [256, 256]},
        seed=0,
        device="cpu",
    )
    model.learn(160)
    replay, random = model.replay_buffer, np.random.default_rng(0)
    replay.observations[:] = random.normal(size=replay.observations.shape)
    replay.next_observations[:] = random.normal(size=replay.next_observations.shape)
    replay.actions[:] = random.uniform(-1, 1, size=replay.actions.shape)
    replay.rewards[:] = random.normal(size=replay.rewards.shape)
    replay.full = True

    def run() -> float:
        start = time.perf_counter()
        for _ in range(calls):
            model.train(gradient_steps=steps, batch_size=MINIBATCH)
        # SBX computes ahead of its caller, except for the losses that it logs.
        if hasattr(model.policy, "actor_state"):
            import jax

            jax.block_until_ready((model.policy.actor_state.params, model.policy.qf_state))  # type: ignore[no-untyped-call]
        return (time.perf_counter() - start) / (calls * steps)

    run()
    return run


def sac_steps(library: Any) -> Callable[[], float]:  # noqa: ANN401
    """Seconds of an agent step with its update, as users train; a replay that is nearly empty costs no less."""
    model = library.SAC(
        "MlpPolicy",
        environment("Pendulum-v1"),
        buffer_size=REPLAY,
        batch_size=MINIBATCH,
        learning_starts=SAC_STARTS,
        policy_kwargs={"net_arch": [256, 256]},
        seed=0,
        device="cpu",
    )
    model.learn(SAC_STARTS + 10)

    def run() -> float:
        start = time.perf_counter()
        model.learn(SAC_STEPS, log_interval=None, reset_num_timesteps=False)
        return (time.perf_counter() - start) / SAC_STEPS

    run()
    return run


def prepare(name: str, copies: str = "") -> tuple[Cases, dict[str, object]]:
    """PPO and SAC as users train, and updates of SAC by themselves; or PPO with several copies."""
    torch.set_num_threads(1)
    library = importlib.import_module({"sb3": "stable_baselines3", "sbx": "sbx"}[name])
    tanh = torch.nn.Tanh if name == "sb3" else importlib.import_module("flax.linen").tanh
    if copies:
        return {f"{copies} copies": ppo_iteration(library, tanh, PPO_ON[2], int(copies))}, {"versions": _versions()}
    cases = {f"ppo {env}": ppo_iteration(library, tanh, env) for env in PPO_ON}
    cases["sac Pendulum-v1"] = sac_steps(library)
    cases["sac"] = sac_update(library, 1, 50)
    if name == "sb3":
        return cases, {"versions": _versions()}
    cases["sac scanned"] = sac_update(library, 50, 2)
    return cases, {"versions": f"SBX {version('sbx-rl')}, jax {version('jax')}"}


def _versions() -> str:
    return f"Stable-Baselines3 {version('stable-baselines3')}, torch {version('torch')}"


if __name__ == "__main__":
    serve(lambda: prepare(*sys.argv[1:]))
