"""The engine cuda: which runs it takes, what they cost, and how they are trained."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from cycletime.agents import PPOAgent, SACAgent
from cycletime.cuda import ppo, sac
from cycletime.cuda.device import find_device
from cycletime.cuda.layout import TASKS, expected_updates
from cycletime.cuda.run_batch import KERNELS, CudaRunBatch
from cycletime.duration import cycle_steps
from cycletime.errors import NoGpuError
from cycletime.training.engine import PROBE_S, Cost, Engine
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld

MOST_STEPS = 2**31
MOST_TOGETHER = 1024
"""Runs that one process trains: enough to keep a GPU busy, and few enough for its leases."""
H200_BLOCKS = 132
"""The multiprocessors of an H200, and so the runs that it trains at a time."""


@dataclass(frozen=True)
class CudaEngine(Engine):
    """Whole runs in thread blocks of a kernel, PPO's or SAC's, of any tasks, cycle times and rates that it takes."""

    name: ClassVar[str] = "cuda"

    def refusal(self, spec: RunSpec) -> str | None:
        agent, world = spec.agent, spec.world
        if not isinstance(world, ClosedFormWorld) or world.name not in TASKS:
            return f"The engine cuda cannot run {world.name!r}: it has {', '.join(TASKS)}."
        if not isinstance(agent, PPOAgent | SACAgent):
            return f"The engine cuda cannot train {spec.algorithm}: it has ppo and sac."
        if spec.num_envs > 1:
            return (
                f"num_envs is {spec.num_envs}: the engine cuda has one environment for each run, and compiled has many."
            )
        if spec.exploration is not None:
            return "The engine cuda explores with white noise only: leave the exploration out."
        # A run ends with the learning period, and perhaps the episode, in which it reaches its budget.
        beyond = agent.period * cycle_steps(spec.dt, world.env_dt) + 2 * world.task.limit_steps
        if spec.env_steps + beyond >= MOST_STEPS:
            return f"env_steps is {spec.env_steps}: the engine cuda counts to {MOST_STEPS - beyond - 1} for this run."
        return sac.refusal(agent) if isinstance(agent, SACAgent) else ppo.refusal(agent)

    def program(self, spec: RunSpec) -> str:
        return f"{self.name} {spec.algorithm}"

    def max_batch_size(self, spec: RunSpec) -> int:
        return MOST_TOGETHER

    def efficient_batch_size(self, spec: RunSpec) -> int:
        return H200_BLOCKS

    def jax_device(self, spec: RunSpec) -> str:
        return "cpu"  # JAX draws the initial weights only

    def make_batch(self, specs: Sequence[RunSpec]) -> CudaRunBatch:
        return CudaRunBatch(specs)

    def cost(self, spec: RunSpec, try_s: float = PROBE_S) -> Cost:
        """From the run's sizes, with the blocks of the GPU that is here or else of an H200."""
        began = time.monotonic()
        known = self.known_cost(spec)
        try:
            blocks = find_device(KERNELS[spec.algorithm]).card.blocks
        except NoGpuError:
            return known
        return Cost(known.agent_step_s, time.monotonic() - began, blocks)

    def known_cost(self, spec: RunSpec) -> Cost:
        step_s = KERNELS[spec.algorithm].expected_s(spec) / (expected_updates(spec) * spec.agent.period)
        return Cost(step_s, 20.0, H200_BLOCKS, where="an H200")
