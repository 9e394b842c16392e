"""Studies in Python and notebooks: read one from a file or a dictionary, run it, and look at its results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from io import BytesIO
from itertools import islice
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cycletime.errors import unknown_name_error
from cycletime.extras import require_extras
from cycletime.studies.scores import AS_GIVEN, MEASURES, read_cells, read_scores
from cycletime.studies.spec import MAX_RUNS, StudySpec
from cycletime.studies.spec_file import read_study, study_from_table
from cycletime.studies.study_folder import StudyFolder

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

_KEYS = {key: name for name, (key, _) in MEASURES.items()}


def _plain(value: Any) -> Any:  # noqa: ANN401 - what JSON does not know
    """NumPy's arrays and numbers as Python's, a list of a range, and texts of durations and paths."""
    if isinstance(value, Iterable) and not hasattr(value, "tolist"):
        return list(islice(value, MAX_RUNS + 1))
    return value.tolist() if hasattr(value, "tolist") else str(value)


class Study(StudySpec):
    """A study that can be read from a file or a dictionary, and run.

    Examples:
        >>> study = Study.read("docs/examples/tiny.toml")
        >>> study.size
        4
    """

    @classmethod
    def read(cls, source: Path | str | Mapping[str, Any]) -> Study:
        """The study in a TOML file, or in a dictionary with what such a file has: docs/studies.md lists it."""
        if isinstance(source, Mapping):
            (spec := study_from_table(json.loads(json.dumps(source, default=_plain)))).check_runs()
        else:
            spec = read_study(Path(source))
        return cls(**{each.name: getattr(spec, each.name) for each in fields(spec)})

    def run(
        self,
        out: Path | str,
        *,
        workers: int | None = None,
        executor: str = "local",
        progress: bool = True,
        stop: Callable[[], bool] = lambda: False,
    ) -> StudyResults:
        """Run what is not done yet, and keep it in a folder.

        Args:
            out: The folder; the same call continues with it.
            workers: Processes, tasks or jobs at a time; by default one for each core or GPU.
            executor: Who computes: local, ray or slurm.
            progress: Whether to show progress, on standard error or in the notebook.
            stop: Asked about twice a second; when it returns True, workers save and exit.
        """
        from cycletime.studies.executors import make_executor
        from cycletime.studies.hardware_estimates import check_start
        from cycletime.studies.progress import StudyProgress
        from cycletime.studies.worker_pool import run_study

        chosen = make_executor(executor, self.device, workers)
        check_start(self.cells(), Path(out), executor)
        folder = StudyFolder.create(Path(out), self)
        run_study(folder, chosen, observers=[StudyProgress(chosen.workers)] if progress else [], stop=stop)
        return StudyResults(folder)


class StudyResults:
    """What came of a study, which others may still run."""

    def __init__(self, folder: StudyFolder | Path | str) -> None:
        """Look at a study by its folder."""
        self.folder = folder if isinstance(folder, StudyFolder) else StudyFolder.open(folder)

    @cached_property
    def _checked(self) -> StudyFolder:
        return self.folder.checked()

    def scores(self) -> pa.Table:
        """A row for each cell and seed: task, algorithm, rule, dt in seconds, what else the study varies, seed.

        Then the run, its state (``done``, ``failed`` ...), and its scores: average_return, the mean over learning,
        last_tenth_return, that of its last tenth, and mean_over_episodes; empty where there is none.
        """
        import pyarrow as pa

        from cycletime.studies.curve_export import label_columns, labelled_table

        cells = list(read_cells(self._checked))
        columns = {
            **label_columns([cell.labels for cell, _ in cells]),
            "seed": pa.int64(),
            "run": pa.string(),
            "state": pa.string(),
            **dict.fromkeys(_KEYS, pa.float64()),
        }
        schema, tables = pa.schema(list(columns.items())), []
        for cell, runs in cells:
            labels = {**cell.labels, "rule": cell.labels["rule"] or AS_GIVEN, "dt": float(cell.dt)}
            own = [(run.spec.seed, run.name, run.state, *(run.result.get(key) for key in _KEYS)) for run in runs]
            measured = dict(zip(("seed", "run", "state", *_KEYS), zip(*own, strict=True), strict=True))
            tables.append(labelled_table(labels, measured, schema))
        return pa.concat_tables(tables)

    def curves(self, bins: int | None = 100) -> pa.Table:
        """All learning curves: the mean return in equal bins of environment steps; None for a row for each episode."""
        from cycletime.studies.curve_export import study_curves

        return study_curves(self._checked, bins)

    def plot(self, measure: str = "average_return") -> Figure:
        """A column of `scores` against the cycle time, for each task and algorithm: means and standard errors."""
        if measure not in _KEYS:
            raise unknown_name_error(measure, "a score", _KEYS)
        with require_extras("StudyResults.plot"):
            from matplotlib.figure import Figure

        from cycletime.statistics import mean_and_error  # which needs SciPy, and a training does not

        found: dict[str, dict[str, dict[float, tuple[float, float, int]]]] = {}
        for panel in read_scores(self._checked, _KEYS[measure]).panels:
            for rule, dt in sorted(panel.cells, key=lambda place: place[1]):
                if scores := panel.scores(rule, dt):
                    mean = mean_and_error(scores)
                    error = nan if mean.high is None else mean.high - mean.value
                    found.setdefault(panel.title, {}).setdefault(rule, {})[1000 * float(dt)] = mean.value, error, mean.n

        class NotebookFigure(Figure):
            def _repr_png_(self) -> bytes:
                """Show it in a notebook that has not loaded pyplot."""
                self.savefig(file := BytesIO(), format="png")
                return file.getvalue()

        figure = NotebookFigure(figsize=(5 * max(1, len(found)), 3.5), layout="constrained")
        for place, (title, rules) in enumerate(found.items(), start=1):
            axes = figure.add_subplot(1, len(found), place, xscale="log")
            for rule, points in rules.items():
                means, errors = zip(*((mean, error) for mean, error, _ in points.values()), strict=True)
                axes.errorbar(list(points), means, errors, marker="o", capsize=3, label=rule)
            ticks = sorted({dt_ms for points in rules.values() for dt_ms in points})
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
            axes.set_xticks([], minor=True)
            counts = sorted({n for points in rules.values() for _, _, n in points.values()})
            seeds = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
            axes.set(title=title, xlabel="cycle time (ms)", ylabel=f"{measure.replace('_', ' ')} ± s.e., {seeds}")
            axes.legend()
        return figure
