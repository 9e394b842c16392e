"""The one interface of those who follow a training: the progress bar, trackers, a worker, a robot's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:  # observers may live in processes without JAX
    from cycletime.training.learning_curve import Episodes
    from cycletime.training.run_folder import RunFolder

Status: TypeAlias = Literal["finished", "stopped", "failed"]
"""How a run ended: by reaching its budget, by being stopped (it can go on later), or by an error."""


@dataclass(frozen=True)
class Progress:
    env_steps: int
    agent_steps: int
    episodes: Episodes
    lines: Sequence[Mapping[str, Any]]


class TrainingObserver:
    """Follows a run: the progress bar, a tracker, a worker's events. Each overrides what it needs."""

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """The run begins, or goes on from a checkpoint at so many environment steps. An error refuses the run."""

    def update(self, progress: Progress) -> None:
        """The run went on."""

    def remark(self, sentence: str) -> None:
        """Something that the user should know."""

    def end(self, status: Status) -> None:
        """The run is finished, or was stopped and can be resumed, or something failed."""
