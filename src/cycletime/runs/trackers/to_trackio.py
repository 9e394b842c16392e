"""Trackio: one of its runs is one of ours, with the same name."""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Mapping
from typing import Any

from cycletime.runs.trackers.extras import load
from cycletime.runs.trackers.tracker import RunInfo, Status


class Trackio:
    """Logs to Trackio. Where to is in Trackio's own variables: TRACKIO_DIR, TRACKIO_SPACE_ID, TRACKIO_SERVER_URL."""

    def __init__(self) -> None:
        """Refuse a missing package before the run starts."""
        self._trackio = load("trackio", "Trackio", "trackio")
        self._run: Any = None
        self._next_step = 0

    def begin(self, run: RunInfo) -> None:
        """Open the run, or go on with it."""
        # Trackio ends the context's earlier run when another begins; runs can go on side by side in one process.
        context = contextvars.Context()
        with contextlib.redirect_stdout(sys.stderr):  # its greetings are no output of ours
            self._run = context.run(
                self._trackio.init,
                project="cycletime",
                name=run.name,
                resume="allow",
                config=dict(run.config),
                embed=False,
            )
        self._next_step = self._run._next_step

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        """Log the values, unless Trackio has them: it would keep both of two at one step."""
        if env_steps >= self._next_step:
            self._run.log(dict(values), step=env_steps)

    def end(self, status: Status) -> None:
        """Wait until all is written or sent; Trackio keeps no status."""
        with contextlib.redirect_stdout(sys.stderr):
            self._run.finish()
