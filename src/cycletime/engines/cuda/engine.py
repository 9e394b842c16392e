"""The engine cuda: what it takes and costs; `cycletime.engines.cuda.group` computes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from cycletime.engines.cuda.describing import learnings_of
from cycletime.engines.cuda.device import find_device
from cycletime.engines.cuda.expecting import expected_s
from cycletime.engines.cuda.group import CudaGroup
from cycletime.engines.cuda.limits import refusal
from cycletime.engines.cuda.sac import expecting as sac_expecting
from cycletime.engines.cuda.sac.device import find_sac_device
from cycletime.engines.cuda.sac.group import SACGroup
from cycletime.engines.engine import Cost, Option
from cycletime.errors import NoGpuError
from cycletime.runs.spec import RunSpec

MOST_TOGETHER = 1024
"""Runs that one process trains: enough to keep a GPU busy, and few enough for its leases."""
H200_BLOCKS = 132
"""The multiprocessors of an H200, and so the runs that it trains at a time."""


@dataclass(frozen=True)
class CudaEngine:
    """Whole runs in thread blocks of a kernel, PPO's or SAC's, of any tasks, cycle times and rates that it takes."""

    name: ClassVar[str] = "cuda"
    options: ClassVar[frozenset[Option]] = frozenset()

    def refusal(self, spec: RunSpec) -> str | None:
        """What the kernel was not made for."""
        return refusal(spec)

    def program(self, spec: RunSpec) -> str:
        """One kernel for all runs of an algorithm."""
        return f"{self.name} {spec.algorithm}"

    def most_lanes(self, spec: RunSpec) -> int:
        """It has none."""
        return 1

    def together(self, spec: RunSpec) -> int:
        """As many as one process should have."""
        return MOST_TOGETHER

    def enough(self, spec: RunSpec) -> int:
        """As many as keep a large GPU busy."""
        return H200_BLOCKS

    def jax_device(self, spec: RunSpec) -> str:
        """JAX draws the first weights only."""
        return "cpu"

    def group(self, specs: Sequence[RunSpec]) -> CudaGroup | SACGroup:
        """The runs on the GPU that is here."""
        return SACGroup(specs) if specs[0].algorithm == "sac" else CudaGroup(specs)

    def cost(self, spec: RunSpec) -> Cost:
        """As expected by the run's sizes, on the GPU that is here or else on an H200."""
        began = time.monotonic()
        known = self.known_cost(spec)
        try:
            blocks = find_sac_device().memory.blocks if spec.algorithm == "sac" else find_device().blocks
        except NoGpuError:
            return known
        return Cost(known.agent_step_s, time.monotonic() - began, blocks)

    def expected_s(self, spec: RunSpec) -> float:
        """About how long a whole run takes in a thread block of an H200, with all its multiprocessors busy."""
        return sac_expecting.expected_s(spec) if spec.algorithm == "sac" else expected_s(spec)

    def known_cost(self, spec: RunSpec) -> Cost:
        """As expected by the run's sizes."""
        step_s = self.expected_s(spec) / (learnings_of(spec) * spec.agent.period)
        return Cost(step_s, 20.0, H200_BLOCKS, where="an H200")
