"""Where finished runs of a study go: into its store, all that end in one moment as one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cycletime.engines.engine import Chunk
from cycletime.engines.record import Keep, Record
from cycletime.engines.training import Last
from cycletime.studies.store.folder import StudyFolder


@dataclass(frozen=True)
class StudyShelf:
    """The store of a study."""

    study: StudyFolder

    @property
    def keep(self) -> Keep:
        """What is wanted of its runs."""
        return self.study.keep

    def save(self, record: Record, chunk: Chunk) -> None:
        """The checkpoint has all that there is to know of a run in training."""

    def finish(self, last: Sequence[Last]) -> list[Exception | None]:
        """Put them into the store; their folders are not needed any more."""
        try:
            self.study.store.add([run for _, run in last])
        except Exception as error:
            return [error] * len(last)
        for record, _ in last:
            record.folder.remove()
        return [None] * len(last)
