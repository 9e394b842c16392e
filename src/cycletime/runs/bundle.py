"""Many finished runs in one file, as columns: NumPy's .npz without pickles, which needs NumPy alone.

A file is named after the hash of its content. It is written whole or not at all, and never changed; what is read of it
but for the names of its runs is held against that hash, and each run against itself.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import RunError
from cycletime.loops import EpisodeBins
from cycletime.runs.columns import About, about_in, columns_of, runs_in
from cycletime.runs.files import write_last
from cycletime.runs.npz import open_npz
from cycletime.runs.result import FinishedRun
from cycletime.runs.told import reason_of

SUFFIX = ".npz"
MOST_BYTES = 12 * 2**20
"""Of the arrays in a file, so that it is smaller than 16 MiB; a larger run has a file of its own."""
MOST_READ = 4 * 2**30
"""What no run takes, in bytes: larger files are refused before they are read."""


def write_bundles(folder: Path, runs: Sequence[FinishedRun]) -> list[Path]:
    """Write runs into as few files as their kinds and sizes allow.

    Raises:
        RunError: if the disk refuses.
    """
    kinds: dict[Any, list[FinishedRun]] = {}
    for run in runs:
        kinds.setdefault(_kind(run), []).append(run)
    return [_write(folder, several) for alike in kinds.values() for several in _split(alike)]


def _kind(run: FinishedRun) -> tuple[object, ...]:
    """The same for runs whose columns have the same names and shapes."""
    shapes = {} if run.policy is None else {name: array.shape for name, array in run.policy.arrays().items()}
    bins = len(run.curve.counts) if isinstance(run.curve, EpisodeBins) else 0
    return tuple(run.metrics), tuple(shapes.items()), bins


def _split(runs: Sequence[FinishedRun]) -> Iterator[Sequence[FinishedRun]]:
    """Runs in order, in parts that a file has room for."""
    begin = size = 0
    for index, run in enumerate(runs):
        needed = _bytes_of(run)
        if size and size + needed > MOST_BYTES:
            yield runs[begin:index]
            begin, size = index, 0
        size += needed
    yield runs[begin:]


def _bytes_of(run: FinishedRun) -> int:
    curve = [getattr(run.curve, each.name) for each in fields(run.curve) if each.name != "budget"]
    policy = [] if run.policy is None else list(run.policy.arrays().values())
    return sum(array.nbytes for array in (*curve, *run.metrics.values(), *policy))


def _write(folder: Path, runs: Sequence[FinishedRun]) -> Path:
    content = _npz(columns_of(runs))
    path = folder / f"{_hash(content)}{SUFFIX}"
    if not path.exists():
        write_last(path, lambda unfinished: unfinished.write_bytes(content))  # others may write the same at once
    return path


def _npz(columns: Mapping[str, NDArray[Any]]) -> bytes:
    """Columns as NumPy's own function writes them, compressed a little: that takes a third of the time."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, column in columns.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as out:
                np.lib.format.write_array(out, np.ascontiguousarray(column), allow_pickle=False)
    return buffer.getvalue()


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]


class DamagedFileError(RunError):
    """A file of finished runs that cannot be trusted."""

    def __init__(self, path: Path, reason: str) -> None:
        """Say which, and why."""
        super().__init__(f"{path} cannot be read as a file of finished runs: {reason}.")
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Scored:
    """What scores rest on, of a run that was held against itself."""

    result: Mapping[str, Any]
    """What its result says."""
    means: NDArray[np.float64]
    """Its mean returns in bins."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """A file of finished runs; what is asked for is read, and no more.

    All that reads it raises a DamagedFileError if it is damaged, and a FileNotFoundError if it is gone.
    """

    path: Path

    @cached_property
    def about(self) -> About:
        """Of each run, its name, spec and result. They are protected by the checksum of the archive alone."""
        with self._reading(), self.path.open("rb") as raw, open_npz(raw, MOST_READ) as file:
            return about_in(file)

    @cached_property
    def names(self) -> list[str]:
        """Its runs, in turn."""
        return [each["name"] for each in self.about]

    @cached_property
    def scored(self) -> list[Scored]:
        """Its runs, in turn, as far as scores need them."""
        return [Scored(run.result, run.bins.means()) for run in self.runs()]

    def runs(self) -> list[FinishedRun]:
        """All of its runs."""
        with self._reading(), open_npz(BytesIO(self.content()), MOST_READ) as file:
            about = about_in(file)
            vars(self)["about"] = about  # which was held against the hash now, and need not be read again
            return runs_in(file, about)

    def run(self, name: str) -> FinishedRun:
        """One of its runs."""
        return next(run for run in self.runs() if run.name == name)

    def size(self) -> int:
        """The bytes of its arrays."""
        with self._reading(), self.path.open("rb") as raw, open_npz(raw, MOST_READ) as file:
            return file.bytes

    def content(self) -> bytes:
        """All of it, as it was written.

        Raises:
            DamagedFileError: if it is not, or larger than any file of ours.
            FileNotFoundError: if it is gone.
        """
        with self._reading():
            if (size := self.path.stat().st_size) > MOST_READ:
                raise ValueError(f"it has {size:,} bytes, and {MOST_READ:,} are the most")
            content = self.path.read_bytes()
            if _hash(content) != self.path.stem:
                raise ValueError("it is not what was written: its hash is another")
        return content

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, DamagedFileError):
            raise
        except Exception as error:  # zipfile, zlib and NumPy have a dozen of them for what is damaged
            raise DamagedFileError(self.path, reason_of(error)) from error
