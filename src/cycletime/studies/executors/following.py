"""Following chunks of runs that are computed elsewhere: what happened to each run, and whose workers die."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cycletime.errors import MachineError, RunError
from cycletime.runs.spec import RunSpec
from cycletime.studies.executors.executor import Event
from cycletime.studies.executors.remote import Batch
from cycletime.studies.folder import StudyFolder, add_failure, failure_of

GRACE_S = 10.0
"""How long the last lines of a chunk may take until they are seen here: network file systems show files late."""
MOST_SILENT = 3
"""So many chunks in a row may end without a word; then something is wrong with the machines, and not with the runs."""


@dataclass
class Troubles:
    """What an executor remembers of workers that died."""

    deaths: dict[str, int | None] = field(default_factory=dict)
    """By run, where it had begun when its worker died."""
    silent: int = 0
    """Chunks in a row that ended without a word."""


@dataclass
class Chunk:
    """Runs that one worker somewhere computes, one after another or some of them together."""

    batch: Batch
    index: int
    names: tuple[str, ...]
    read: int = 0
    """Bytes of its lines."""
    hand: dict[str, int | None] = field(default_factory=dict)
    """The runs that are being trained, and where each began or went on, in environment steps."""
    told: set[str] = field(default_factory=set)
    """Runs that have an outcome."""
    left: bool = False
    """Whether its worker went in order."""
    over: tuple[float, str] | None = None
    """Since when nobody computes it, and what there is to say about that."""

    @classmethod
    def of(cls, batch: Batch, index: int) -> Chunk:
        """A chunk of a batch."""
        return cls(batch, index, tuple(RunSpec.from_json(spec).name for spec in batch.specs(index)))

    @property
    def key(self) -> tuple[str, int]:
        """Unique everywhere."""
        return self.batch.name, self.index

    def lines(self) -> Iterable[Mapping[str, Any]]:
        """Whole lines that are new."""
        try:
            with self.batch.events(self.index).open("rb") as file:
                file.seek(self.read)
                new = file.read()
        except FileNotFoundError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self.read += len(whole)
        for line in whole.splitlines():
            try:
                told = json.loads(line)
            except ValueError:  # empty, or torn by a kill
                continue
            if isinstance(told, dict):
                yield told

    def take(self, told: Mapping[str, Any]) -> None:
        """Know what a line says."""
        if "worker" in told:
            self.hand, self.left = {}, False
        elif "left" in told or "machine" in told:
            self.left = True
        elif "outcome" in told:
            self.hand.pop(told["name"], None)
            self.told.add(told["name"])
        elif self.hand.get(told["name"]) is None:
            self.hand[told["name"]] = told.get("env_steps")


class Follower:
    """Tells what happens to the runs of chunks, until all chunks are over."""

    def __init__(self, study: StudyFolder, tell: Callable[[Event], None], troubles: Troubles) -> None:
        """Follow nothing yet."""
        self.study, self.tell, self.troubles = study, tell, troubles
        self.chunks: list[Chunk] = []
        self.batches: dict[str, Batch] = {}
        self.kept: set[str] = set()
        """Batches whose files say what went wrong."""

    def add(self, chunk: Chunk) -> None:
        """Follow a chunk from now on; of one that was begun before, what has happened is known already."""
        for told in chunk.lines():
            chunk.take(told)
        self.chunks.append(chunk)
        self.batches[chunk.batch.name] = chunk.batch

    def ended(self, chunk: Chunk, why: str = "") -> None:
        """Nobody computes this chunk any more; what is said about it serves where that is too early."""
        chunk.over = chunk.over or (time.monotonic(), why)

    def look(self) -> None:
        """Tell what is new, and drop the chunks that are over.

        Raises:
            RunError: if several workers in a row ended without a word.
        """
        for chunk in self.chunks:
            for told in chunk.lines():
                self.troubles.silent = 0
                self._hear(chunk, told)
        now = time.monotonic()
        for chunk in [each for each in self.chunks if each.over and (each.left or now - each.over[0] > GRACE_S)]:
            self.chunks.remove(chunk)
            self._settle(chunk)

    def tidy(self) -> None:
        """Remove the batches whose chunks are all over; those that say what went wrong stay."""
        for name in set(self.batches) - {chunk.batch.name for chunk in self.chunks}:
            batch = self.batches.pop(name)
            if name not in self.kept:
                batch.remove()

    def _hear(self, chunk: Chunk, told: Mapping[str, Any]) -> None:
        if "worker" in told:  # the first one, or another one after the first one died
            self._mourn(chunk, "its worker died")
        elif "machine" in told:
            raise MachineError(told["machine"])  # others would meet the same
        elif "outcome" in told:
            self.tell(Event(told["name"], outcome=told["outcome"], error=told.get("error")))
        elif "env_steps" in told:
            self.tell(Event(told["name"], env_steps=told["env_steps"]))
        chunk.take(told)

    def _settle(self, chunk: Chunk) -> None:
        """Say what became of the runs whose end was not heard of."""
        if not chunk.read:
            self.kept.add(chunk.batch.name)
            self.troubles.silent += 1
        for name in chunk.names:
            if name not in chunk.told and self.study.state_of(name) == "done":
                self.tell(Event(name, outcome="done"))
                chunk.hand.pop(name, None)
        why = chunk.over[1] if chunk.over else ""
        if chunk.hand:
            self.kept.add(chunk.batch.name)
            self._mourn(chunk, why or "its worker died")
        if self.troubles.silent >= MOST_SILENT:
            raise RunError(
                f"{MOST_SILENT} workers in a row ended without a word, the last one so: {why or 'no reason is known'}. "
                f"See {chunk.batch.path}, and let every machine have cycletime and reach {self.study.path}."
            )

    def _mourn(self, chunk: Chunk, why: str) -> None:
        """A worker died; a run in its hand is at fault if it got no further than the time before."""
        deaths = self.troubles.deaths
        for name, begun_at in chunk.hand.items():
            if name in deaths and deaths[name] == begun_at:
                add_failure(self.study.runs / name, failure_of(why))
                self.tell(Event(name, outcome="failed", error=why))
            deaths[name] = begun_at
