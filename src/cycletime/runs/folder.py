"""A run's folder: which files it has, and what they say.

spec.json            what is trained, and the run's identity
curve.parquet        one row for each episode, up to the last checkpoint
metrics.jsonl        what learning tells of itself
checkpoints/         the last two, until the run is finished
policy.safetensors   the policy at the last checkpoint, in the end the final one
result.json          written last: the run is finished, its performance and where it was computed
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cycletime.errors import InputError, RunError
from cycletime.runs.checkpoints import Checkpoints
from cycletime.runs.files import disk_errors, sweep, write_first, write_whole
from cycletime.runs.lock import Lock, locked
from cycletime.runs.spec import RunSpec

FORMAT = 1


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run."""

    path: Path
    spec: RunSpec

    @classmethod
    def create(cls, out: Path, spec: RunSpec) -> RunFolder:
        """The folder of a spec below `out`: a new one, or the one that is there."""
        folder = cls(out / spec.name, spec)
        with disk_errors(folder.path):
            folder.path.mkdir(parents=True, exist_ok=True)
        if not (folder.path / "spec.json").exists():
            told = {"format": FORMAT, "identity": spec.identity, **spec.as_json()}
            write_first(folder.path / "spec.json", lambda file: file.write_text(_text(told)))
        there = cls.open(folder.path)
        if there.spec.identity != spec.identity:
            raise InputError(f"{folder.path} holds another run, {there.spec.name}: put it back under its own name.")
        return there

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """The run in a folder.

        Raises:
            InputError: if there is none, or if its spec was changed.
        """
        path = Path(path)
        file = path / "spec.json"
        if not file.is_file():
            raise InputError(f"{str(path)!r} is no run: there is no spec.json in it.")
        try:
            told = json.loads(file.read_text())
            version, identity = told["format"], str(told["identity"])
            spec = RunSpec.from_json(told) if version == FORMAT else None
        except KeyError as error:
            raise InputError(f"{file} cannot be read as a run's spec: it lacks, or does not know, {error}.") from error
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"{file} cannot be read as a run's spec: {str(error).rstrip('.')}.") from error
        if spec is None:
            raise InputError(f"{file} has the format {version}: this version of cycletime reads {FORMAT}.")
        if identity != spec.identity:
            raise InputError(
                f"{file} was changed, or written by a version of cycletime whose runs give other numbers: it says "
                f"{identity[:10]} and is {spec.identity[:10]}. Put it back, or train anew in another folder."
            )
        return cls(path, spec)

    @property
    def policy_file(self) -> Path:
        """The policy."""
        return self.path / "policy.safetensors"

    @property
    def curve_file(self) -> Path:
        """The learning curve."""
        return self.path / "curve.parquet"

    @property
    def metrics_file(self) -> Path:
        """The metrics."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints."""
        return Checkpoints(self.path / "checkpoints")

    @property
    def is_finished(self) -> bool:
        """Whether there is a result."""
        return (self.path / "result.json").is_file()

    @property
    def has_begun(self) -> bool:
        """Whether there is something to resume from."""
        return any(self.checkpoints.folder.glob("[0-9]*"))

    def result(self) -> dict[str, Any]:
        """What result.json says."""
        try:
            told: dict[str, Any] = json.loads((self.path / "result.json").read_text())
        except (OSError, ValueError) as error:
            raise RunError(f"{self.path / 'result.json'} cannot be read: {error}.") from error
        return told

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Finish the run."""
        write_whole(self.path / "result.json", lambda file: file.write_text(_text(result)))
        self.checkpoints.remove()

    def locked(self, *, needed: bool = True) -> AbstractContextManager[Lock]:
        """Keep other processes away; `needed` unless a lease does so already."""
        return locked(self.path / "lock", needed=needed)

    def sweep(self) -> None:
        """Remove what a process that was killed left unfinished; for who holds the lock."""
        sweep(self.path)
        if self.is_finished:
            self.checkpoints.remove()


def _text(told: Mapping[str, Any]) -> str:
    return json.dumps(told, indent=1) + "\n"
