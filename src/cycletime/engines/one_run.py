"""What engines have in common that train one run at a time, on an environment of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

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
