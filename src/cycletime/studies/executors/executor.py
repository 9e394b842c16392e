"""What every executor does: it takes jobs, and tells what becomes of their runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cycletime.studies.work import Outcome


@dataclass(frozen=True)
class Job:
    """Runs that one program serves, for one worker."""

    key: str
    """The program."""
    specs: tuple[Mapping[str, Any], ...]
    """The runs' specs, as `RunSpec.as_json` gives them."""
    together: int = 1
    """How many of them a worker trains together, at most."""
    enough: int | None = None
    """So few together make as good a use of a worker; None where only as many as possible do."""

    def share(self, runs: int, workers: int) -> int:
        """How many of so many runs a worker trains together, where others should have enough as well."""
        if self.enough is None:
            return self.together
        return min(self.together, max(self.enough, math.ceil(runs / workers)))


@dataclass(frozen=True)
class Event:
    """Something that happened to a run."""

    name: str
    """The run's."""
    env_steps: int | None = None
    """How far it is now."""
    outcome: Outcome | None = None
    """What became of it, at the end."""
    error: str | None = None
    """What went wrong, where something did."""


class Executor(Protocol):
    """Computes jobs of a study whose folder all workers can reach."""

    @property
    def workers(self) -> int:
        """How many workers it has at a time, about."""

    def execute(
        self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], stop: Callable[[], bool]
    ) -> None:
        """Compute all jobs; return when each run has an outcome, or when asked to stop and all have saved."""
