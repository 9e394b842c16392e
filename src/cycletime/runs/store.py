"""The finished runs of a study: a folder of bundles, each a file with many runs.

Whoever finishes runs adds a file. Small files are put together now and then: the new file is there before the old ones
go, so that a run may for a moment be in two files, and never in none.

Who asks which runs there are reads no more than their names, and gets to know of files that cannot be read. Who wants
scores of what can be trusted has a store that is checked: all is read, and what is damaged is not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cycletime.runs.bundle import MOST_BYTES, SUFFIX, Bundle, DamagedFileError, write_bundles
from cycletime.runs.files import make_folder, sweep, write_last
from cycletime.runs.result import MEASURES, FinishedRun

SMALL_BYTES = MOST_BYTES // 4
"""Of their arrays: smaller files are put together."""
MANY = 200
"""Whenever there are so many more files, small ones are put together."""
MOST_LOOKS = 10
"""How often a folder is looked at whose files are put together in the same moment."""
LEFT_S = 3600.0
"""Nobody writes a file for so long."""
T = TypeVar("T")


@dataclass
class Store:
    """Finished runs, by name."""

    folder: Path
    is_checked: bool = False
    """Whether the runs of a file count only if it is what was written, and they agree with themselves."""
    bundles: dict[str, Bundle] = field(default_factory=dict)
    """By file name, those that are known."""
    places: dict[str, tuple[Bundle, int]] = field(default_factory=dict)
    """By run, the file and the place in it."""
    damaged: dict[Path, str] = field(default_factory=dict)
    """Files that cannot be trusted, and why."""
    disputed: dict[str, tuple[Path, Path]] = field(default_factory=dict)
    """Runs that are in two files with different scores; the first one's count."""
    tidied: int = 0
    """How many files there were after small ones were put together."""

    def refresh(self) -> KeysView[str]:
        """Look which files there are; the names of all runs."""
        for _ in range(MOST_LOOKS):
            if not self._look():
                break
        return self.places.keys()

    def _forget(self, known: Mapping[str, Bundle]) -> None:
        """Know no other files than these."""
        self.bundles, self.places, self.disputed = {}, {}, {}
        for name in sorted(known):
            self._know(known[name])

    def _look(self) -> bool:
        """Know the files that there are; whether some are gone, whose runs are in others that came meanwhile."""
        there = {path.name: path for path in self.folder.glob(f"*{SUFFIX}") if not path.name.startswith(".")}
        gone = any(name not in there for name in self.bundles)
        if gone:
            self._forget({name: bundle for name, bundle in self.bundles.items() if name in there})
        self.damaged = {}
        for name in sorted(there.keys() - self.bundles.keys()):
            gone |= not self._know(Bundle(there[name]))
        return gone

    def _know(self, bundle: Bundle) -> bool:
        """Know a file's runs; whether it is there."""
        try:
            if self.is_checked:
                _ = bundle.scored
            names = bundle.names
        except FileNotFoundError:  # put together with others in this very moment
            return False
        except DamagedFileError as error:
            self.damaged[bundle.path] = error.reason
            return True
        self.bundles[bundle.path.name] = bundle
        for place, name in enumerate(names):
            first, at = self.places.setdefault(name, (bundle, place))
            if _scores(first, at) != _scores(bundle, place):
                self.disputed[name] = first.path, bundle.path
        return True

    def __contains__(self, name: str) -> bool:
        """Whether a run was there when it was looked last."""
        return name in self.places

    def result(self, name: str) -> Mapping[str, Any]:
        """What a run's result says."""
        return self._read(name, lambda bundle, place: bundle.scored[place].result)

    def means(self, name: str) -> NDArray[np.float64]:
        """A run's mean returns in bins."""
        means: NDArray[np.float64] = self._read(name, lambda bundle, place: bundle.scored[place].means)
        return means

    def run(self, name: str) -> FinishedRun:
        """All that is kept of a run."""
        return self._read(name, lambda bundle, _: bundle.run(name))

    def runs(self) -> Iterator[FinishedRun]:
        """All runs, each once, a file after the other."""
        seen: set[str] = set()
        while left := [name for name in self.places if name not in seen]:
            for run in self._read(left[0], lambda bundle, _: bundle.runs()):
                if run.name not in seen:
                    seen.add(run.name)
                    yield run

    def in_order(self, names: Sequence[str], part: Callable[[FinishedRun], T]) -> Iterator[T]:
        """A part of each of some runs that are there, in the order of their names and as often as they are named.

        Each file is read once, whatever order its runs have there: the parts of those that come later are kept.
        """
        due = Counter(names)
        kept: dict[str, T] = {}
        for name in names:
            if name not in kept:
                kept |= {run.name: part(run) for run in self._read(name, self._own_runs) if due[run.name]}
            yield kept[name]
            due[name] -= 1
            if not due[name]:
                del kept[name]

    def _own_runs(self, bundle: Bundle, _: int) -> list[FinishedRun]:
        """The runs that a file has and none before it."""
        return [run for run in bundle.runs() if self.places[run.name][0] is bundle]

    def _read(self, name: str, read: Callable[[Bundle, int], T]) -> T:
        """Read of the file that has a run."""
        try:
            return read(*self.places[name])
        except FileNotFoundError:  # it was put together with others since it was looked
            self.refresh()
            return read(*self.places[name])

    def add(self, runs: Sequence[FinishedRun]) -> None:
        """Keep runs: they are on the disk when this returns.

        Raises:
            RunError: if the disk refuses; what was not written by then does not count as finished.
        """
        make_folder(self.folder)
        for path in write_bundles(self.folder, runs):
            self._know(Bundle(path))
        if len(self.bundles) > self.tidied + MANY:  # so that looking which there are stays quick
            self.tidy()

    def take(self, bundle: Bundle) -> None:
        """Keep all runs of a file that lies elsewhere."""
        make_folder(self.folder)
        path, content = self.folder / bundle.path.name, bundle.content()
        write_last(path, lambda unfinished: unfinished.write_bytes(content))
        self._know(Bundle(path))

    def tidy(self) -> None:
        """Put small files together, where there are several; what is damaged or disputed stays as it is."""
        sweep(self.folder, older_s=LEFT_S)
        self.refresh()
        disputed = {path for paths in self.disputed.values() for path in paths}
        # In the order of their names, so that of two who do it at once each keeps what the other keeps.
        agreed = [self.bundles[name] for name in sorted(self.bundles) if self.bundles[name].path not in disputed]
        for several in _batches(agreed):
            runs = {run.name: run for file in several.values() for run in file}
            kept = {path.name for path in write_bundles(self.folder, list(runs.values()))}
            for bundle in several:
                if bundle.path.name not in kept:
                    bundle.path.unlink(missing_ok=True)
        self.refresh()
        self.tidied = len(self.bundles)


def _scores(bundle: Bundle, place: int) -> list[Any]:
    """What a file says that a run has come to."""
    return [bundle.about[place]["result"].get(measure) for measure in MEASURES]


def _batches(bundles: Sequence[Bundle]) -> Iterator[dict[Bundle, list[FinishedRun]]]:
    """Small files and their runs, several at a time, as many as memory should hold."""
    batch: dict[Bundle, list[FinishedRun]] = {}
    size = 0
    for bundle in bundles:
        with suppress(FileNotFoundError, DamagedFileError):  # somebody else does the same; or it is damaged
            needed = bundle.size()
            if needed < SMALL_BYTES:
                batch[bundle] = bundle.runs()
                size += needed
        if size > 2 * MOST_BYTES:
            yield batch
            batch, size = {}, 0
    if len(batch) > 1:
        yield batch
