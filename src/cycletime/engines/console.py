"""Where progress is shown: standard error, whose reader may go away."""

from __future__ import annotations

from rich.console import Console


class ErrorConsole(Console):
    """A console on standard error that falls silent where nobody reads it any more.

    Rich would send standard output to nowhere then, and end the program.
    """

    def __init__(self) -> None:
        """Open it."""
        super().__init__(stderr=True)

    def on_broken_pipe(self) -> None:
        """Write nothing more."""
        self.quiet = True
