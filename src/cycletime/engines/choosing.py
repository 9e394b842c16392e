"""Which engine computes a run, and how many runs together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import jax

from cycletime.engines.compiled import CompiledEngine, CompiledGroup
from cycletime.engines.cuda.group import CudaEngine, CudaGroup
from cycletime.engines.engine import Arrays, Chunk, Engine, Group
from cycletime.errors import InputError, NoGpuError, RunError
from cycletime.runs.spec import EngineSpec, RunSpec

MOST_ON_KERNEL = 1024
"""Runs that one process trains on the kernel: enough to keep a GPU busy, and few enough for its files and leases."""
ENOUGH_ON_KERNEL = 132
"""Runs that keep a large GPU busy, one for each multiprocessor of an H100 or H200."""


def engine_for(spec: RunSpec) -> Engine:
    """The engine that a spec asks for."""
    if spec.engine.name == "cuda":
        return CudaEngine(spec)
    _check_device(spec.engine)
    if spec.engine.name == "compiled":
        return CompiledEngine(spec)
    from cycletime.engines.stepped import SteppedEngine  # it needs Gymnasium, which GPU machines may lack

    return SteppedEngine(spec)


def group_for(specs: Sequence[RunSpec]) -> Group:
    """The engine that trains runs together.

    Raises:
        InputError: if they cannot be trained together.
    """
    engine = specs[0].engine
    if engine.name == "cuda":
        for spec in specs:
            if spec.engine != engine:
                raise InputError(f"{spec.name} and {specs[0].name} are for different engines: train them apart.")
        return CudaGroup(specs)
    _check_device(engine)
    if engine.name == "compiled":
        return CompiledGroup(tuple(specs))
    if len(specs) > 1:
        raise InputError(f"There are {len(specs)} runs: the engine {engine.name} trains one at a time.")
    return Alone(engine_for(specs[0]))


def most_together(engine: EngineSpec) -> int:
    """How many runs of one program an engine trains together, at most."""
    return {"compiled": engine.width, "cuda": MOST_ON_KERNEL}.get(engine.name, 1)


def enough_together(engine: EngineSpec) -> int | None:
    """How many runs together make as good a use of an engine as more do; None where only the most do."""
    return ENOUGH_ON_KERNEL if engine.name == "cuda" else None


@dataclass(frozen=True)
class Alone:
    """A group of one run."""

    engine: Engine

    @property
    def settings(self) -> tuple[Engine]:
        """The run's."""
        return (self.engine,)

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        """The run's chunks."""
        for run, arrays in starts.items():
            for chunk in self.engine.chunks(arrays):
                yield {run: chunk}

    def drop(self, run: int) -> None:
        """Whoever has no run left asks for no more chunks."""

    def close(self) -> None:
        """Let go of what it holds."""
        self.engine.close()


def _check_device(engine: EngineSpec) -> None:
    here = jax.default_backend()
    if engine.device == "gpu" != here:
        raise NoGpuError(
            "The run is for a GPU, and JAX finds none here: pip install 'jax[cuda13]', or compute it elsewhere."
        )
    if here != engine.device:
        raise InputError(f"The run is for {engine.device!r}, but JAX computes on {here!r} here: set JAX_PLATFORMS.")
