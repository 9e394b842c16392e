"""The journal of a robot's run: the timing of every cycle and every finished episode, synced while the robot resets.

All times are in seconds of the environment's clock. In lock-step that clock stands still while the agent computes, so
that its cycles take no time, and records are the same twice.

A file that only grows: a line with the run's identity, then a frame for each episode. A frame has a mark, its number of
bytes, their checksum, and arrays in NumPy's .npz. A killed process, or a power loss, leaves whole frames and at most
one torn frame, at the end; so at most the episode in progress is lost. Behind a damaged frame, reading goes on at the
next mark that a whole one follows. Nothing is loaded by pickle.
"""

from __future__ import annotations

import io
import json
import os
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, get_type_hints
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cycletime.bounded import open_regular
from cycletime.errors import RunError
from cycletime.training.atomic_files import disk_errors, flush_folder
from cycletime.training.bounded_npz import open_npz


class Cycle(NamedTuple):
    """One cycle of the agent: wake up, observe, act, send, learn."""

    scheduled_s: float
    wake_error_s: float
    observation_age_s: float
    """How old the observation was when the agent began to act; NaN where the environment does not tell."""
    act_s: float
    send_s: float
    learn_s: float
    """What storing and learning took afterwards; in the background, what waiting for it took."""
    stale_updates: int
    """Learnings that had fallen due, and were not yet part of the policy that acted."""
    missed_steps: int
    """Points of the environment's grid that were over before they were looked at; rewards of those were paid later."""
    packages: int
    """States that came from the robot since the cycle before; -1 where the environment does not tell."""
    missed_packages: int
    """States that got lost since then; -1 where the environment does not tell."""
    overrun: bool
    """Whether its work was not done when the next one was due, which was therefore left out."""


_CYCLE = np.dtype(list(get_type_hints(Cycle).items()))


class Cycles(np.recarray[Any, Any]):
    """Cycles in order; each field of `Cycle` is a column of that name."""

    @classmethod
    def of(cls, cycles: Sequence[Cycle]) -> Cycles:
        return np.array(list(cycles), _CYCLE).view(cls)

    @classmethod
    def from_table(cls, table: NDArray[np.float64]) -> Cycles:
        return np.rec.fromarrays(list(table.T), _CYCLE).view(cls)

    def table(self) -> NDArray[np.float64]:
        """[cycles, fields] all of it in one array, which has room for whole numbers as well."""
        return np.stack([self[name].astype(np.float64) for name in Cycle._fields], axis=1)

    @classmethod
    def joined(cls, parts: Iterable[Cycles]) -> Cycles:
        return np.concatenate([cls.of(()), *parts]).view(cls)


TIMED_PARTS = ("wake_error_s", "observation_age_s", "act_s", "send_s", "learn_s")
MAX_OVERRUN_SHARE = 0.01
"""The share of overruns beyond which a run says so."""


@dataclass(frozen=True)
class Spread:
    """One of the times, over all cycles that have it; NaN where none does."""

    mean_s: float
    p99_s: float
    """99 of 100 cycles took at most this."""
    worst_s: float

    @classmethod
    def of(cls, times_s: NDArray[np.float64]) -> Spread:
        known = times_s[~np.isnan(times_s)]
        if not len(known):
            return cls(nan, nan, nan)
        return cls(float(known.mean()), float(np.quantile(known, 0.99, method="higher")), float(known.max()))


@dataclass(frozen=True)
class TimingSummary:
    cycles: int
    overruns: int
    spreads: Mapping[str, Spread]

    @property
    def share_of_overruns(self) -> float:
        return self.overruns / self.cycles if self.cycles else 0.0

    @property
    def warning(self) -> str | None:
        """A sentence where more cycles were late than a result should be trusted with; else None."""
        if self.share_of_overruns <= MAX_OVERRUN_SHARE:
            return None
        return (
            f"{self.overruns:,} of {self.cycles:,} cycles ({self.share_of_overruns:.1%}) were not done in time, more "
            f"than {MAX_OVERRUN_SHARE:.0%}: the run is not one at this cycle time."
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "cycles": self.cycles,
            "overruns": self.overruns,
            "share_of_overruns": self.share_of_overruns,
            **{
                name: None if np.isnan(each.mean_s) else {"mean": each.mean_s, "p99": each.p99_s, "worst": each.worst_s}
                for name, each in self.spreads.items()
            },
            "warning": self.warning,
        }


def summarize_timing(parts: Iterable[Cycles]) -> TimingSummary:
    names = (*TIMED_PARTS, "overrun")
    columns = [np.stack([part[name] for name in names]) for part in parts]
    *times, overruns = np.concatenate([np.zeros((len(names), 0)), *columns], axis=1)
    spreads = {name: Spread.of(times_s) for name, times_s in zip(TIMED_PARTS, times, strict=True)}
    return TimingSummary(len(overruns), int(overruns.sum()), spreads)


@dataclass(frozen=True, eq=False)
class EpisodeRecord:
    number: int
    rows: NDArray[np.float32]
    """[agent steps, numbers of a transition], in the order of `agents.agent.Transition`."""
    length_steps: NDArray[np.int64]
    """[agent steps] the environment steps that each lasted."""
    rewards: NDArray[np.float64]
    """[agent steps] in full precision, of which the return is the sum."""
    cycles: Cycles
    ended_by: str
    """'terminated', 'truncated', or the safety mode that cut it short, such as 'PROTECTIVE_STOP'."""
    run_env_steps: int

    @property
    def undiscounted_return(self) -> float:
        return float(self.rewards.sum())

    @property
    def env_steps(self) -> int:
        return int(self.length_steps.sum())

    @property
    def agent_steps(self) -> int:
        return len(self.rows)


JOURNAL_FILE = "journal.cycles"
JOURNAL_FORMAT = 1
_TOLD, _ARRAYS = ("number", "ended_by", "run_env_steps"), ("rows", "length_steps", "rewards")
"""The fields of an episode, beside its cycles, that a frame has in JSON and as arrays."""
_MARK = b"EPISODE\n"
_FRAME = struct.Struct("<8sQI")
"""Mark, bytes, checksum."""


@dataclass(frozen=True, eq=False)
class JournalEntry:
    episode: EpisodeRecord
    session: int
    """In which session of the run it was made, from 1: the first, or after so many resumptions."""


@dataclass(frozen=True)
class Journal:
    path: Path
    identity: str

    def append(self, entry: JournalEntry) -> None:
        payload = _encode_entry(entry)
        with disk_errors(self.path):
            if self.path.exists():
                open_regular(self.path).close()  # to append to a pipe would wait for its reader
            with self.path.open("ab") as file:
                is_new = file.tell() == 0
                if is_new:
                    file.write(self._head())
                file.write(_FRAME.pack(_MARK, len(payload), crc32(payload)) + payload)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                flush_folder(self.path.parent)

    def entries(self) -> Iterator[JournalEntry]:
        return (_decode_entry(payload) for payload, _ in self._frames())

    def last(self) -> JournalEntry | None:
        newest = self._newest()
        return None if newest is None else _decode_entry(newest[0])

    def repair(self) -> str | None:
        """Put aside what follows the last whole episode, so that more can be appended; a sentence if any was."""
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

    def lost(self) -> str | None:
        frames = [(_decode_entry(payload).episode.number, end) for payload, end in self._frames()]
        whole = {number for number, _ in frames}
        episodes = max(whole, default=-1) + 1
        missing = [str(number + 1) for number in range(episodes) if number not in whole]
        end = frames[-1][1] if frames else len(self._head())
        torn = max(0, self.path.stat().st_size - end) if self.path.exists() else 0
        if not missing and not torn:
            return None
        lost = ([f"lost are {', '.join(missing)}"] if missing else []) + (
            [f"{torn:,} bytes behind the last are no whole one"] if torn else []
        )
        return f"{self.path} is damaged: {len(whole):,} of {episodes:,} episodes are whole, {' and '.join(lost)}."

    def _newest(self) -> tuple[bytes, int] | None:
        newest = deque(self._frames(), maxlen=1)
        return newest[0] if newest else None

    def _frames(self) -> Iterator[tuple[bytes, int]]:
        """The bytes of whole episodes, and where each ends."""
        if not self.path.exists():
            return
        with disk_errors(self.path):
            file = open_regular(self.path)
        with file:
            head = self._head()
            found = file.read(len(head))
            if sum(byte != right for byte, right in zip(found, head, strict=False)) > 1:  # one may be damaged
                raise RunError(f"{self.path} is not the journal of this run: it begins with {found[:40]!r}.")
            place = len(head)
            while place >= 0:
                file.seek(place)
                if (payload := _next_payload(file)) is not None:
                    place = file.tell()
                    yield payload, place
                else:
                    place = _next_mark(file, place + 1)

    def _head(self) -> bytes:
        return b"cycletime journal %d of %s\n" % (JOURNAL_FORMAT, self.identity.encode())


def _encode_entry(entry: JournalEntry) -> bytes:
    episode = entry.episode
    header = {**{name: getattr(episode, name) for name in _TOLD}, "session": entry.session}
    arrays = {
        "told": np.frombuffer(json.dumps(header).encode(), np.uint8),
        **{name: getattr(episode, name) for name in _ARRAYS},
        "cycles": episode.cycles.table(),
    }
    raw = io.BytesIO()
    np.savez(raw, **arrays)
    return raw.getvalue()


def _next_payload(file: BinaryIO) -> bytes | None:
    frame = file.read(_FRAME.size)
    if len(frame) < _FRAME.size:
        return None
    mark, size, checksum = _FRAME.unpack(frame)
    left = os.fstat(file.fileno()).st_size - file.tell()
    if mark != _MARK or size > left:
        return None
    payload = file.read(size)
    return payload if crc32(payload) == checksum else None


def _next_mark(file: BinaryIO, place: int) -> int:
    """Where the next episode may begin, from a place on; -1 if nowhere."""
    file.seek(place)
    found, before = -1, b""
    while found < 0 and (data := file.read(1 << 20)):
        found = (before + data).find(_MARK)
        begin, before = place - len(before), data[1 - len(_MARK) :]
        place += len(data)
    return begin + found if found >= 0 else -1


def _decode_entry(payload: bytes) -> JournalEntry:
    with open_npz(io.BytesIO(payload), len(payload)) as arrays:
        header: dict[str, Any] = json.loads(arrays["told"].tobytes())
        kept = {**{name: header[name] for name in _TOLD}, **{name: arrays[name] for name in _ARRAYS}}
        episode = EpisodeRecord(**kept, cycles=Cycles.from_table(arrays["cycles"]))
    return JournalEntry(episode, header["session"])
