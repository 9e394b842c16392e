"""What a tracker is: a listener to a run's values, beside the run's own file of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None
"""A value that JSON has, other than lists and objects."""
Status: TypeAlias = Literal["finished", "stopped", "failed"]
"""How a run ended: by reaching its budget, by being stopped (it can go on later), or by an error."""


@dataclass(frozen=True)
class RunInfo:
    """What a tracker learns of a run before the first value."""

    name: str
    """Readable, and different for different runs."""
    identity: str
    """Hexadecimal digits; the same when the run goes on, so that a tracker finds it again."""
    folder: Path
    """Where the run keeps its own files."""
    config: Mapping[str, Scalar]
    """The spec, flat: `agent.discount`, `dt`, `seed`, ..."""
    resumed_from: int | None = None
    """The environment steps of the checkpoint that the run goes on from: values beyond it will be logged again.
    None: it starts from the beginning."""


class Tracker(Protocol):
    """Hears of one run. An error in `begin` refuses the run; what an error later on does, `Guarded` decides."""

    def begin(self, run: RunInfo) -> None:
        """Open the run, or find it again, with its config."""

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        """Take values, named in two namespaces (`charts/episodic_return`, `losses/policy_loss`), at a step."""

    def end(self, status: Status) -> None:
        """Write what is left and close the run."""
