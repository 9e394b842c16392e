"""Trains a pendulum by rsl_rl's PPO at a cycle time: what a study's command starts, as docs/trainers.md shows."""

from __future__ import annotations

import argparse
from math import pi
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

EPISODE_S, SIM_DT_S = 10.0, 0.01


class Pendulum(VecEnv):  # type: ignore[misc]  # where rsl_rl is not installed
    """Gymnasium's pendulum, many at once: an action is held for one cycle, and rewards are per second."""

    num_actions = 1
    device = "cpu"

    def __init__(self, num_envs: int, dt_s: float) -> None:
        self.num_envs, self.dt_s, self.cfg = num_envs, dt_s, {"dt_s": dt_s}
        self.max_episode_length = round(EPISODE_S / dt_s)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.angle, self.speed = torch.empty(num_envs), torch.empty(num_envs)
        self._reset(torch.ones(num_envs, dtype=torch.bool))

    def _reset(self, done: torch.Tensor) -> None:
        self.angle = torch.where(done, pi * (2 * torch.rand(self.num_envs) - 1), self.angle)
        self.speed = torch.where(done, 2 * torch.rand(self.num_envs) - 1, self.speed)
        self.episode_length_buf[done] = 0

    def get_observations(self) -> TensorDict:
        seen = torch.stack([self.angle.cos(), self.angle.sin(), self.speed / 8], dim=-1)
        return TensorDict({"policy": seen}, [self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        torque = 2 * actions[:, 0].clamp(-1, 1)
        reward = torch.zeros(self.num_envs)
        for _ in range(round(self.dt_s / SIM_DT_S)):
            angle = (self.angle + pi) % (2 * pi) - pi
            reward -= SIM_DT_S * (angle**2 + 0.1 * self.speed**2 + 0.001 * torque**2)
            self.speed = (self.speed + SIM_DT_S * (15 * self.angle.sin() + 3 * torque)).clamp(-8, 8)
            self.angle = self.angle + SIM_DT_S * self.speed
        self.episode_length_buf += 1
        done = self.episode_length_buf >= self.max_episode_length
        self._reset(done)
        return self.get_observations(), reward, done, {"time_outs": done}


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--num-envs", "--iterations", "--steps-per-env", "--mini-batches", "--seed"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--dt", "--gamma", "--lam"):
        parser.add_argument(name, type=float, required=True)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    network = {"class_name": "MLPModel", "hidden_dims": [64, 64], "activation": "elu"}
    algorithm = {"class_name": "PPO", "gamma": given.gamma, "lam": given.lam, "num_mini_batches": given.mini_batches}
    cfg = {
        "num_steps_per_env": given.steps_per_env,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}},
        "critic": network,
        "algorithm": algorithm,
    }
    OnPolicyRunner(Pendulum(given.num_envs, given.dt), cfg, log_dir=".").learn(given.iterations)


if __name__ == "__main__":
    main()
