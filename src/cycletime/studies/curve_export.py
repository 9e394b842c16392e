"""All learning curves of a study as one tidy table, Parquet or CSV: a row for each episode, or for each bin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.atomic_files import write_whole
from cycletime.training.finished_run import FinishedRun
from cycletime.training.learning_curve import EpisodeBins, curve_table

_LABEL_COLUMNS = {"task": pa.string(), "algorithm": pa.string(), "rule": pa.string(), "dt": pa.float64()}
_CURVE_COLUMNS = {"seed": pa.int64(), "env_step": pa.int64(), "seconds": pa.float64(), "return": pa.float64()}
_MAX_BINS = 1_000_000
_WRITERS: Mapping[str, Any] = {".parquet": pq.ParquetWriter, ".csv": pc.CSVWriter}


def export_curves(folder: StudyFolder, file: Path, bins: int | None = None) -> tuple[int, int]:
    """Write the curves of all finished runs, a row for each episode or bin; how many runs and rows."""
    if file.suffix not in _WRITERS:
        raise InputError(f"{file} ends with {file.suffix!r}: give a file that ends with .parquet or .csv.")
    rows: dict[str, list[int]] = {}

    def write(unfinished: Path) -> None:
        schema, tables = _tables(folder, bins)
        with unfinished.open("wb") as opened, _WRITERS[file.suffix](opened, schema) as writer:
            for name, table in tables:
                writer.write_table(table)
                rows.setdefault(name, []).append(table.num_rows)

    write_whole(file, write)
    return len(rows), sum(map(sum, rows.values()))


def study_curves(folder: StudyFolder, bins: int | None = None) -> pa.Table:
    schema, tables = _tables(folder, bins)
    return pa.concat_tables([schema.empty_table(), *(table for _, table in tables)])


def _tables(folder: StudyFolder, bins: int | None) -> tuple[pa.Schema, Iterator[tuple[str, pa.Table]]]:
    """The columns of all tables, and by run its table."""
    if bins is not None and not 1 <= bins <= _MAX_BINS:
        raise InputError(f"bins is {bins}: it must be from 1 to {_MAX_BINS:,}.")
    plan = Plan.of(folder.study)
    schema = pa.schema(list({**label_columns([cell.labels for cell in plan.cells]), **_CURVE_COLUMNS}.items()))
    done = [
        (name, {**cell.labels, "dt": float(cell.dt), "seed": seed})
        for index, cell in enumerate(plan.cells)
        for seed, name in zip(plan.study.seeds, plan.names[index], strict=True)
        if name in folder.store
    ]
    measured = folder.store.in_order([name for name, _ in done], lambda run: _curve_columns(run, bins))
    found = zip(done, measured, strict=True)
    return schema, ((name, labelled_table(labels, columns, schema)) for (name, labels), columns in found)


def _curve_columns(run: FinishedRun, bins: int | None) -> dict[str, Any]:
    """A run's episodes, or its mean returns in equal bins at their ends; none where no episode ended."""
    env_dt_s = float(run.result["env_dt_s"])
    if bins is None:
        if isinstance(run.curve, EpisodeBins):
            raise InputError(f"The curve of {run.name} is kept in bins: export with --bins 100.")
        table = curve_table(run.curve, Duration.of_seconds(env_dt_s))
        return {"env_step": table["env_steps"], "seconds": table["seconds"], "return": table["return"]}
    if not len(run.curve):
        return {name: [] for name in ("env_step", "seconds", "return")}
    budget = run.spec.env_steps
    ends = np.rint(np.linspace(0, budget, bins + 1)[1:]).astype(np.int64)
    return {"env_step": ends, "seconds": ends * env_dt_s, "return": run.curve.binned(budget, bins)}


def labelled_table(labels: Mapping[str, Any], measured: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """The columns that were measured, and the labels in each of their rows."""
    rows = len(next(iter(measured.values())))

    def column(field: pa.Field) -> Any:  # noqa: ANN401 - whatever pyarrow makes a column of
        if field.name in measured:
            return measured[field.name]
        value = labels.get(field.name)
        return [str(value) if value is not None and field.type == pa.string() else value] * rows

    return pa.table({field.name: column(field) for field in schema}, schema=schema)


def label_columns(labels: Sequence[Mapping[str, Any]]) -> dict[str, pa.DataType]:
    """Columns of the cells' labels, with hyper-parameters that the study varies; what is no number is text."""
    varied = dict.fromkeys(name for each in labels for name in each if name not in _LABEL_COLUMNS)
    kinds = dict(_LABEL_COLUMNS)
    for name in varied:
        types = {type(each[name]) for each in labels if name in each}
        kinds[name] = pa.int64() if types == {int} else pa.float64() if types <= {int, float} else pa.string()
    return kinds
