"""The finished runs of a study: a folder of files, each with many runs as columns in NumPy's .npz, without pickles.

A file is named after the hash of its content. It is written whole or not at all, and never changed; what is read of it
but for the names of its runs is held against that hash, and each run against itself. Its columns:

about                   JSON: each run's name, spec, result and policy's description
counts, sums, ...       [runs, 100] the learning curves in bins
episodes/...            all episodes, one run after the other, where they were wanted; episodes/each says how many.
                        Steps are stored as differences from one episode to the next
metrics/...             the lines of metrics, likewise
policy/...              [runs, ...] the arrays of the policies, where they were wanted

Small files are put together now and then: the new file is there before the old ones go, so that a run may for a moment
be in two files, and never in none. Who asks which runs there are reads no more than their names; of a store that is
checked all is read, and what is damaged is not there.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import file_digest, sha256
from io import BufferedReader, BytesIO
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cycletime.bounded import open_regular
from cycletime.errors import RunError
from cycletime.training.atomic_files import make_folder, sweep, write_whole
from cycletime.training.bounded_npz import BoundedNpz, open_npz
from cycletime.training.finished_run import MEASURES, FinishedRun, find_fault
from cycletime.training.learning_curve import LINES, Columns, EpisodeBins, Episodes
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.sealed_json import error_reason, parse_json, refuse_unreadable
from cycletime.training.spec import RunSpec

FORMAT = 1
AboutRuns = Sequence[Mapping[str, Any]]
"""Of each run, its name, spec, result and policy's description."""
_ABOUT = "about"
_BINS = {"counts": "i", "sums": "f", "env_steps": "i", "agent_steps": "i"}
"""The columns of a curve in bins, and whether they are whole numbers."""
_MOST_BINS = 10_000
_MOST_ABOUT = 2**28
_MOST_WEIGHTS = 2**26
"""Of a layer; agents have at most 8,192 units in one."""
_EPISODES, _METRICS, _POLICY = "episodes/", "metrics/", "policy/"


def runs_as_columns(runs: Sequence[FinishedRun]) -> dict[str, NDArray[Any]]:
    bins = [run.bins for run in runs]
    about = [
        {
            "name": run.name,
            "spec": run.spec.as_json(),
            "result": run.result,
            **({} if run.policy is None else {"policy": run.policy.description()}),
        }
        for run in runs
    ]
    columns = {
        _ABOUT: np.frombuffer(json.dumps({"format": FORMAT, "runs": about}).encode(), np.uint8),
        **{name: _narrowed(np.stack([getattr(each, name) for each in bins])) for name in _BINS},
        **_joined_tables(_METRICS, [run.metrics for run in runs]),
    }
    if not isinstance(runs[0].curve, EpisodeBins):
        columns |= _joined_tables(
            _EPISODES, [_step_differences(run.curve) for run in runs if isinstance(run.curve, Episodes)]
        )
    if runs[0].policy is not None:
        policies = [run.policy.arrays() for run in runs if run.policy is not None]
        columns |= {_POLICY + name: np.stack([each[name] for each in policies]) for name in policies[0]}
    return columns


def _joined_tables(prefix: str, tables: Sequence[Columns]) -> dict[str, NDArray[Any]]:
    each = np.array([len(next(iter(table.values()), ())) for table in tables])
    joined = {prefix + name: _narrowed(np.concatenate([table[name] for table in tables])) for name in tables[0]}
    return {**joined, f"{prefix}each": each}


def _step_differences(curve: Episodes) -> Columns:
    """Episodes with steps from one to the next, which take fewer bytes."""
    columns = {each.name: getattr(curve, each.name) for each in fields(curve)}
    return {**columns, **{name: np.diff(columns[name], prepend=0) for name in ("env_steps", "agent_steps")}}


def _episodes(columns: Columns) -> Episodes:
    return Episodes(**{**columns, **{name: np.cumsum(columns[name]) for name in ("env_steps", "agent_steps")}})


def _narrowed(column: NDArray[Any]) -> NDArray[Any]:
    """A column in half of its bytes, where these hold all of its numbers."""
    narrow = column.astype(np.int32 if column.dtype.kind == "i" else np.float32)
    return narrow if np.array_equal(narrow, column, equal_nan=column.dtype.kind == "f") else column


def _widened(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(np.int64 if column.dtype.kind == "i" else np.float64)


def read_about(file: BoundedNpz) -> AboutRuns:
    """The names, specs and results of a file's runs, without reading their arrays."""
    if (shape := file.declared(_ABOUT)[0]) and shape[0] > _MOST_ABOUT:
        raise ValueError(f"its {_ABOUT} has {shape[0]:,} bytes")
    data = parse_json(_column(file, _ABOUT, "u", 1).tobytes())
    if data["format"] != FORMAT:
        raise ValueError(f"it has the format {data['format']}, and this version of cycletime reads {FORMAT}")
    for each in data["runs"]:
        if not (isinstance(each["name"], str) and isinstance(each["spec"], dict) and isinstance(each["result"], dict)):
            raise ValueError(f"it says {each['name']!r} where a run's name, spec and result should be")
    if len({each["name"] for each in data["runs"]}) != len(data["runs"]):
        raise ValueError("it has a run twice")
    found: AboutRuns = data["runs"]
    return found


def read_runs(file: BoundedNpz, about: AboutRuns) -> list[FinishedRun]:
    """All runs of a file, each checked for consistency."""
    found = []
    specs = [RunSpec.from_json(data["spec"]) for data in about]
    rows = sum(spec.env_steps + 2 * LINES for spec in specs)  # more episodes or lines of metrics than they can have
    bins = {name: _column(file, name, kind, 2, len(about), _MOST_BINS) for name, kind in _BINS.items()}
    if len({column.shape for column in bins.values()}) > 1:
        raise ValueError("its curves do not fit each other")
    metrics = _split_tables(_METRICS, file, len(about), rows)
    episodes = _split_tables(_EPISODES, file, len(about), rows) if f"{_EPISODES}each" in file else None
    policies = _policies(file, len(about))
    for at, (data, spec) in enumerate(zip(about, specs, strict=True)):
        if spec.name != data["name"]:  # of a version of cycletime whose runs give other numbers
            raise ValueError(f"the run {data['name']} is {spec.name} by its spec")
        kept = EpisodeBins(spec.env_steps, **{name: _widened(column[at]) for name, column in bins.items()})
        policy = {name: each[at] for name, each in policies.items()}
        run = FinishedRun(
            spec,
            data["result"],
            kept if episodes is None else _episodes(episodes[at]),
            metrics[at],
            SavedPolicy.from_arrays(policy, data["policy"]) if policy else None,
        )
        if fault := find_fault(run):
            raise ValueError(f"{run.name}: {fault}")
        own = run.bins
        if any(not np.array_equal(getattr(own, name), getattr(kept, name), equal_nan=True) for name in _BINS):
            raise ValueError(f"{run.name}: its bins are not those of its episodes")
        found.append(run)
    return found


def _split_tables(prefix: str, file: BoundedNpz, runs: int, most_rows: int) -> list[dict[str, NDArray[Any]]]:
    each = _column(file, f"{prefix}each", "i", 1, runs)
    names = [name for name in file if name.startswith(prefix) and name != f"{prefix}each"]
    for name in names:
        if (shape := file.declared(name)[0]) and shape[0] > most_rows:
            raise ValueError(f"its {name} has {shape[0]:,} rows, and its runs have {most_rows:,} at most")
    columns = {name.removeprefix(prefix): _widened(_column(file, name, "if", 1)) for name in names}
    ends = np.cumsum(each)
    rows = int(ends[-1]) if runs else 0
    if np.any(each < 0) or any(len(column) != rows for column in columns.values()):
        raise ValueError(f"it has tables of {prefix.rstrip('/')} that do not fit each other")
    return [
        {name: column[end - count : end] for name, column in columns.items()}
        for end, count in zip(ends, each, strict=True)
    ]


def _policies(file: BoundedNpz, runs: int) -> dict[str, NDArray[Any]]:
    names = [name for name in file if name.startswith(_POLICY)]
    for name in names:
        if prod(shape := file.declared(name)[0]) > _MOST_WEIGHTS * runs:
            raise ValueError(f"its {name} is {list(shape)}")
    return {name.removeprefix(_POLICY): _column(file, name, "f", None, runs) for name in names}


def _column(
    file: BoundedNpz, name: str, kinds: str, dimensions: int | None, runs: int | None = None, most: int | None = None
) -> NDArray[Any]:
    """A column, read only if it has one of NumPy's kinds, and the dimensions, rows and numbers per row that it may."""
    shape, dtype = file.declared(name)
    if dtype.kind not in kinds or (dimensions is not None and len(shape) != dimensions) or not shape:
        raise ValueError(f"its {name} is {dtype}{list(shape)}")
    if runs not in (None, shape[0]) or (most is not None and shape[1] > most):
        raise ValueError(f"its {name} is {dtype}{list(shape)} for {runs} runs")
    return file[name]


SUFFIX = ".npz"
_DIGITS = 32
MOST_BYTES = 12 * 2**20
"""Of the arrays in a file, so that it is smaller than 16 MiB; a larger run has a file of its own."""
MOST_READ = 4 * 2**30
"""What no run takes, in bytes: larger files are refused before they are read."""


def code_of(machine: Mapping[str, Any]) -> tuple[str, str] | None:
    """What a run was trained by and may change while a study goes on, a kernel or a trainer's script, and its hash."""
    return next(((kind, str(machine[kind])) for kind in ("kernel", "script") if kind in machine), None)


def write_bundles(folder: Path, runs: Sequence[FinishedRun]) -> list[Path]:
    """Write runs into as few files as their kinds and sizes allow."""
    kinds: dict[Any, list[FinishedRun]] = {}
    for run in runs:
        # Runs go together whose columns have the same names and shapes; those of two codes can be told apart by file.
        shapes = () if run.policy is None else tuple((name, each.shape) for name, each in run.policy.arrays().items())
        bins = len(run.curve.counts) if isinstance(run.curve, EpisodeBins) else 0
        kinds.setdefault((tuple(run.metrics), shapes, bins, code_of(run.result["machine"])), []).append(run)
    return [_write(folder, several) for alike in kinds.values() for several in _split(alike)]


def _split(runs: Sequence[FinishedRun]) -> Iterator[Sequence[FinishedRun]]:
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
    buffer = BytesIO()
    # As NumPy's own function writes them, but compressed a little: that takes a third of the time.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, column in runs_as_columns(runs).items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as out:
                np.lib.format.write_array(out, np.ascontiguousarray(column), allow_pickle=False)
    content = buffer.getvalue()
    path = folder / f"{sha256(content).hexdigest()[:_DIGITS]}{SUFFIX}"
    if not path.exists():
        write_whole(path, lambda unfinished: unfinished.write_bytes(content))  # others may write the same at once
    return path


class DamagedFileError(RunError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be read as a file of finished runs: {reason}.")
        self.reason = reason


class ScoredRun(NamedTuple):
    """The parts of a run that scores are computed from, after its consistency was checked."""

    result: Mapping[str, Any]
    means: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bundle:
    """A file of finished runs; what is asked for is read, and no more.

    All that reads it raises a DamagedFileError if it is damaged, and a FileNotFoundError if it is gone.
    """

    path: Path

    @cached_property
    def about(self) -> AboutRuns:
        """Each run's name, spec and result, protected by the archive's checksum alone."""
        with self._reading(), open_regular(self.path) as raw, open_npz(raw, MOST_READ) as file:
            return read_about(file)

    @cached_property
    def names(self) -> list[str]:
        return [each["name"] for each in self.about]

    @cached_property
    def scored(self) -> list[ScoredRun]:
        return [ScoredRun(run.result, run.bins.means()) for run in self.runs()]

    def runs(self) -> list[FinishedRun]:
        with self._reading(), self._verified() as raw, open_npz(raw, MOST_READ) as file:
            about = read_about(file)
            vars(self)["about"] = about  # which was held against the hash now, and need not be read again
            return read_runs(file, about)

    def run(self, name: str) -> FinishedRun:
        return next(run for run in self.runs() if run.name == name)

    def size(self) -> int:
        with self._reading(), open_regular(self.path) as raw, open_npz(raw, MOST_READ) as file:
            return file.bytes

    def _verified(self) -> BufferedReader:
        raw = open_regular(self.path, MOST_READ)
        if file_digest(raw, "sha256").hexdigest()[:_DIGITS] != self.path.stem:
            raw.close()
            raise ValueError("it is not what was written: its hash is another")
        raw.seek(0)
        return raw

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, DamagedFileError):
            raise
        except Exception as error:  # zipfile, zlib and NumPy have a dozen of them for what is damaged
            refuse_unreadable(self.path, error)
            raise DamagedFileError(self.path, error_reason(error)) from error


SMALL_BYTES = MOST_BYTES // 4
"""Of their arrays: smaller files are put together."""
MANY = 200
"""Whenever there are so many more files, small ones are put together."""
MOST_SCANS = 10
"""How often a folder is read anew while another process puts its files together."""
ABANDONED_S = 3600.0
"""The age at which an unfinished file counts as abandoned."""
T = TypeVar("T")


@dataclass
class Store:
    folder: Path
    is_checked: bool = False
    """Whether the runs of a file count only if it is what was written, and they agree with themselves."""
    bundles: dict[str, Bundle] = field(default_factory=dict)
    places: dict[str, tuple[Bundle, int]] = field(default_factory=dict)
    damaged: dict[Path, str] = field(default_factory=dict)
    disputed: dict[str, tuple[Path, Path]] = field(default_factory=dict)
    """Runs that are in two files with different scores; the first one's count."""
    tidied: int = 0
    """How many files there were after small ones were put together."""

    def refresh(self) -> KeysView[str]:
        """Read the folder anew; the names of all finished runs."""
        for _ in range(MOST_SCANS):
            if not self._scan():
                break
        return self.places.keys()

    def _scan(self) -> bool:
        """Add new files; whether known ones are gone, whose runs are then in files that came meanwhile."""
        there = {path.name: path for path in self.folder.glob(f"*{SUFFIX}") if not path.name.startswith(".")}
        gone = any(name not in there for name in self.bundles)
        if gone:
            known, self.bundles, self.places, self.disputed = self.bundles, {}, {}, {}
            for name in sorted(known.keys() & there.keys()):
                self._add_bundle(known[name])
        self.damaged = {}
        for name in sorted(there.keys() - self.bundles.keys()):
            gone |= not self._add_bundle(Bundle(there[name]))
        return gone

    def _add_bundle(self, bundle: Bundle) -> bool:
        """Add a file's runs; whether the file is there."""
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
        return name in self.places

    def result(self, name: str) -> Mapping[str, Any]:
        return self._read(name, lambda bundle, place: bundle.scored[place].result)

    def means(self, name: str) -> NDArray[np.float64]:
        means: NDArray[np.float64] = self._read(name, lambda bundle, place: bundle.scored[place].means)
        return means

    def run(self, name: str) -> FinishedRun:
        return self._read(name, lambda bundle, _: bundle.run(name))

    def runs(self) -> Iterator[FinishedRun]:
        return self.in_order(list(self.places), lambda run: run)

    def in_order(self, names: Sequence[str], part: Callable[[FinishedRun], T]) -> Iterator[T]:
        """A part of each of some runs that are there, in the order of their names and as often as they are named."""
        # Each file is read once, whatever order its runs have there: the parts of those that come later are kept.
        due = Counter(names)
        kept: dict[str, T] = {}
        for name in names:
            if name not in kept:
                runs = self._read(
                    name, lambda bundle, _: [run for run in bundle.runs() if self.places[run.name][0] is bundle]
                )
                kept |= {run.name: part(run) for run in runs if due[run.name]}
            yield kept[name]
            due[name] -= 1
            if not due[name]:
                del kept[name]

    def _read(self, name: str, read: Callable[[Bundle, int], T]) -> T:
        try:
            return read(*self.places[name])
        except FileNotFoundError:  # it was put together with others since it was looked
            self.refresh()
            return read(*self.places[name])

    def add(self, runs: Sequence[FinishedRun]) -> None:
        make_folder(self.folder)
        for path in write_bundles(self.folder, runs):
            self._add_bundle(Bundle(path))
        if len(self.bundles) > self.tidied + MANY:  # so that looking which there are stays quick
            self.tidy()

    def tidy(self) -> None:
        """Put small files together, where there are several; what is damaged or disputed stays as it is."""
        sweep(self.folder, older_s=ABANDONED_S)
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
