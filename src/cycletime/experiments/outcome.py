"""The outcome of a study, small enough to be kept with the code: of every run its curve and its scores.

A file is NumPy's .npz without pickles. Curves are kept in hundredths of a return (whole returns where they go into the
thousands), which no figure shows; scores are exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from math import ceil, inf, log10
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.statistics import Contrast, Estimate, mean_and_error
from cycletime.training.atomic_files import write_whole
from cycletime.training.bounded_npz import open_npz
from cycletime.training.sealed_json import error_reason, parse_json

FORMAT = 1
MAX_BYTES = 2**28
"""What no study takes: a file that declares more is refused before it is unpacked."""
NAN_CODE = -(2**30)
"""Stands for a return that is no number, where learning diverged."""
CURVE_RESOLUTION = {
    "reacher": 0.01,
    "double-pendulum": 1.0,
    "pendulum": 0.1,
    "cart-pole": 0.1,
    "mountain-car": 0.01,
    "acrobot": 0.1,
    "ur-reacher": 0.1,
}
"""By task, the difference between two returns that a curve can tell; of others a ten-thousandth of the largest."""
FINAL_SHARE = 0.1
"""The share of learning whose mean stands for what was learned in the end."""
_ARRAY_TYPES: Mapping[str, tuple[type[np.generic], int]] = {
    "about": (np.uint8, 1),
    "scores": (np.float64, 1),
    "plain": (np.float64, 1),
    "steps": (np.float64, 1),
    "curves": (np.int32, 2),
}


@dataclass(frozen=True, eq=False)
class OutcomeCell:
    """Runs that differ in their seeds alone."""

    labels: Mapping[str, Any]
    """Task, algorithm, rule, dt in seconds, and whatever else the study varies."""
    values: Mapping[str, Any]
    """The agent's hyper-parameters at this cycle time."""
    seeds: tuple[int, ...]
    scores: NDArray[np.float64]
    """[runs] the paper's measure: the mean return over learning; NaN where learning diverged."""
    plain: NDArray[np.float64]
    """[runs] the plain mean over episodes."""
    curves: NDArray[np.float64]
    """[runs, bins] the mean return in equal bins of environment steps."""

    @property
    def dt(self) -> Duration:
        return Duration.of_seconds(self.labels["dt"])

    @property
    def seed_scores(self) -> dict[int, float]:
        return dict(zip(self.seeds, self.scores.tolist(), strict=True))

    @property
    def seed_finals(self) -> dict[int, float]:
        """The mean return over the last tenth of learning."""
        return self.seed_part(1 - FINAL_SHARE, 1.0)

    @property
    def final(self) -> NDArray[np.float64]:
        return np.array(list(self.seed_finals.values()))

    def seed_part(self, begin: float, end: float) -> dict[int, float]:
        """The mean return over a part of learning, given as shares of it."""
        bins = self.curves.shape[1]
        means = self.curves[:, round(begin * bins) : round(end * bins)].mean(axis=1)
        return dict(zip(self.seeds, means.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Outcome:
    name: str
    env_steps: int
    cells: tuple[OutcomeCell, ...]
    about: Mapping[str, Any]
    """Where it comes from: scale, command, code, machines, wall time."""

    @property
    def scale(self) -> float:
        return float(self.about["scale"])

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self.about["where"])

    @property
    def made_by(self) -> tuple[str, str, str]:
        """Code, machines and wall time of its runs, in words; a CPU is told by its name, as a card is."""
        machines, wall_s = self.about["machines"], self.about.get("wall_s")
        codes = {str(each["cycletime"]) for each in machines}
        devices = {str(each["processor" if each["device"] == "cpu" else "device"]) for each in machines}
        return (
            ", ".join(sorted(codes)),
            ", ".join(sorted(devices)),
            "not known" if wall_s is None else f"{wall_s:,.0f} s",
        )

    @cached_property
    def n(self) -> tuple[int, ...]:
        return tuple(sorted({len(cell.seeds) for cell in self.cells}))

    def where(self, **labels: object) -> list[OutcomeCell]:
        """The cells with some labels or values; a cycle time may be a text such as '4ms'."""
        wanted = {name: float(Duration(value)) if name == "dt" else value for name, value in labels.items()}  # type: ignore[arg-type]
        return [
            cell
            for cell in self.cells
            for known in [{**cell.values, **cell.labels}]
            if all(known.get(name) == value for name, value in wanted.items())
        ]

    def cell(self, **labels: object) -> OutcomeCell:
        found = self.where(**labels)
        if len(found) != 1:
            words = ", ".join(f"{name} {value}" for name, value in labels.items())
            raise InputError(f"{self.name} has {len(found)} cells with {words}, and not one.")
        return found[0]

    def save(self, path: Path) -> None:
        header = {
            "format": FORMAT,
            "name": self.name,
            "env_steps": self.env_steps,
            "about": dict(self.about),
            "cells": [
                {"labels": dict(cell.labels), "values": dict(cell.values), "seeds": list(cell.seeds)}
                for cell in self.cells
            ],
        }
        steps = np.concatenate([np.full(len(cell.seeds), _curve_resolution(cell)) for cell in self.cells])
        curves = np.concatenate([cell.curves for cell in self.cells]) / steps[:, None]
        levels = np.where(np.isfinite(curves), np.rint(curves), NAN_CODE).astype(np.int64)
        content = BytesIO()
        np.savez_compressed(
            content,
            about=np.frombuffer(json.dumps(header).encode(), np.uint8),
            scores=np.concatenate([cell.scores for cell in self.cells]),
            plain=np.concatenate([cell.plain for cell in self.cells]),
            steps=steps,
            # Differences from bin to bin are small numbers, of which a file needs fewer bytes.
            curves=np.diff(levels, axis=1, prepend=0).astype(np.int32),
        )
        write_whole(path, lambda unfinished: unfinished.write_bytes(content.getvalue()))

    @classmethod
    def load(cls, path: Path) -> Outcome:
        try:
            with path.open("rb") as raw, open_npz(raw, MAX_BYTES) as file:
                columns = {name: file[name] for name in _ARRAY_TYPES}
            for name, (dtype, dimensions) in _ARRAY_TYPES.items():
                if columns[name].dtype != dtype or columns[name].ndim != dimensions:
                    raise ValueError(f"{name!r} is {columns[name].dtype}{list(columns[name].shape)}")
            header = parse_json(columns.pop("about").tobytes())
            if header["format"] != FORMAT:
                raise ValueError(f"it has the format {header['format']}, and this version of cycletime reads {FORMAT}")
            if header["name"] != path.stem:
                raise ValueError(f"it has the study {header['name']}, and not the one that it is named after")
            about = {**header["about"], "command": _current_command(str(header["about"].get("command", "")))}
            found = cls(header["name"], int(header["env_steps"]), _read_cells(header["cells"], columns), about)
            if not 0 < found.scale <= 1:
                raise ValueError(f"it has {found.scale} of all environment steps")
        except FileNotFoundError:
            raise InputError(f"{path} is not there: 'cycletime experiment run' makes its runs.") from None
        except Exception as error:  # NumPy, zipfile and json have a dozen of them for what is damaged
            raise InputError(f"{path} cannot be read as an outcome: {error_reason(error)}.") from error
        return found


def _current_command(command: str) -> str:
    """A command as it is spelled now: results of version 0.2 have 'cycletime paper run' or 'horizons pack'."""
    command = re.sub(r"^cycletime horizons pack (\S+) --algorithm sac\b", r"cycletime horizons pack sac-\1", command)
    return re.sub(r"^cycletime (paper|horizons) (run|pack)\b", r"cycletime experiment \2 \1", command)


def _curve_resolution(cell: OutcomeCell) -> float:
    largest = float(np.max(np.abs(cell.curves), where=np.isfinite(cell.curves), initial=1e-6))
    return CURVE_RESOLUTION.get(cell.labels["task"], 10.0 ** (ceil(log10(largest)) - 4))


def _read_cells(headers: Sequence[Mapping[str, Any]], columns: Mapping[str, NDArray[Any]]) -> tuple[OutcomeCell, ...]:
    sizes = [len(each["seeds"]) for each in headers]
    lengths = {name: len(column) for name, column in columns.items()}
    if not columns["curves"].size or set(lengths.values()) != {sum(sizes)}:
        raise ValueError(f"it has {sum(sizes)} runs, and of its arrays {lengths}")
    whole = np.cumsum(columns["curves"], axis=1)
    curves = np.where(whole == NAN_CODE, np.nan, whole * columns["steps"][:, None])
    splits = (np.split(each, np.cumsum(sizes)[:-1]) for each in (columns["scores"], columns["plain"], curves))
    return tuple(
        OutcomeCell(
            {**each["labels"], "dt": float(each["labels"]["dt"])}, each["values"], tuple(each["seeds"]), *arrays
        )
        for each, *arrays in zip(headers, *splits, strict=True)
    )


@dataclass(frozen=True)
class Winner:
    """The best cell at a cycle time, and those that are not distinguishable from it."""

    cell: OutcomeCell
    as_good: tuple[OutcomeCell, ...]
    """Cells behind it by less than the standard error of the difference, the nearest first."""


def winners(sweep: Outcome) -> dict[Duration, Winner]:
    """By cycle time, who won a sweep; runs that diverged count as the worst score that there is."""
    every = np.concatenate([cell.scores for cell in sweep.cells])
    worst = float(np.min(every, where=np.isfinite(every), initial=inf))
    return {dt: _winner(sweep, dt, worst) for dt in sorted({cell.dt for cell in sweep.cells})}


def _winner(sweep: Outcome, dt: Duration, worst: float) -> Winner:
    scored = [cell for cell in sweep.where(dt=dt) if np.isfinite(cell.scores).any()]
    if not scored:
        raise InputError(f"At {dt} every run of {sweep.name} diverged: there is no winner.")
    counted = {cell: replace(cell, scores=np.where(np.isfinite(cell.scores), cell.scores, worst)) for cell in scored}
    best, *others = sorted(scored, key=lambda cell: -float(counted[cell].scores.mean()))
    scores = {cell: each.seed_scores for cell, each in counted.items()}
    behind = {cell: Contrast.of([(1.0, scores[best]), (-1.0, scores[cell])]) for cell in others}
    # By less than the standard error of the difference, which a single run does not tell.
    close = tuple(cell for cell, each in behind.items() if each.error is not None and each.value < each.error)
    return Winner(best, close)


def mean_score(cell: OutcomeCell) -> Estimate | None:
    """The mean score and its standard error; None if every run diverged."""
    return mean_and_error(cell.scores, failed="exclude") if np.isfinite(cell.scores).any() else None


class NotRunError(InputError):
    def __init__(self, *needed: str, remedy: str = "") -> None:
        makes = "'cycletime experiment run' runs it, and 'experiment collect' keeps its results"
        super().__init__(remedy or f"{', '.join(needed)}: this has not been run; {makes}.")
        self.needed = needed


@dataclass(frozen=True)
class Results:
    outcomes: Mapping[str, Outcome]
    folder: Path | None = field(default=None, kw_only=True)
    used: set[str] = field(default_factory=set, compare=False, kw_only=True)

    def outcome(self, name: str) -> Outcome:
        """The outcome of a study; NotRunError if it has not been run."""
        self.need(name)
        self.used.add(name)
        return self.outcomes[name]

    def need(self, *names: str) -> None:
        """Raise NotRunError with all of these studies that have not been run."""
        if missing := [name for name in dict.fromkeys(names) if name not in self.outcomes]:
            raise NotRunError(*missing)

    def with_plain_means(self) -> Self:
        plain = {
            name: replace(outcome, cells=tuple(replace(cell, scores=cell.plain) for cell in outcome.cells))
            for name, outcome in self.outcomes.items()
        }
        return replace(self, outcomes=plain)


def read_outcomes(folder: Path) -> dict[str, Outcome]:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder with results: 'cycletime experiment collect' makes one.")
    return {path.stem: Outcome.load(path) for path in sorted(folder.glob("*.npz"))}


def read_results(folder: Path) -> Results:
    return Results(read_outcomes(folder), folder=folder)
