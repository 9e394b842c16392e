"""The engine native: the compiled loop, whose PPO takes its gradient steps in a library that is built beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from cycletime.agents import Agent, PPOAgent
from cycletime.training.compiled_engine import CompiledBatch, CompiledEngine
from cycletime.training.engine import ClosedFormInfo, EngineOption
from cycletime.training.spec import RunSpec


@dataclass(frozen=True)
class NativeEngine(CompiledEngine):
    """Runs of PPO on closed-form tasks, one at a time on a core, with last bits of their own."""

    name: ClassVar[str] = "native"
    options: ClassVar[frozenset[EngineOption]] = frozenset()

    def refusal(self, spec: RunSpec) -> str | None:
        """All but PPO alone on a CPU."""
        if spec.algorithm != "ppo":
            return f"The engine native cannot train {spec.algorithm}: it has ppo."
        if spec.engine.device != "cpu":
            return f"The engine native has the device {spec.engine.device!r}: it needs 'cpu'."
        return super().refusal(spec)

    def group(self, specs: Sequence[RunSpec]) -> CompiledBatch:
        """The program and its runs."""
        from cycletime.agents.native.library import native_library

        native_library()
        return super().group(specs)

    def agent(self, spec: RunSpec) -> Agent:
        """PPO in its native form."""
        from cycletime.agents.native.agent import NativePPOAgent

        assert isinstance(spec.bound_agent, PPOAgent), "the engine refuses other agents"
        return NativePPOAgent.like(spec.bound_agent)

    def setting(self, spec: RunSpec) -> ClosedFormInfo:
        """The world of a run, and the library that computes beside JAX."""
        from cycletime.agents.native.library import native_library

        return ClosedFormInfo(spec, card={"native": str(native_library())})
