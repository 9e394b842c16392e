"""A study's folder: the study as it was last planned, and its runs, each under its own identity.

study.json    the study, and the engine that it began with
runs/         the runs' folders; `cycletime.runs.folder` says what is in each, and besides there may be
              lease.json while a worker trains it, and failures.jsonl with what went wrong
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cycletime.errors import InputError
from cycletime.runs.files import disk_errors, write_last
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.studies.lease import holder_of
from cycletime.studies.spec import Study
from cycletime.studies.study_file import as_table, study_from

FORMAT = 1
MOST_FAILURES = 3
"""A run that fails so often is left alone until it is retried."""
State: TypeAlias = Literal["done", "running", "failed", "stopped", "pending"]
"""Stopped runs have a checkpoint, and nobody trains them now."""


@dataclass(frozen=True)
class StudyFolder:
    """The folder of a study."""

    path: Path
    study: Study

    @classmethod
    def create(cls, path: Path, study: Study, *, change_engine: bool = False) -> StudyFolder:
        """The folder of a study, new or as it is; what a study has run already stays.

        Raises:
            InputError: if the folder has another study, or began on another engine and is not told to change it.
        """
        folder = cls(path, study)
        for cell in study.cells():
            cell.run(study.seeds[0])  # refuses what cannot run, before anything is written
        as_table(study)  # and what cannot be kept
        if (path / "study.json").exists():
            before = cls.open(path).study
            if before.name != study.name:
                raise InputError(
                    f"{path} holds the study {before.name!r}, and not {study.name!r}: give another folder."
                )
            if _engine(before) != _engine(study) and not change_engine:
                raise InputError(
                    f"The study in {path} began on {_engine(before)}, and is now to go on with {_engine(study)}: its "
                    "runs would not be comparable bit for bit, so give the same engine, or --change-engine."
                )
        with disk_errors(path):
            folder.runs.mkdir(parents=True, exist_ok=True)
        folder._write()
        return folder

    @classmethod
    def open(cls, path: Path | str) -> StudyFolder:
        """The study in a folder.

        Raises:
            InputError: if there is none.
        """
        path = Path(path)
        file = path / "study.json"
        if not file.is_file():
            tuning = "; it is a tuning, whose studies are trials and fresh in it" if _is_tuning(path) else ""
            raise InputError(f"{str(path)!r} is no study: there is no study.json in it{tuning}.")
        try:
            told = json.loads(file.read_text())
            version, table = told["format"], told["study"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{file} cannot be read as a study: {str(error).rstrip('.')}.") from error
        if version != FORMAT:
            raise InputError(f"{file} has the format {version}: this version of cycletime reads {FORMAT}.")
        try:
            return cls(path, study_from(table))
        except (InputError, TypeError, AttributeError) as error:
            raise InputError(f"{file} cannot be read as a study: {str(error).rstrip('.')}.") from error

    def _write(self) -> None:
        file = self.path / "study.json"
        text = json.dumps({"format": FORMAT, "study": as_table(self.study)}, indent=1) + "\n"
        if file.exists() and file.read_text() == text:
            return
        write_last(file, lambda unfinished: unfinished.write_text(text))

    @property
    def runs(self) -> Path:
        """Where the runs are."""
        return self.path / "runs"

    def run_folder(self, spec: RunSpec) -> RunFolder:
        """The folder of a run, made if it is not there."""
        return RunFolder.create(self.runs, spec)

    def state_of(self, name: str) -> State:
        """How far the run of a name is."""
        path = self.runs / name
        if (path / "result.json").exists():
            return "done"
        if not path.exists():
            return "pending"
        if (path / "lease.json").exists() and holder_of(path):
            return "running"
        if is_hopeless(failures_of(path)):
            return "failed"
        return "stopped" if any((path / "checkpoints").glob("[0-9]*")) else "pending"


def failures_of(run: Path) -> list[Mapping[str, Any]]:
    """What went wrong with a run so far."""
    try:
        lines = (run / "failures.jsonl").read_text().splitlines()
    except OSError:
        return []
    return [told for line in lines if line and (told := _json_or_none(line)) is not None]


def failure_of(error: Exception | str, *, gives_up: bool = False) -> dict[str, Any]:
    """What went wrong, as it is noted; `gives_up` where the run is not to be tried again."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    trace = "" if isinstance(error, str) else "".join(traceback.format_exception(error))
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"when": when, "error": text, "traceback": trace, "gives_up": gives_up}


def is_hopeless(failures: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a run with such failures is left alone."""
    return len(failures) >= MOST_FAILURES or any(failure.get("gives_up") for failure in failures)


def add_failure(run: Path, failure: Mapping[str, Any]) -> None:
    """Note that something went wrong with a run."""
    with disk_errors(run), (run / "failures.jsonl").open("a") as file:
        file.write("\n" + json.dumps(failure) + "\n")  # what was torn by a kill ends there


def forget_failures(run: Path) -> None:
    """Let a run be tried again."""
    with disk_errors(run):
        (run / "failures.jsonl").unlink(missing_ok=True)


def _is_tuning(path: Path) -> bool:
    return (path / "trials" / "study.json").is_file()


def _json_or_none(line: str) -> Mapping[str, Any] | None:
    try:
        told = json.loads(line)
    except ValueError:  # torn by a kill
        return None
    return told if isinstance(told, dict) else None


def _engine(study: Study) -> str:
    where = study.device if study.engine == "compiled" else f"{study.device} with the kernel"
    return where if study.width == 1 else f"{where} with {study.width} runs in a program"
