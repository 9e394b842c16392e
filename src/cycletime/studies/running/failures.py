"""What went wrong with a run of a study: `failures.jsonl` in its folder, and whether it is tried once more."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cycletime.errors import InputError, in_words
from cycletime.runs.files import disk_errors, make_folder
from cycletime.runs.told import is_count, told_by

MOST = 3
"""A run that fails so often, or whose workers die so often without getting further, is left alone until a retry."""


@dataclass(frozen=True)
class Failures:
    """The failures of a run."""

    run: Path
    """Its folder, which need not be there."""

    @property
    def file(self) -> Path:
        """Where they are noted."""
        return self.run / "failures.jsonl"

    def read(self) -> list[Mapping[str, Any]]:
        """All that were noted."""
        try:
            lines = self.file.read_bytes().splitlines()
        except OSError:
            return []
        return [told for line in lines if (told := _told_or_none(line)) is not None]

    @property
    def are_noted(self) -> bool:
        """Whether there is a file of them, though it may not be readable."""
        return self.file.exists()

    @property
    def last(self) -> Mapping[str, Any]:
        """The last one; empty if there is none."""
        return next(reversed(self.read()), {})

    @property
    def is_hopeless(self) -> bool:
        """Whether the run is left alone."""
        noted = self.read()
        alone = Counter(each.get("begun_at") for each in noted if each.get("died_among") == 1)
        raised = sum("died_among" not in each for each in noted)
        is_wrong = any(each.get("wrong_input") is True for each in noted)
        return is_wrong or raised >= MOST or max(alone.values(), default=0) >= MOST

    def most_together(self) -> int | None:
        """With how many others it may be trained; fewer each time that a worker died over them. None for any number."""
        deaths = [int(each["died_among"]) for each in self.read() if "died_among" in each]
        return max(1, min(deaths) // 2) if deaths else None

    def add(self, error: Exception | str) -> None:
        """Note an error that the run raised; a wrong input would be as wrong the next time."""
        trace = "" if isinstance(error, str) else "".join(traceback.format_exception(error))
        text = error if isinstance(error, str) else in_words(error)
        self._note({"error": text, "traceback": trace, "wrong_input": isinstance(error, InputError)})

    def add_death(self, why: str, begun_at: int | None, among: int) -> None:
        """Note that a worker died which had begun this run somewhere, among so many."""
        self._note({"error": why, "begun_at": begun_at, "died_among": among})

    def forget(self) -> None:
        """Let the run be tried again."""
        with disk_errors(self.run):
            self.file.unlink(missing_ok=True)

    def _note(self, told: Mapping[str, Any]) -> None:
        when = datetime.now(UTC).isoformat(timespec="seconds")
        make_folder(self.run)
        with disk_errors(self.run), self.file.open("a") as file:
            file.write("\n" + json.dumps({"when": when, **told}) + "\n")  # what was torn by a kill ends there


def _told_or_none(line: bytes) -> Mapping[str, Any] | None:
    """What a line says, unless it was torn by a kill or spoilt by a disk: then the run is tried once more."""
    try:
        told = told_by(line)
    except ValueError:
        return None
    is_death, begun_at = "died_among" in told, told.get("begun_at")
    can_be = not is_death or (is_count(told["died_among"]) and (begun_at is None or is_count(begun_at)))
    return told if can_be and isinstance(told.get("error"), str) else None
