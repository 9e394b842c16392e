"""A tracker's failure is not the training's: one sentence, and the run goes on without that tracker."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cycletime.errors import InputError
from cycletime.runs.trackers.tracker import RunInfo, Status, Tracker


class Guarded:
    """A tracker that can refuse a run in `begin`, and harms it no more from then on."""

    def __init__(self, tracker: Tracker, warn: Callable[[str], object]) -> None:
        """Guard a tracker; `warn` gets one sentence when it fails, and nothing goes to the tracker after that."""
        self._tracker = tracker
        self._warn = warn
        self._listening = False

    def begin(self, run: RunInfo) -> None:
        """Open the run; an error is the user's to mend, before any training.

        Raises:
            InputError: if it cannot be.
        """
        try:
            self._tracker.begin(run)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{self._title} could not begin: {_reason(error)}.") from error
        self._listening = True

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        """Pass values on, unless the tracker has failed."""
        self._attempt(lambda: self._tracker.log(env_steps, values))

    def end(self, status: Status) -> None:
        """Close the run. A tracker that has not begun, has failed or has ended is left alone."""
        self._attempt(lambda: self._tracker.end(status))
        self._listening = False

    @property
    def _title(self) -> str:
        return type(self._tracker).__name__

    def _attempt(self, call: Callable[[], None]) -> None:
        if not self._listening:
            return
        try:
            call()
        except Exception as error:
            self._listening = False
            self._warn(f"{self._title} failed and hears no more of this run: {_reason(error)}.")


def _reason(error: Exception) -> str:
    """The first line of what the error says, since services like to add advice and traces."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {said}".rstrip(": .")
