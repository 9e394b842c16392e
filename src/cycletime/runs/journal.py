"""The journal of a robot's run: every finished episode, appended and synced while the robot resets.

A file that only grows: a line with the run's identity, then a frame for each episode. A frame has a mark, its number of
bytes, their checksum, and arrays in NumPy's .npz. Whoever is killed, or loses power, leaves frames that are whole and
at most one that is torn, at the end; so at most the episode in progress is lost. Nothing is loaded by pickle.
"""

from __future__ import annotations

import io
import json
import os
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import numpy as np

from cycletime.errors import RunError
from cycletime.loops.real_time.cycles import Cycles
from cycletime.loops.real_time.episode import EpisodeRecord
from cycletime.runs.files import disk_errors, flush_folder
from cycletime.runs.npz import open_npz

NAME = "journal.cycles"
FORMAT = 1
_MARK = b"EPISODE\n"
_FRAME = struct.Struct("<8sQI")
"""Mark, bytes, checksum."""


@dataclass(frozen=True, eq=False)
class Entry:
    """An episode in a journal."""

    episode: EpisodeRecord
    session: int
    """In which session of the run it was made, from 1: the first, or after so many resumptions."""


@dataclass(frozen=True)
class Journal:
    """The journal of one run."""

    path: Path
    identity: str
    """The run's."""

    def append(self, entry: Entry) -> None:
        """Add an episode; the disk has it when this returns.

        Raises:
            RunError: if the disk refuses.
        """
        payload = _packed(entry)
        with disk_errors(self.path):
            with self.path.open("ab") as file:
                is_new = file.tell() == 0
                if is_new:
                    file.write(self._head())
                file.write(_FRAME.pack(_MARK, len(payload), crc32(payload)) + payload)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                flush_folder(self.path.parent)

    def entries(self) -> Iterator[Entry]:
        """The episodes that are whole, up to the first that is not.

        Raises:
            RunError: if it is another run's, or may not be read.
        """
        return (_unpacked(payload) for payload, _ in self._frames())

    def last(self) -> Entry | None:
        """The newest episode that is whole, if there is one.

        Raises:
            RunError: if it is another run's, or may not be read.
        """
        newest = self._newest()
        return None if newest is None else _unpacked(newest[0])

    def repair(self) -> str | None:
        """Put aside what follows the last episode that is whole, so that more can be appended; a sentence if any was.

        Raises:
            RunError: if it is another run's, or the disk refuses.
        """
        if not self.path.exists():
            return None
        size = self.path.stat().st_size
        newest, head = self._newest(), len(self._head())
        whole = newest[1] if newest else head if size >= head else 0  # it may have been killed with its first line
        if whole == size:
            return None
        aside = self.path.with_name(f"unusable-{self.path.name}")
        with disk_errors(self.path), self.path.open("rb+") as file:
            file.seek(whole)
            aside.write_bytes(file.read())
            file.truncate(whole)
            file.flush()
            os.fsync(file.fileno())
        return f"{size - whole:,} bytes at the end of {self.path} are no whole episode; they are now in {aside}."

    def _newest(self) -> tuple[bytes, int] | None:
        newest = deque(self._frames(), maxlen=1)
        return newest[0] if newest else None

    def _frames(self) -> Iterator[tuple[bytes, int]]:
        """The bytes of whole episodes, and where each ends."""
        if not self.path.exists():
            return
        with disk_errors(self.path):
            file = self.path.open("rb")
        with file:
            head = self._head()
            if (found := file.read(len(head))) != head and not head.startswith(found):
                raise RunError(f"{self.path} is not the journal of this run: it begins with {found[:40]!r}.")
            while (payload := _next(file)) is not None:
                yield payload, file.tell()

    def _head(self) -> bytes:
        return b"cycletime journal %d of %s\n" % (FORMAT, self.identity.encode())


def _packed(entry: Entry) -> bytes:
    episode = entry.episode
    told = {
        "number": episode.number,
        "ended_by": episode.ended_by,
        "run_env_steps": episode.run_env_steps,
        "session": entry.session,
    }
    arrays = {
        "told": np.frombuffer(json.dumps(told).encode(), np.uint8),
        "rows": episode.rows,
        "length_steps": episode.length_steps,
        "rewards": episode.rewards,
        "cycles": episode.cycles.table(),
    }
    raw = io.BytesIO()
    np.savez(raw, **arrays)  # type: ignore[arg-type]  # a name is no option of savez here
    return raw.getvalue()


def _next(file: BinaryIO) -> bytes | None:
    """The bytes of the next episode, or None where the file ends, or what follows is not whole."""
    frame = file.read(_FRAME.size)
    if len(frame) < _FRAME.size:
        return None
    mark, size, checksum = _FRAME.unpack(frame)
    left = os.fstat(file.fileno()).st_size - file.tell()
    if mark != _MARK or size > left:
        return None
    payload = file.read(size)
    return payload if crc32(payload) == checksum else None


def _unpacked(payload: bytes) -> Entry:
    with open_npz(io.BytesIO(payload), len(payload)) as arrays:
        told: dict[str, Any] = json.loads(arrays["told"].tobytes())
        episode = EpisodeRecord(
            number=told["number"],
            rows=arrays["rows"],
            length_steps=arrays["length_steps"],
            rewards=arrays["rewards"],
            cycles=Cycles.from_table(arrays["cycles"]),
            ended_by=told["ended_by"],
            run_env_steps=told["run_env_steps"],
        )
    return Entry(episode, told["session"])
