"""What every executor does: it starts workers somewhere, and knows which of them have ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol


class Executor(Protocol):
    """Starts workers that can reach a study's folder."""

    @property
    def workers(self) -> int:
        """How many workers it has at a time, about."""

    def found(self, study: Path) -> Iterable[str]:
        """Workers that an earlier command has started, and that go on."""

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        """Start so many workers of a command, for runs on a device; their names, each COMMAND... and -N.

        Raises:
            RunError: if none can be started, with what is known of the reason.
        """

    def ended(self, wait_s: float) -> Mapping[str, str]:
        """Wait a little; the workers that have ended since the last time, and what there is to say about each.

        Raises:
            MachineError: if one says that its machine lacks something.
        """

    def stop(self, study: Path) -> None:
        """Ask all workers to save and leave."""

    def kill(self, name: str) -> None:
        """End a worker that does not answer; `ended` tells of it in time."""

    def close(self, wait_s: float) -> None:
        """Let go of all that is left; workers that are no one's any more save and leave, in so many seconds."""
