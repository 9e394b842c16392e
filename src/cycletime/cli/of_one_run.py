"""What commands share that take one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.errors import InputError


@dataclass(frozen=True, kw_only=True)
class OfOneRun:
    """Which one."""

    folders: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN", help_behavior_hint="(required)")]
    """The run's folder."""

    @property
    def folder(self) -> Path:
        """The one that there must be; a shell's * may have found none or several.

        Raises:
            InputError: if so.
        """
        if len(self.folders) != 1:
            found = ", ".join(map(str, self.folders)) or "none"
            raise InputError(
                f"This command takes one run, and was given {len(self.folders)} ({found}): name one of them."
            )
        return self.folders[0]
