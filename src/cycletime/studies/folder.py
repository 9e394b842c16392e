"""A study's folder: the study as it was last planned, and its runs, each under its own identity.

study.json    the study, and the engine that it began with
runs/         the runs' folders; `cycletime.runs.folder` says what is in each, and besides there may be
              lease.json while a worker trains it, and failures.jsonl with what went wrong
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cycletime.errors import InputError
from cycletime.runs.files import disk_errors, write_whole
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
        if (path / "study.json").exists():
            before = cls.open(path).study
            if before.name != study.name:
                raise InputError(
                    f"{path} holds the study {before.name!r}, and not {study.name!r}: give another folder."
                )
            if (before.device, before.width) != (study.device, study.width) and not change_engine:
                raise InputError(
                    f"The study in {path} began on {_engine(before)}, and is now to go on with {_engine(study)}: its "
                    "runs would not be comparable bit for bit, so give the same engine, or --change-engine."
                )
        with disk_errors(path):
            folder.runs.mkdir(parents=True, exist_ok=True)
        told = {"format": FORMAT, "study": as_table(study)}
        write_whole(path / "study.json", lambda file: file.write_text(json.dumps(told, indent=1) + "\n"))
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
            raise InputError(f"{str(path)!r} is no study: there is no study.json in it.")
        try:
            told = json.loads(file.read_text())
            version, table = told["format"], told["study"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{file} cannot be read as a study: {str(error).rstrip('.')}.") from error
        if version != FORMAT:
            raise InputError(f"{file} has the format {version}: this version of cycletime reads {FORMAT}.")
        return cls(path, study_from(table))

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
        if len(failures_of(path)) >= MOST_FAILURES:
            return "failed"
        return "stopped" if any((path / "checkpoints").glob("[0-9]*")) else "pending"


def failures_of(run: Path) -> list[Mapping[str, Any]]:
    """What went wrong with a run so far."""
    try:
        lines = (run / "failures.jsonl").read_text().splitlines()
    except OSError:
        return []
    return [told for line in lines if (told := _json_or_none(line)) is not None]


def add_failure(run: Path, failure: Mapping[str, Any]) -> None:
    """Note that something went wrong with a run."""
    with disk_errors(run), (run / "failures.jsonl").open("a") as file:
        file.write(json.dumps(failure) + "\n")


def forget_failures(run: Path) -> None:
    """Let a run be tried again."""
    (run / "failures.jsonl").unlink(missing_ok=True)


def _json_or_none(line: str) -> Mapping[str, Any] | None:
    try:
        told: Mapping[str, Any] = json.loads(line)
    except ValueError:  # torn by a kill
        return None
    return told


def _engine(study: Study) -> str:
    return study.device if study.width == 1 else f"{study.device} with {study.width} runs in a program"
