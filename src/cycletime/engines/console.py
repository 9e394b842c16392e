"""Where progress is shown: standard error, which may be full, closed or gone while the work goes on."""

from __future__ import annotations

import sys
from typing import TextIO, cast

from rich.console import Console

from cycletime.streams import Lenient


class ErrorConsole(Console):
    """A console on standard error that shows what can be shown."""

    def __init__(self) -> None:
        """Open it."""
        super().__init__(file=None if sys.stderr is None else cast(TextIO, Lenient(sys.stderr)), stderr=True)
