"""The engine for closed-form tasks: the compiled loop, for one run or for as many as its program has lanes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from cycletime.agents import Agent
from cycletime.engines.closed_form import ClosedForm
from cycletime.engines.devices import check_device
from cycletime.engines.engine import Arrays, Chunk, Cost, Option
from cycletime.engines.lanes import Lanes
from cycletime.engines.memory import lane_bytes
from cycletime.engines.trying import tried_cost
from cycletime.errors import InputError, NoGpuError, RunError
from cycletime.loops import CompiledLoop
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import ClosedFormWorld

_RATES = ("discount", "trace_decay", "learning_rate", "clip", "policy_rate", "value_rate", "target_smoothing")
"""Fields that a compiled program takes as data."""
MOST_LANES = 512
"""No program is wider: a GPU is busy by then, and all its runs would be lost together."""
GPU_BYTES = 64 * 2**30
"""The memory of a GPU that programs may take. It is no machine's own, since the width is part of a run's identity."""
_H200_UPDATE_S = {"sac": 15e-6}
"""By algorithm, the time of an update of one of many runs side by side, where `benchmarks/sac_gpu.py` knows it."""


@dataclass(frozen=True)
class CompiledEngine:
    """Runs on closed-form tasks in one program of JAX."""

    name: ClassVar[str] = "compiled"
    options: ClassVar[frozenset[Option]] = frozenset({"width", "matmul"})

    def refusal(self, spec: RunSpec) -> str | None:
        """Environments that have to be stepped, and a choice that CPUs do not have."""
        if not isinstance(spec.world, ClosedFormWorld):
            return f"{spec.world.name!r} is an environment, which the {self.name} engine cannot run."
        if spec.engine.matmul == "float32" and spec.engine.device != "gpu":
            return "matmul is 'float32' on the cpu, which has no choice: leave it out."
        return None

    def program(self, spec: RunSpec) -> str:
        """All but seeds and rates."""
        told = spec.as_json()
        agent = {name: value for name, value in told["agent"].items() if name not in _RATES}
        names = ("world", "algorithm", "dt", "env_steps", "engine", "exploration")
        return json.dumps([*(told[name] for name in names), agent])

    def most_lanes(self, spec: RunSpec) -> int:
        """As many as a data-centre card has memory for; a CPU is busy with one."""
        return min(MOST_LANES, GPU_BYTES // lane_bytes(loop_of(spec))) if spec.engine.device == "gpu" else 1

    def together(self, spec: RunSpec) -> int:
        """One for each lane."""
        return spec.engine.width

    enough = together

    def jax_device(self, spec: RunSpec) -> str:
        """The run's."""
        return spec.engine.device

    def group(self, specs: Sequence[RunSpec]) -> CompiledGroup:
        """The program and its runs."""
        check_device(specs[0].engine.device)
        return CompiledGroup(tuple(specs), self)

    def agent(self, spec: RunSpec) -> Agent:
        """Who learns."""
        return spec.bound_agent

    def setting(self, spec: RunSpec) -> ClosedForm:
        """The world of a run."""
        return ClosedForm(spec)

    def cost(self, spec: RunSpec) -> Cost:
        """Tried; where there is no GPU for it, what is known of an H200."""
        try:
            return tried_cost(self.group([spec]))
        except NoGpuError:
            if (known := self.known_cost(spec)) is None:
                raise
            return known

    def known_cost(self, spec: RunSpec) -> Cost | None:
        """Of an H200, by the benchmark."""
        if spec.engine.device != "gpu" or spec.algorithm not in _H200_UPDATE_S:
            return None
        updates = spec.agent.gradient_steps / spec.agent.period  # type: ignore[attr-defined]  # of SAC
        return Cost(_H200_UPDATE_S[spec.algorithm] * updates * spec.engine.width, 30.0, where="an H200")


def loop_of(spec: RunSpec, agent: Agent | None = None) -> CompiledLoop:
    """Algorithm 1 for runs like this, whose agent may be given in another form."""
    assert isinstance(spec.world, ClosedFormWorld), "the engine refuses other worlds"
    return CompiledLoop(
        task=spec.world.task,
        agent=agent or spec.bound_agent,
        dt=spec.dt,
        env_steps=spec.env_steps,
        width=spec.engine.width,
        matmul=spec.engine.matmul,
    )


@dataclass(frozen=True)
class CompiledGroup:
    """Runs that one program can carry; it has lanes for `width` of them, and repeats one where there are fewer."""

    specs: tuple[RunSpec, ...]
    engine: CompiledEngine = CompiledEngine()
    """Which one of this kind."""

    def __post_init__(self) -> None:
        """Refuse runs that differ in more than seeds and rates."""
        width, engine = self.specs[0].engine.width, self.engine
        if len(self.specs) > width:
            raise InputError(f"There are {len(self.specs)} runs: a program of the width {width} takes {width} of them.")
        for spec in self.specs[1:]:
            if engine.program(spec) != engine.program(self.specs[0]):
                raise InputError(f"{spec.name} and {self.specs[0].name} need different programs: train them apart.")
        _ = self.lanes

    @cached_property
    def settings(self) -> tuple[ClosedForm, ...]:
        """By run, its world."""
        return tuple(map(self.engine.setting, self.specs))

    @cached_property
    def lanes(self) -> Lanes:
        """The program and its runs."""
        agents = [self.engine.agent(spec) for spec in self.specs]
        return Lanes(loop_of(self.specs[0], agents[0]), [spec.seed for spec in self.specs], agents)

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        """Train runs, each from its start or from the arrays of a moment."""
        return self.lanes.chunks(starts)

    def drop(self, run: int) -> None:
        """Go on without a run."""
        self.lanes.drop(run)

    def close(self) -> None:
        """There is nothing to let go of."""
