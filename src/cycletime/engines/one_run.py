"""What engines have in common that train one run at a time, on an environment of its own."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Self

from cycletime.engines.engine import Arrays, Chunk
from cycletime.errors import InputError
from cycletime.runs.spec import RunSpec


class OneRun:
    """A part of such an engine."""

    name: ClassVar[str]

    def program(self, spec: RunSpec) -> str:
        """All but the seed."""
        return json.dumps({**spec.as_json(), "seed": None, "origin": None})

    def most_lanes(self, spec: RunSpec) -> int:
        """It has none."""
        return 1

    def together(self, spec: RunSpec) -> int:
        """One."""
        return 1

    enough = together

    def jax_device(self, spec: RunSpec) -> str:
        """The run's."""
        return spec.engine.device

    def known_cost(self, spec: RunSpec) -> None:
        """Nothing: every environment has its own."""

    def _only(self, specs: Sequence[RunSpec]) -> RunSpec:
        """The one run that there must be."""
        if len(specs) > 1:
            raise InputError(f"There are {len(specs)} runs: the engine {self.name} trains one at a time.")
        return specs[0]


class OneRunGroup(ABC):
    """A part of such an engine's group, which also has what the run's files tell of its world."""

    card: ClassVar[None] = None
    """JAX computes it."""
    told_every: ClassVar[int] = 1
    """All learnings are told."""

    @property
    def settings(self) -> tuple[Self]:
        """The run's world."""
        return (self,)

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk]]:
        """Train the run, from its start or from the arrays of a position."""
        if starts:
            yield from ({0: chunk} for chunk in self._chunks(starts[0]))

    @abstractmethod
    def _chunks(self, arrays: Arrays | None) -> Iterator[Chunk]:
        """Those of the run."""

    def drop(self, run: int) -> None:  # noqa: B027 - there is nothing to do
        """Whoever has no run left asks for no more chunks."""
