"""A run's folder: which files it has, and what they say.

spec.json            what is trained, and the run's identity
checkpoints/         the last two, until the run is finished
curve.parquet        one row for each episode, up to the last checkpoint
metrics.jsonl        metrics of learning
journal.cycles       of a robot's run: every finished episode with all its cycles
policy.safetensors   the policy at the last checkpoint, in the end the final one
result.json          written last: the run is finished, its performance and where it was computed

A run of a study that is not finished has the first two, and in the end none: finished runs of a study are in its store.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cycletime.duration import Duration
from cycletime.errors import InputError, RunError
from cycletime.training.atomic_files import Lock, locked, make_folder, sweep, write_first, write_last, write_whole
from cycletime.training.checkpoints import Checkpoints
from cycletime.training.finished_run import FinishedRun, find_fault
from cycletime.training.journal import JOURNAL_FILE, Journal
from cycletime.training.learning_curve import Columns, Episodes, metrics_columns, metrics_text, read_curve, write_curve
from cycletime.training.policy_file import SavedPolicy, read_policy, write_policy
from cycletime.training.sealed_json import check_seal, error_reason, parse_json, sealed_text
from cycletime.training.spec import RunSpec

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
        folder.make()
        return folder

    def make(self) -> None:
        """Let the folder be there; a spec.json that cannot be read is written anew, since the spec is known."""
        make_folder(self.path)
        file = self.path / "spec.json"
        text = sealed_text({"format": FORMAT, "identity": self.spec.identity, **self.spec.as_json()})
        if not file.exists():
            write_first(file, lambda unfinished: unfinished.write_text(text))
        try:
            there = _read_spec(file)
        except _DamagedError:
            write_last(file, lambda unfinished: unfinished.write_text(text))
            return
        if there.identity != self.spec.identity:
            raise InputError(f"{self.path} holds another run, {there.name}: put it back under its own name.")

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        path = Path(path)
        if not (path / "spec.json").is_file():
            raise InputError(f"{str(path)!r} is not a run: there is no spec.json in it.")
        return cls(path, _read_spec(path / "spec.json"))

    @property
    def policy_file(self) -> Path:
        return self.path / "policy.safetensors"

    @property
    def curve_file(self) -> Path:
        return self.path / "curve.parquet"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def journal(self) -> Journal:
        """The journal, which only runs of robots have."""
        return Journal(self.path / JOURNAL_FILE, self.spec.identity)

    @property
    def checkpoints(self) -> Checkpoints:
        return checkpoints_of(self.path)

    @property
    def is_finished(self) -> bool:
        return (self.path / "result.json").is_file()

    @property
    def has_begun(self) -> bool:
        return self.checkpoints.are_there or self.journal.path.exists()

    def result(self) -> dict[str, Any]:
        try:
            data = parse_json((self.path / "result.json").read_bytes())
            return check_seal(data, known=data.keys())
        except (OSError, ValueError) as error:
            raise RunError(f"{self.path / 'result.json'} cannot be read: {error_reason(error)}.") from error

    def write_snapshot(self, curve: Episodes, metrics: Columns, policy: SavedPolicy, env_dt: Duration) -> None:
        write_whole(self.curve_file, lambda path: write_curve(path, curve, env_dt))
        write_whole(self.metrics_file, lambda path: path.write_text(metrics_text(metrics)))
        write_policy(self.policy_file, policy)

    def write_finished(self, run: FinishedRun, env_dt: Duration) -> None:
        """Write all of a run that is finished; the result comes last, since it says that all is there."""
        assert isinstance(run.curve, Episodes), "a run's folder has all of them"
        assert run.policy is not None, "a run's folder has its policy"
        self.write_snapshot(run.curve, run.metrics, run.policy, env_dt)
        result = {**run.result, "files": self._hashes()}
        write_whole(self.path / "result.json", lambda file: file.write_text(sealed_text(result)))
        self.checkpoints.remove()

    def finished(self) -> FinishedRun:
        result = self.result()
        recorded = result.pop("files", None)
        for name, digest in self._hashes().items():
            if not isinstance(recorded, dict) or recorded.get(name) != digest:
                raise RunError(f"{name} of {self.path} is not what was written: its hash is {digest[:10]}.")
        try:
            curve = read_curve(self.curve_file, Duration(result["env_dt_s"]))
            lines = [parse_json(line) for line in self.metrics_file.read_bytes().splitlines()]
            run = FinishedRun(self.spec, result, curve, metrics_columns(lines), read_policy(self.policy_file))
            fault = find_fault(run)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RunError(f"{self.path} is not a finished run: {error_reason(error)}.") from error
        if fault:
            raise RunError(f"{self.path} is damaged: {fault}.")
        return run

    def policy(self) -> SavedPolicy:
        """The policy at the last checkpoint, or the final one."""
        if not self.policy_file.exists() and (checkpoint := self.checkpoints.newest(self.spec.identity)[0]):
            return checkpoint.policy()
        return read_policy(self.policy_file)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _hashes(self) -> dict[str, str]:
        """By name, the SHA-256 of the files that hold a run's numbers."""
        paths = (self.curve_file, self.metrics_file, self.policy_file)
        try:
            return {path.name: sha256(path.read_bytes()).hexdigest() for path in paths}
        except OSError as error:
            raise RunError(f"{error.filename} cannot be read: {error.strerror}.") from error

    def locked(self) -> AbstractContextManager[Lock]:
        return locked(self.path / "lock")

    def sweep(self) -> None:
        """Remove what a process that was killed left unfinished; for who holds the lock."""
        sweep(self.path)
        if self.is_finished:
            self.checkpoints.remove()


def checkpoints_of(run: Path) -> Checkpoints:
    """The checkpoints in a run's folder."""
    return Checkpoints(run / "checkpoints")


class _DamagedError(InputError):
    """A spec that cannot be read, or was changed."""


def _read_spec(file: Path) -> RunSpec:
    try:
        data = parse_json(file.read_bytes())
        version, identity = data["format"], str(data["identity"])
        spec = RunSpec.from_json(data) if version == FORMAT else None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error_reason(error)}.") from error
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise _DamagedError(f"{file} cannot be read as a run's spec: {error_reason(error)}.") from error
    if spec is None:
        raise InputError(f"{file} has the format {version}: this version of cycletime reads {FORMAT}.")
    if identity != spec.identity:
        raise _DamagedError(
            f"{file} was changed, or written by a version of cycletime whose runs give other numbers: it says "
            f"{identity[:10]} and is {spec.identity[:10]}. Put it back, or train anew in another folder."
        )
    try:
        check_seal(data, known=("format", "identity", *spec.as_json()))
    except ValueError as error:
        raise _DamagedError(f"{file} cannot be read as a run's spec: {error}.") from error
    return spec
