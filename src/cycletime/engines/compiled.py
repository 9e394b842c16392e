"""The engine for closed-form tasks: the compiled loop, for one run or for as many as its program has lanes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from cycletime.engines.closed_form import ClosedForm
from cycletime.engines.engine import Arrays, Chunk
from cycletime.engines.lanes import Lanes
from cycletime.errors import InputError, RunError
from cycletime.loops import CompiledLoop
from cycletime.runs.spec import RunSpec


@dataclass(frozen=True)
class CompiledEngine(ClosedForm):
    """A run on a closed-form task."""

    def __post_init__(self) -> None:
        """Refuse what this engine cannot compute."""
        _ = self.loop

    @cached_property
    def loop(self) -> CompiledLoop:
        """Algorithm 1."""
        return CompiledLoop(
            task=self.world.task,
            agent=self.spec.bound_agent,
            dt=self.spec.dt,
            env_steps=self.spec.env_steps,
            width=self.spec.engine.width,
            matmul=self.spec.engine.matmul,
        )

    @property
    def card(self) -> Mapping[str, str] | None:
        """JAX computes it."""
        return None

    @property
    def told_every(self) -> int:
        """All learnings are told."""
        return 1

    def chunks(self, arrays: Arrays | None) -> Iterator[Chunk]:
        """Train, from the start or from the arrays of a moment."""
        for told in CompiledGroup((self.spec,)).chunks({0: arrays}):
            chunk = told[0]
            if isinstance(chunk, RunError):
                raise chunk
            yield chunk

    def close(self) -> None:
        """There is nothing to let go of."""


@dataclass(frozen=True)
class CompiledGroup:
    """Runs that one program can carry; it has lanes for `width` of them, and repeats one where there are fewer."""

    specs: tuple[RunSpec, ...]

    def __post_init__(self) -> None:
        """Refuse runs that differ in more than seeds and rates."""
        width = self.specs[0].engine.width
        if len(self.specs) > width:
            raise InputError(f"There are {len(self.specs)} runs: a program of the width {width} takes {width} of them.")
        for spec in self.specs[1:]:
            if _program(spec) != _program(self.specs[0]):
                raise InputError(f"{spec.name} and {self.specs[0].name} need different programs: train them apart.")
        _ = self.lanes

    @cached_property
    def settings(self) -> tuple[CompiledEngine, ...]:
        """By run, its world."""
        return tuple(CompiledEngine(spec) for spec in self.specs)

    @cached_property
    def lanes(self) -> Lanes:
        """The program and its runs."""
        agents = [spec.bound_agent for spec in self.specs]
        return Lanes(self.settings[0].loop, [spec.seed for spec in self.specs], agents)

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        """Train runs, each from its start or from the arrays of a moment."""
        return self.lanes.chunks(starts)

    def drop(self, run: int) -> None:
        """Go on without a run."""
        self.lanes.drop(run)

    def close(self) -> None:
        """There is nothing to let go of."""


def _program(spec: RunSpec) -> tuple[object, ...]:
    """What runs of one program share, besides the shapes of their agents, which the loop looks at."""
    return spec.world, spec.dt, spec.env_steps, spec.engine, spec.exploration
