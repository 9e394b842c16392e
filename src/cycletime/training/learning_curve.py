"""The learning curve of a run and its metrics of learning, while it goes on, on disk and afterwards.

The curve is kept by episode or in equal bins of environment steps. Metrics are means over windows of as many updates as
give about a thousand lines; which updates share a line depends on the spec alone, so that a resumed run has the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import ceil, isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

BINS = 100
"""Performance is the mean over so many bins, as in the paper."""


@dataclass(frozen=True, eq=False)
class Episodes:
    """Episodes in the order in which they ended."""

    env_steps: NDArray[np.int64]
    """The run's environment steps at the end of each."""
    agent_steps: NDArray[np.int64]
    """The run's agent steps at the end of each."""
    returns: NDArray[np.float64]
    """The undiscounted sum of its rewards."""
    length_steps: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, float, int]]) -> Episodes:
        columns = zip(*rows, strict=True) if rows else ((), (), (), ())
        kinds: Sequence[Any] = (np.int64, np.int64, np.float64, np.int64)
        return cls(*(np.array(each, kind) for each, kind in zip(columns, kinds, strict=True)))

    @classmethod
    def none(cls) -> Episodes:
        return cls.of(())

    @classmethod
    def joined(cls, parts: Iterable[Episodes]) -> Episodes:
        parts = [cls.none(), *parts]
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    def __len__(self) -> int:
        return len(self.returns)

    def up_to(self, env_steps: int) -> Episodes:
        return self.where(self.env_steps <= env_steps)

    def ended_by(self, env_steps: int) -> Episodes:
        """All of them, with their returns; one that ended later counts as if it had ended there."""
        beyond = np.maximum(0, self.env_steps - env_steps)
        return replace(self, env_steps=self.env_steps - beyond, length_steps=self.length_steps - beyond)

    def where(self, chosen: NDArray[Any]) -> Episodes:
        return Episodes(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def binned(self, env_steps: int, bins: int = BINS) -> NDArray[np.float64]:
        """The mean return in equal bins of environment steps, whose mean is the paper's measure of performance.

        A plain mean over episodes would give more weight to times in which they are short.
        """
        return EpisodeBins.none(env_steps, bins).plus(self).means()

    @property
    def mean_return(self) -> float:
        return float(self.returns.mean())


@dataclass(frozen=True, eq=False)
class EpisodeBins:
    """Counts and sums of the episodes that ended in each bin: all that the paper's measure needs."""

    budget: int
    """The environment steps of the whole run, which the bins divide."""
    counts: NDArray[np.int64]
    """[bins] how many episodes ended."""
    sums: NDArray[np.float64]
    """[bins] the sum of their returns."""
    env_steps: NDArray[np.int64]
    """[bins] the run's environment steps at the end of the last of them; 0 where none ended."""
    agent_steps: NDArray[np.int64]

    @classmethod
    def none(cls, budget: int, bins: int = BINS) -> EpisodeBins:
        count = np.zeros(bins, np.int64)
        return cls(budget, count, np.zeros(bins), count, count)

    def __len__(self) -> int:
        return int(self.counts.sum())

    def plus(self, episodes: Episodes) -> EpisodeBins:
        """With the episodes that ended next; the sums are the same bits, however the episodes are cut into parts."""
        bins = len(self.counts)
        index = self.index_of(episodes.env_steps)
        before = np.concatenate([np.arange(bins), index])
        env_steps, agent_steps = self.env_steps.copy(), self.agent_steps.copy()
        env_steps[index], agent_steps[index] = episodes.env_steps, episodes.agent_steps  # the last of a bin stays
        counts = self.counts + np.bincount(index, minlength=bins)
        sums: NDArray[Any] = np.bincount(before, np.concatenate([self.sums, episodes.returns]), bins)
        return EpisodeBins(self.budget, counts, sums, env_steps, agent_steps)

    def index_of(self, env_steps: NDArray[np.int64]) -> NDArray[np.int64]:
        bins = len(self.counts)
        # An episode that ends exactly at an edge is in the bin before it, so that the last step has a bin.
        return np.clip(np.ceil(env_steps * bins / self.budget).astype(np.int64) - 1, 0, bins - 1)

    def means(self) -> NDArray[np.float64]:
        """The mean return in each bin; an empty one repeats the last value, and takes the first there is before it."""
        bins = np.arange(len(self.counts))
        if not len(self):
            return np.full(len(bins), np.nan)
        filled = np.maximum.accumulate(np.where(self.counts > 0, bins, -1))
        filled = np.where(filled < 0, np.flatnonzero(self.counts)[0], filled)
        means: NDArray[np.float64] = self.sums[filled] / self.counts[filled]
        return means

    @property
    def mean_return(self) -> float:
        return float(self.sums.sum() / self.counts.sum())

    def binned(self, env_steps: int, bins: int = BINS) -> NDArray[np.float64]:
        """The mean return in as many bins, or in fewer that these can be put together to."""
        kept = len(self.counts)
        if env_steps != self.budget or bins < 1 or kept % bins:
            there = f"{kept} bins of {self.budget} environment steps, not in {bins} of {env_steps}"
            raise InputError(f"The curve is kept in {there}: ask for {kept} bins, or a number that divides it.")
        if kept == bins:
            return self.means()
        counts, sums = (numbers.reshape(bins, -1).sum(axis=1) for numbers in (self.counts, self.sums))
        return replace(self, counts=counts, sums=sums).means()


LINES = 1000
"""About so many lines has a run."""
_STEPS = ("env_steps", "agent_steps")
LINES_PREFIX, _PENDING = "lines/", "pending/"

Columns = Mapping[str, NDArray[Any]]
"""By name, a number for each line."""


def updates_per_line(env_steps: int, cycle_steps: int, period: int) -> int:
    """The updates of one line, by the budget, the environment steps of a cycle and the agent steps of a period."""
    return max(1, ceil(env_steps / cycle_steps / period / LINES))


@dataclass
class MetricsLog:
    window: int
    cycle_steps: int
    """k, to tell environment steps between the ends of episodes."""
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    pending: dict[str, NDArray[Any]] = field(default_factory=dict)
    last_end: tuple[int, int] = (0, 0)
    """Environment and agent steps at the end of the last episode."""

    def add(self, metrics: Columns, ended: Episodes) -> list[dict[str, Any]]:
        """Add metrics of updates, and the episodes that ended meanwhile; the lines that are full now."""
        env_ends = np.concatenate([[self.last_end[0]], ended.env_steps])
        agent_ends = np.concatenate([[self.last_end[1]], ended.agent_steps])
        self.last_end = int(env_ends[-1]), int(agent_ends[-1])
        if not metrics:
            return []
        # Only the last cycle of an episode can be shorter than k.
        steps = np.asarray(metrics["agent_steps"], np.int64)
        last = np.searchsorted(agent_ends, steps, side="right") - 1
        new = {**metrics, "env_steps": env_ends[last] + (steps - agent_ends[last]) * self.cycle_steps}
        self.pending = _joined(self.pending, new)
        return self._take(len(self.pending["agent_steps"]) // self.window, self.window)

    def finish(self) -> list[dict[str, Any]]:
        count = len(self.pending.get("agent_steps", ()))
        return self._take(1, count) if count else []

    def _take(self, lines: int, size: int) -> list[dict[str, Any]]:
        """Average the first pending updates into lines of `size` updates each."""
        taken, end = self.pending, lines * size
        self.pending = {name: each[end:] for name, each in taken.items()}
        if not lines:
            return []
        made = _means({name: each[:end].reshape(lines, size) for name, each in taken.items()})
        self.columns = _joined(self.columns, made)
        return metrics_lines(made)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            **{LINES_PREFIX + name: each for name, each in self.columns.items()},
            **{_PENDING + name: each for name, each in self.pending.items()},
            "last_end": np.array(self.last_end, np.int64),
        }

    def resume(self, arrays: Columns) -> None:
        self.columns, self.pending = (
            {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}
            for prefix in (LINES_PREFIX, _PENDING)
        )
        self.last_end = int(arrays["last_end"][0]), int(arrays["last_end"][1])


def metrics_columns(lines: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Lines as columns; what is no finite number is NaN."""
    found = {}
    for name in lines[0] if lines else ():
        numbers = [np.nan if line[name] is None else line[name] for line in lines]
        found[name] = np.array(numbers, np.int64 if name in (*_STEPS, "learnings") else np.float64)
    return found


def metrics_lines(columns: Columns) -> list[dict[str, Any]]:
    names = list(columns)
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    return [{name: None if value != value else value for name, value in zip(names, row, strict=True)} for row in rows]


def metrics_text(columns: Columns) -> str:
    return "".join(json.dumps(line) + "\n" for line in metrics_lines(columns))


def _joined(before: Columns, after: Columns) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([before.get(name, each[:0]), each]) for name, each in after.items()}


def _means(windows: Columns) -> dict[str, NDArray[Any]]:
    """A line for each window, as columns; what is not finite is NaN."""
    lines, size = windows["agent_steps"].shape
    steps = {name: windows[name][:, -1].astype(np.int64) for name in _STEPS}
    means = {
        name: _rounded(np.mean(numbers, axis=1, dtype=np.float64))
        for name, numbers in windows.items()
        if name not in _STEPS
    }
    return {**steps, "learnings": np.full(lines, size, np.int64), **means}


def _rounded(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([float(f"{number:.7g}") if isfinite(number) else nan for number in numbers.tolist()])


@cache
def _curve_schema() -> pa.Schema:
    """Steps and seconds of the environment's time at each episode's end, its undiscounted return, and its length."""
    import pyarrow as pa

    steps, numbers = pa.int64(), pa.float64()
    return pa.schema(
        {"env_steps": steps, "agent_steps": steps, "seconds": numbers, "return": numbers, "length_s": numbers}
    )


def write_curve(path: Path, episodes: Episodes, env_dt: Duration) -> None:
    import pyarrow.parquet as pq

    with path.open("wb") as file:  # pyarrow takes no path that is not UTF-8
        pq.write_table(curve_table(episodes, env_dt), file)


def curve_table(episodes: Episodes, env_dt: Duration) -> pa.Table:
    import pyarrow as pa

    seconds, length_s = (_seconds(steps, env_dt) for steps in (episodes.env_steps, episodes.length_steps))
    columns = [episodes.env_steps, episodes.agent_steps, seconds, episodes.returns, length_s]
    return pa.table(columns, schema=_curve_schema())


def read_curve(content: bytes, env_dt: Duration, most_episodes: int) -> Episodes:
    """The episodes of a `curve.parquet`; a ValueError where it has more, or is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        if not 0 <= file.metadata.num_rows <= most_episodes:
            raise ValueError(f"it has {file.metadata.num_rows:,} episodes, and {most_episodes:,} are the most")
        table = pq.read_table(pa.BufferReader(content), schema=_curve_schema())
    except (OSError, pa.ArrowException) as error:
        raise ValueError(str(error).rstrip(".")) from error
    columns = {name: table[name].to_numpy() for name in table.column_names}
    with np.errstate(invalid="ignore"):  # of lengths that are none
        length_steps = np.rint(columns["length_s"] / float(env_dt)).astype(np.int64)
    return Episodes(columns["env_steps"], columns["agent_steps"], columns["return"], length_steps)


def _seconds(steps: NDArray[np.int64], env_dt: Duration) -> NDArray[np.float64]:
    numerator, denominator = env_dt.exact_s.as_integer_ratio()
    # Python's whole numbers, since the product may have more than 64 bits.
    return np.array([each * numerator / denominator for each in steps.tolist()], np.float64)
