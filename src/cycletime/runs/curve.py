"""The learning curve on disk: `curve.parquet`, one row for each episode, or for the episodes of each bin.

A run that was computed on a machine with little installed may come back in bins. A row then stands for the episodes
that ended in one of them: steps and seconds at the last one's end, the mean return and length, and how many there are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import RunError
from cycletime.loops import EpisodeBins, Episodes

SCHEMA = pa.schema(
    [
        ("env_steps", pa.int64()),
        ("agent_steps", pa.int64()),
        ("seconds", pa.float64()),
        ("return", pa.float64()),
        ("length_s", pa.float64()),
    ]
)
"""Steps and seconds of the environment's time at each episode's end, its undiscounted return and how long it was."""
BINNED = pa.schema([*SCHEMA, ("episodes", pa.int64()), ("return_sum", pa.float64())])
"""The same of a bin, with the number of its episodes and the sum of their returns."""
_BINS, _BUDGET = "bins", "env_steps"
"""In the file's metadata, how many bins there are and the environment steps that they divide."""


def write_curve(path: Path, episodes: Episodes, env_dt: Duration) -> None:
    """Write all episodes; the same episodes give the same bytes."""
    columns = [
        episodes.env_steps,
        episodes.agent_steps,
        _seconds(episodes.env_steps, env_dt),
        episodes.returns,
        _seconds(episodes.length_steps, env_dt),
    ]
    pq.write_table(pa.table(columns, schema=SCHEMA), path)


def read_curve(path: Path, env_dt: Duration) -> Episodes:
    """The episodes of a curve.

    Raises:
        RunError: if it cannot be read, or is kept in bins.
    """
    table = read_table(path)
    if is_binned(path):
        raise RunError(f"{path} is kept in bins: its episodes are not known.")
    columns = {name: table[name].to_numpy() for name in SCHEMA.names}
    length_steps = np.rint(columns["length_s"] / float(env_dt)).astype(np.int64)
    return Episodes(columns["env_steps"], columns["agent_steps"], columns["return"], length_steps)


def write_bins(path: Path, curve: EpisodeBins, env_dt: Duration) -> None:
    """Write a curve that is kept in bins, those in which an episode ended."""
    some = np.flatnonzero(curve.counts)
    counts, env_steps = curve.counts[some], curve.env_steps[some]
    mean_lengths = np.diff(env_steps, prepend=0) / counts  # episodes follow each other
    columns = [
        env_steps,
        curve.agent_steps[some],
        _seconds(env_steps, env_dt),
        curve.sums[some] / counts,
        mean_lengths * float(env_dt),
        counts,
        curve.sums[some],
    ]
    metadata = {_BINS: str(len(curve.counts)), _BUDGET: str(curve.budget)}
    pq.write_table(pa.table(columns, schema=BINNED.with_metadata(metadata)), path)


def read_any_curve(path: Path, env_dt: Duration) -> Episodes | EpisodeBins:
    """A curve as it is kept.

    Raises:
        RunError: if it cannot be read.
    """
    metadata = _metadata(path)
    if not metadata:
        return read_curve(path, env_dt)
    table, empty = read_table(path, BINNED), EpisodeBins.none(metadata[_BUDGET], metadata[_BINS])
    env_steps = table["env_steps"].to_numpy()
    index = empty.index_of(env_steps)
    found = {"counts": "episodes", "sums": "return_sum", "env_steps": "env_steps", "agent_steps": "agent_steps"}
    columns = {}
    for name, column in found.items():
        columns[name] = getattr(empty, name).copy()
        columns[name][index] = table[column].to_numpy()
    return EpisodeBins(empty.budget, **columns)


def read_table(path: Path, schema: pa.Schema = SCHEMA) -> pa.Table:
    """A curve as it is in its file.

    Raises:
        RunError: if it cannot be read.
    """
    try:
        return pq.read_table(path, schema=schema)
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"{path} cannot be read as a learning curve: {str(error).rstrip('.')}.") from error


def is_binned(path: Path) -> bool:
    """Whether a curve is kept in bins.

    Raises:
        RunError: if it cannot be read.
    """
    return bool(_metadata(path))


def env_dt_s_of(path: Path) -> float | None:
    """The environment's time step in seconds, as a curve tells it; None where it cannot, or has no episode."""
    try:
        first = read_table(path).slice(0, 1)
    except RunError:
        return None
    return first["seconds"][0].as_py() / first["env_steps"][0].as_py() if len(first) else None


def _metadata(path: Path) -> dict[str, int]:
    """What a curve in bins says of them; nothing where it has none."""
    try:
        told = pq.read_schema(path).metadata or {}
        return {name: int(told[name.encode()]) for name in (_BINS, _BUDGET) if name.encode() in told}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RunError(f"{path} cannot be read as a learning curve: {str(error).rstrip('.')}.") from error


def _seconds(steps: NDArray[np.int64], env_dt: Duration) -> NDArray[np.float64]:
    numerator, denominator = env_dt.exact_s.as_integer_ratio()
    # Python's whole numbers, since the product may have more than 64 bits.
    return np.array([each * numerator / denominator for each in steps.tolist()], np.float64)
