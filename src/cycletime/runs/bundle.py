"""Many finished runs in one file, as columns: NumPy's .npz without pickles, which needs NumPy alone.

about                   JSON: each run's name, spec, result and policy's description
counts, sums, ...       [runs, 100] the learning curves in bins
episodes/...            all episodes, one run after the other, where they were wanted; episodes/each says how many.
                        Steps are told as differences from one episode to the next
metrics/...             the lines of metrics, likewise
policy/...              [runs, ...] the arrays of the policies, where they were wanted

A file is named after the hash of its content. It is written whole or not at all, and never changed.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import RunError
from cycletime.loops import EpisodeBins, Episodes
from cycletime.runs.files import write_last
from cycletime.runs.metrics import Columns
from cycletime.runs.policies.policy_file import SavedPolicy
from cycletime.runs.result import FinishedRun
from cycletime.runs.spec import RunSpec

T = TypeVar("T")
FORMAT = 1
SUFFIX = ".npz"
MOST_BYTES = 12 * 2**20
"""Of the arrays in a file, so that it is smaller than 16 MiB."""
_BINS = ("counts", "sums", "env_steps", "agent_steps")
_EPISODES, _METRICS, _POLICY = "episodes/", "metrics/", "policy/"


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
    content = _npz(_columns(runs))
    path = folder / f"{sha256(content).hexdigest()[:32]}{SUFFIX}"
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


def _columns(runs: Sequence[FinishedRun]) -> dict[str, NDArray[Any]]:
    bins = [run.bins for run in runs]
    told = {"format": FORMAT, "runs": [_told(run) for run in runs]}
    columns = {
        "about": np.frombuffer(json.dumps(told).encode(), np.uint8),
        **{name: _narrowed(np.stack([getattr(each, name) for each in bins])) for name in _BINS},
        **_flat(_METRICS, [run.metrics for run in runs]),
    }
    if not isinstance(runs[0].curve, EpisodeBins):
        columns |= _flat(_EPISODES, [_differences(run.curve) for run in runs if isinstance(run.curve, Episodes)])
    if runs[0].policy is not None:
        policies = [run.policy.arrays() for run in runs if run.policy is not None]
        columns |= {_POLICY + name: np.stack([each[name] for each in policies]) for name in policies[0]}
    return columns


def _told(run: FinishedRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "spec": run.spec.as_json(),
        "result": run.result,
        **({} if run.policy is None else {"policy": run.policy.description()}),
    }


def _flat(prefix: str, tables: Sequence[Columns]) -> dict[str, NDArray[Any]]:
    """Tables one after the other, and how many rows each of them has."""
    each = np.array([len(next(iter(table.values()), ())) for table in tables])
    joined = {prefix + name: _narrowed(np.concatenate([table[name] for table in tables])) for name in tables[0]}
    return {**joined, f"{prefix}each": each}


def _differences(curve: Episodes) -> Columns:
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


@dataclass(frozen=True, eq=False)
class Bundle:
    """A file of finished runs; what is asked for is read, and no more."""

    path: Path

    @cached_property
    def about(self) -> list[Mapping[str, Any]]:
        """Of each run, its name, spec and result.

        Raises:
            RunError: if the file cannot be read; FileNotFoundError if it is gone.
        """
        return self._read(lambda file: _about(file["about"]))

    @cached_property
    def names(self) -> list[str]:
        """Its runs, in turn."""
        return [each["name"] for each in self.about]

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """[runs, bins] of each run, the mean return in each bin."""
        budgets = [int(each["spec"]["env_steps"]) for each in self.about]
        bins = self._read(lambda file: {name: _widened(file[name]) for name in _BINS})
        rows = [EpisodeBins(budget, *(bins[name][at] for name in _BINS)) for at, budget in enumerate(budgets)]
        return np.stack([row.means() for row in rows])

    def runs(self) -> list[FinishedRun]:
        """All of its runs."""
        return self._read(lambda file: _runs(self.about, dict(file)))

    def run(self, name: str) -> FinishedRun:
        """One of its runs."""
        return next(run for run in self.runs() if run.name == name)

    def size(self) -> int:
        """The bytes of its arrays."""
        return self._read(lambda file: sum(int(each.file_size) for each in file.zip.infolist()))

    def is_whole(self) -> bool:
        """Whether its content is what it was when it was written, by its name."""
        return sha256(self.path.read_bytes()).hexdigest()[:32] == self.path.stem

    def _read(self, read: Callable[[Any], T]) -> T:
        try:
            with self.path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                return read(file)
        except (FileNotFoundError, RunError):
            raise
        except Exception as error:  # zipfile, zlib and NumPy have a dozen of them for what is damaged
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise RunError(f"{self.path} cannot be read as a file of finished runs: {what}.") from error


def _about(raw: NDArray[Any]) -> list[Mapping[str, Any]]:
    told = json.loads(raw.tobytes())
    if told["format"] != FORMAT:
        raise ValueError(f"it has the format {told['format']}, and this version of cycletime reads {FORMAT}")
    return [{**each, "name": str(each["name"])} for each in told["runs"]]


def _runs(about: Sequence[Mapping[str, Any]], columns: Mapping[str, NDArray[Any]]) -> list[FinishedRun]:
    metrics, found = _apart(_METRICS, columns, len(about)), []
    episodes = _apart(_EPISODES, columns, len(about)) if f"{_EPISODES}each" in columns else None
    policies = {name.removeprefix(_POLICY): each for name, each in columns.items() if name.startswith(_POLICY)}
    for at, told in enumerate(about):
        spec = RunSpec.from_json(told["spec"])
        if spec.name != told["name"]:  # of a version of cycletime whose runs give other numbers
            raise ValueError(f"the run {told['name']} is {spec.name} by its spec")
        bins = EpisodeBins(spec.env_steps, *(_widened(columns[name][at]) for name in _BINS))
        policy = {name: each[at] for name, each in policies.items()}
        found.append(
            FinishedRun(
                spec,
                told["result"],
                bins if episodes is None else _episodes(episodes[at]),
                metrics[at],
                SavedPolicy.from_arrays(policy, told["policy"]) if policy else None,
            )
        )
    return found


def _apart(prefix: str, columns: Mapping[str, NDArray[Any]], runs: int) -> list[dict[str, NDArray[Any]]]:
    each = columns[f"{prefix}each"]
    if len(each) != runs:
        raise ValueError(f"it has {len(each)} tables of {prefix.rstrip('/')} for {runs} runs")
    ends = np.cumsum(each)
    names = [name for name in columns if name.startswith(prefix) and name != f"{prefix}each"]
    return [
        {name.removeprefix(prefix): _widened(columns[name][end - count : end]) for name in names}
        for end, count in zip(ends, each, strict=True)
    ]
