"""All learning curves of a study as one tidy table, Parquet or CSV: a row for each episode, or for each bin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.runs.curve import env_dt_s_of, is_binned, read_any_curve, read_table
from cycletime.runs.files import write_whole
from cycletime.runs.folder import RunFolder
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan

_FIXED = {"task": pa.string(), "algorithm": pa.string(), "rule": pa.string(), "dt": pa.float64()}
_MEASURED = {"seed": pa.int64(), "env_step": pa.int64(), "seconds": pa.float64(), "return": pa.float64()}
_WRITERS = {".parquet": pq.ParquetWriter, ".csv": pc.CSVWriter}


def export(folder: StudyFolder, file: Path, bins: int | None = None) -> tuple[int, int]:
    """Write the curves of all runs that are done; how many runs those are, each once, and how many rows.

    Runs that several cells share, since their rules agree, have rows for each cell.

    Args:
        folder: The study.
        file: The table, whose name ends with .parquet or .csv.
        bins: Equal bins of environment steps, with the mean return in each; None for a row for each episode.
    """
    if file.suffix not in _WRITERS:
        raise InputError(f"{file} ends with {file.suffix!r}: give a file that ends with .parquet or .csv.")
    if bins is not None and bins < 1:
        raise InputError(f"bins is {bins}: it must be at least 1.")
    plan = Plan.of(folder.study)
    schema = _schema([cell.labels for cell in plan.cells])
    rows: dict[str, list[int]] = {}

    def write(unfinished: Path) -> None:
        with _writer(file.suffix, unfinished, schema) as writer:
            for name, table in _tables(plan, folder, schema, bins):
                writer.write_table(table)
                rows.setdefault(name, []).append(table.num_rows)

    write_whole(file, write)
    return len(rows), sum(map(sum, rows.values()))


def _writer(suffix: str, path: Path, schema: pa.Schema) -> AbstractContextManager[Any]:
    writer: AbstractContextManager[Any] = _WRITERS[suffix](path, schema)
    return writer


def _tables(plan: Plan, folder: StudyFolder, schema: pa.Schema, bins: int | None) -> Iterator[tuple[str, pa.Table]]:
    """Of each cell and seed, the run's name and its rows."""
    for index, cell in enumerate(plan.cells):
        labels = {**cell.labels, "dt": float(cell.dt)}
        for seed, name in zip(plan.study.seeds, plan.names[index], strict=True):
            run = RunFolder(folder.runs / name, cell.run(seed))
            if run.is_finished:
                yield name, _table({**labels, "seed": seed}, run, schema, bins)


def _table(labels: Mapping[str, Any], run: RunFolder, schema: pa.Schema, bins: int | None) -> pa.Table:
    if bins is None:
        if is_binned(run.curve_file):
            raise InputError(f"The curve of {run.spec.name} is kept in bins: export with --bins 100.")
        table = read_table(run.curve_file)
        columns: dict[str, Any] = {
            "env_step": table["env_steps"],
            "seconds": table["seconds"],
            "return": table["return"],
        }
    else:
        columns = _binned(run, bins)
    count = len(columns["env_step"])
    for field in schema:
        if field.name not in columns:
            value = labels.get(field.name)
            columns[field.name] = [str(value) if value is not None and field.type == pa.string() else value] * count
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def _binned(run: RunFolder, bins: int) -> dict[str, Any]:
    """The mean return in equal bins, each told at its end; a run in which no episode ended has none."""
    curve = read_any_curve(run.curve_file, run.spec.world.env_dt or Duration("1s"))
    if not len(curve):
        return {name: [] for name in ("env_step", "seconds", "return")}
    env_dt_s = run.spec.world.env_dt or env_dt_s_of(run.curve_file) or float("nan")
    ends = np.rint(np.linspace(0, run.spec.env_steps, bins + 1)[1:]).astype(np.int64)
    return {"env_step": ends, "seconds": ends * float(env_dt_s), "return": curve.binned(run.spec.env_steps, bins)}


def _schema(labels: Sequence[Mapping[str, Any]]) -> pa.Schema:
    """The columns: where, which hyper-parameters where the study varies them, and what was measured."""
    varied = dict.fromkeys(name for each in labels for name in each if name not in _FIXED)
    kinds = {name: _kind([each[name] for each in labels if name in each]) for name in varied}
    return pa.schema(list({**_FIXED, **kinds, **_MEASURED}.items()))


def _kind(values: Sequence[Any]) -> pa.DataType:
    if all(type(value) is int for value in values):
        return pa.int64()
    return pa.float64() if all(type(value) in (int, float) for value in values) else pa.string()
