"""Studies in Python: read one from a file, run it, and look at its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from cycletime.studies.scores import AS_GIVEN, MEASURES, read_cells
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import read_study
from cycletime.studies.study_folder import StudyFolder

if TYPE_CHECKING:
    import pyarrow as pa

_MEASURES = tuple(key for key, _ in MEASURES.values())
"""Their keys in result.json."""


class Study(StudySpec):
    """A study that can be read from a file and run.

    Examples:
        >>> study = Study.read("docs/examples/tiny.toml")
        >>> study.size
        4
    """

    @classmethod
    def read(cls, file: Path | str) -> Study:
        """The study in a TOML file.

        Raises:
            InputError: if it cannot be read, or is not a study; the sentence names the file.
        """
        spec = read_study(Path(file))
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
        from cycletime.studies.executors import ExecutorOptions, make_executor
        from cycletime.studies.progress import StudyProgress
        from cycletime.studies.worker_pool import run_study

        folder = StudyFolder.create(Path(out), self)
        chosen = make_executor(executor, ExecutorOptions(workers=workers), self.device)
        run_study(folder, chosen, observers=[StudyProgress(chosen.workers)] if progress else [], stop=stop)
        return StudyResults(folder)


@dataclass(frozen=True)
class StudyResults:
    """The runs of a study, finished or not."""

    folder: StudyFolder

    @cached_property
    def _checked(self) -> StudyFolder:
        return self.folder.checked()

    def scores(self) -> pa.Table:
        """A row for each cell and seed: where it is, the run's name and state, and its scores."""
        import pyarrow as pa

        from cycletime.studies.curve_export import label_columns

        cells = list(read_cells(self._checked))
        columns = {
            **label_columns([cell.labels for cell, _ in cells]),
            "seed": pa.int64(),
            "run": pa.string(),
            "state": pa.string(),
            **dict.fromkeys(_MEASURES, pa.float64()),
        }
        texts = [name for name, kind in columns.items() if kind == pa.string()]
        rows = []
        for cell, runs in cells:
            labels = {**cell.labels, "rule": cell.labels["rule"] or AS_GIVEN, "dt": float(cell.dt)}
            for run in runs:
                own = {"seed": run.spec.seed, "run": run.name, "state": run.state}
                row = {**labels, **own, **{key: run.result.get(key) for key in _MEASURES}}
                rows.append(
                    {name: str(each) if name in texts and each is not None else each for name, each in row.items()}
                )
        return pa.Table.from_pylist(rows, pa.schema(list(columns.items())))

    def curves(self, bins: int | None = 100) -> pa.Table:
        """All learning curves: the mean return in equal bins of environment steps; None for a row for each episode."""
        from cycletime.studies.curve_export import study_curves

        return study_curves(self._checked, bins)
