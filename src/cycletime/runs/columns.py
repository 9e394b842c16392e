"""Finished runs as columns, and back: what the files of `cycletime.runs.bundle` hold.

about                   JSON: each run's name, spec, result and policy's description
counts, sums, ...       [runs, 100] the learning curves in bins
episodes/...            all episodes, one run after the other, where they were wanted; episodes/each says how many.
                        Steps are told as differences from one episode to the next
metrics/...             the lines of metrics, likewise
policy/...              [runs, ...] the arrays of the policies, where they were wanted
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.loops import EpisodeBins, Episodes
from cycletime.runs.metrics import Columns
from cycletime.runs.npz import Npz
from cycletime.runs.policies.policy_file import SavedPolicy
from cycletime.runs.result import FinishedRun, fault_of
from cycletime.runs.spec import RunSpec
from cycletime.runs.told import told_by

FORMAT = 1
About = Sequence[Mapping[str, Any]]
"""Of each run, its name, spec, result and policy's description."""
_ABOUT = "about"
_BINS = {"counts": "i", "sums": "f", "env_steps": "i", "agent_steps": "i"}
"""The columns of a curve in bins, and whether they are whole numbers."""
_MOST_BINS = 10_000
_EPISODES, _METRICS, _POLICY = "episodes/", "metrics/", "policy/"


def columns_of(runs: Sequence[FinishedRun]) -> dict[str, NDArray[Any]]:
    """The columns of runs whose columns have the same names and shapes."""
    bins = [run.bins for run in runs]
    told = {"format": FORMAT, "runs": [_told(run) for run in runs]}
    columns = {
        _ABOUT: np.frombuffer(json.dumps(told).encode(), np.uint8),
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


def about_in(file: Npz) -> About:
    """What a file says of its runs, without reading their numbers.

    Raises:
        ValueError: if it cannot be; a KeyError or TypeError, too.
    """
    told = told_by(_column(file, _ABOUT, "u", 1).tobytes())
    if told["format"] != FORMAT:
        raise ValueError(f"it has the format {told['format']}, and this version of cycletime reads {FORMAT}")
    for each in told["runs"]:
        if not (isinstance(each["name"], str) and isinstance(each["spec"], dict) and isinstance(each["result"], dict)):
            raise ValueError(f"it says {each['name']!r} where a run's name, spec and result should be")
    if len({each["name"] for each in told["runs"]}) != len(told["runs"]):
        raise ValueError("it has a run twice")
    found: About = told["runs"]
    return found


def runs_in(file: Npz, about: About) -> list[FinishedRun]:
    """All runs of a file, of which it says something, each held against itself.

    Raises:
        ValueError: if they cannot be; a KeyError, TypeError and the like, too.
    """
    found = []
    bins = _bins(file, len(about))
    metrics = _apart(_METRICS, file, len(about))
    episodes = _apart(_EPISODES, file, len(about)) if f"{_EPISODES}each" in file else None
    policies = _policies(file, len(about))
    for at, told in enumerate(about):
        spec = RunSpec.from_json(told["spec"])
        if spec.name != told["name"]:  # of a version of cycletime whose runs give other numbers
            raise ValueError(f"the run {told['name']} is {spec.name} by its spec")
        kept = EpisodeBins(spec.env_steps, **{name: column[at] for name, column in bins.items()})
        policy = {name: each[at] for name, each in policies.items()}
        run = FinishedRun(
            spec,
            told["result"],
            kept if episodes is None else _episodes(episodes[at]),
            metrics[at],
            SavedPolicy.from_arrays(policy, told["policy"]) if policy else None,
        )
        if fault := fault_of(run):
            raise ValueError(f"{run.name}: {fault}")
        if episodes is not None and not _are_alike(run.bins, kept):
            raise ValueError(f"{run.name}: its bins are not those of its episodes")
        found.append(run)
    return found


def _bins(file: Npz, runs: int) -> dict[str, NDArray[Any]]:
    columns = {name: _column(file, name, kind, 2, runs, _MOST_BINS) for name, kind in _BINS.items()}
    if len({column.shape for column in columns.values()}) > 1:
        raise ValueError("its curves do not fit each other")
    return {name: _widened(column) for name, column in columns.items()}


def _are_alike(one: EpisodeBins, other: EpisodeBins) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in _BINS)


def _apart(prefix: str, file: Npz, runs: int) -> list[dict[str, NDArray[Any]]]:
    """Tables that stand one after the other."""
    each = _column(file, f"{prefix}each", "i", 1, runs)
    names = [name for name in file if name.startswith(prefix) and name != f"{prefix}each"]
    columns = {name.removeprefix(prefix): _widened(_column(file, name, "if", 1)) for name in names}
    ends = np.cumsum(each)
    rows = int(ends[-1]) if runs else 0
    if np.any(each < 0) or any(len(column) != rows for column in columns.values()):
        raise ValueError(f"it has tables of {prefix.rstrip('/')} that do not fit each other")
    return [
        {name: column[end - count : end] for name, column in columns.items()}
        for end, count in zip(ends, each, strict=True)
    ]


def _policies(file: Npz, runs: int) -> dict[str, NDArray[Any]]:
    names = [name for name in file if name.startswith(_POLICY)]
    return {name.removeprefix(_POLICY): _column(file, name, "f", None, runs) for name in names}


def _column(
    file: Npz, name: str, kinds: str, dimensions: int | None, runs: int | None = None, most: int | None = None
) -> NDArray[Any]:
    """A column, which is read only if it is of a kind and a shape that can be.

    Args:
        file: Where it is.
        name: Which it is.
        kinds: NumPy's letters of its types.
        dimensions: How many it has; None for any number.
        runs: How many rows it has; None for any number.
        most: The most numbers in a row.
    """
    shape, dtype = file.declared(name)
    if dtype.kind not in kinds or (dimensions is not None and len(shape) != dimensions) or not shape:
        raise ValueError(f"its {name} is {dtype}{list(shape)}")
    if runs not in (None, shape[0]) or (most is not None and shape[1] > most):
        raise ValueError(f"its {name} is {dtype}{list(shape)} for {runs} runs")
    return file[name]
