"""A run's folder: which files it has, and what they say.

spec.json            what is trained, and the run's identity
checkpoints/         the last two, until the run is finished
curve.parquet        one row for each episode, up to the last checkpoint
metrics.jsonl        metrics of learning
journal.cycles       of a robot's run: every finished episode with all its cycles
policy.safetensors   the policy at the last checkpoint, in the end the final one
result.json          written last: the run is finished, its performance and where it was computed

A run of a study that is not finished has the first two, and in the end none: finished runs of a study are in its store.

`finished` reads a finished run and `so_far` one that is not, from its newest checkpoint; both verify all that they
read, and nothing else reads these files. What is beside the checkpoints of an unfinished run is for other programs.
Seals and hashes have no key: they find accidents, and not who changes numbers, hashes and seals consistently.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from cycletime.agents.numpy_policy import MOST_BYTES
from cycletime.bounded import read_bounded
from cycletime.duration import Duration
from cycletime.errors import InputError, RunError
from cycletime.training.atomic_files import Lock, locked, make_folder, sweep, write_first, write_whole
from cycletime.training.checkpoints import METRICS, Checkpoints
from cycletime.training.finished_run import FinishedRun, fault_of_policy, find_fault
from cycletime.training.journal import JOURNAL_FILE, Journal
from cycletime.training.learning_curve import (
    LINES_PREFIX,
    Columns,
    EpisodeBins,
    Episodes,
    metrics_columns,
    metrics_text,
    read_curve,
    write_curve,
)
from cycletime.training.policy_file import SavedPolicy, parse_policy, write_policy
from cycletime.training.sealed_json import check_seal, error_reason, is_sealed, parse_json, sealed_text
from cycletime.training.spec import RunSpec

FORMAT = 2
"""From 2 on spec.json and result.json are sealed. Of 1, those of the first versions are not: both are, or none is."""
_MOST_JSON = 8 * 2**20
_EPISODE_BYTES = 64
"""More than an episode or an update takes in any file."""
_WRONG = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass(frozen=True, eq=False)
class RunSoFar:
    curve: Episodes | EpisodeBins
    metrics: Columns
    policy: SavedPolicy
    env_dt: Duration | None
    """None where an earlier version wrote the checkpoint, and the environment's own step was not given."""


@dataclass(frozen=True)
class RunFolder:
    path: Path
    spec: RunSpec
    is_sealed: bool = field(default=True, compare=False)
    """Whether its files have seals; a run of the first versions has none, and what it says is only possible."""

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
            there, _ = _read_spec(file)
        except _DamagedError:
            write_whole(file, lambda unfinished: unfinished.write_text(text))
            return
        if there.identity != self.spec.identity:
            raise InputError(f"{self.path} holds another run, {there.name}: put it back under its own name.")

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        path = Path(path)
        if not (path / "spec.json").exists():
            raise InputError(_not_a_run(path))
        return cls(path, *_read_spec(path / "spec.json"))

    @property
    def policy_file(self) -> Path:
        return self.path / "policy.safetensors"

    @property
    def journal(self) -> Journal:
        return Journal(self.path / JOURNAL_FILE, self.spec.identity)

    @property
    def checkpoints(self) -> Checkpoints:
        return checkpoints_of(self.path)

    @property
    def is_finished(self) -> bool:
        return (self.path / "result.json").is_file()

    @property
    def has_begun(self) -> bool:
        return self.checkpoints.exist or self.journal.path.exists()

    def write_snapshot(self, curve: Episodes, metrics: Columns, policy: SavedPolicy, env_dt: Duration) -> None:
        write_whole(self.path / "curve.parquet", lambda path: write_curve(path, curve, env_dt))
        write_whole(self.path / "metrics.jsonl", lambda path: path.write_text(metrics_text(metrics)))
        write_policy(self.policy_file, policy)

    def write_finished(self, run: FinishedRun, env_dt: Duration) -> None:
        """Write all of a run that is finished; the result comes last, since it says that all is there."""
        assert isinstance(run.curve, Episodes), "a run's folder has all of them"
        assert run.policy is not None, "a run's folder has its policy"
        self.write_snapshot(run.curve, run.metrics, run.policy, env_dt)
        hashes = {name: sha256(content).hexdigest() for name, content in self._contents().items()}
        result = {**run.result, "files": hashes}
        write_whole(self.path / "result.json", lambda file: file.write_text(sealed_text(result)))
        self.checkpoints.remove()

    def result(self) -> dict[str, Any]:
        """What a finished run says of itself, verified; where it has no seal, that too."""
        return {**self.finished().result, **({} if self.is_sealed else {"sealed": False})}

    def finished(self) -> FinishedRun:
        try:
            data = parse_json(self._content("result.json", _MOST_JSON))
            result = check_seal(data, known=None if self.is_sealed else data.keys())
        except ValueError as error:
            raise RunError(f"{self.path / 'result.json'} cannot be read: {error_reason(error)}.") from error
        recorded, contents = result.pop("files", None), self._contents()
        for name, content in contents.items():
            digest = sha256(content).hexdigest()
            is_recorded = isinstance(recorded, dict) and recorded.get(name) == digest
            if (self.is_sealed or recorded is not None) and not is_recorded:
                raise RunError(f"{name} of {self.path} is not what was written: its hash is {digest[:10]}.")
        try:
            curve = read_curve(contents["curve.parquet"], Duration.of_seconds(result["env_dt_s"]), self.spec.env_steps)
            lines = [parse_json(line) for line in contents["metrics.jsonl"].splitlines()]
            policy = parse_policy(contents["policy.safetensors"])
            run = FinishedRun(self.spec, result, curve, metrics_columns(lines), policy)
            fault = find_fault(run)
        except _WRONG as error:
            raise RunError(f"{self.path} is not a finished run: {error_reason(error)}.") from error
        if fault:
            raise RunError(f"{self.path} is damaged: {fault}.")
        return run

    def so_far(self) -> RunSoFar:
        """What an unfinished run has come to at its newest checkpoint, which is not changed."""
        checkpoint = self.checkpoints.peek(self.spec.identity)
        if checkpoint is None:
            when = "a run writes its policy with its first checkpoint, and its curve"
            raise InputError(f"{self.spec.name} has no policy and no learning curve yet: {when}.")
        try:
            curve = checkpoint.curve(self.spec.env_steps)
            policy, env_dt = checkpoint.policy(), self.spec.world.env_dt
            fault = fault_of_policy(policy, self.spec, checkpoint.manifest.env_steps)
        except _WRONG as error:
            raise RunError(f"The checkpoint of {self.path} cannot be read: {error_reason(error)}.") from error
        if fault:
            raise RunError(f"The checkpoint of {self.path} is damaged: {fault}.")
        if "env_dt_s" in checkpoint.arrays:
            env_dt = Duration.of_seconds(float(checkpoint.arrays["env_dt_s"]))
        return RunSoFar(curve, checkpoint.below(METRICS + LINES_PREFIX), policy, env_dt)

    def policy(self) -> SavedPolicy:
        policy = self.finished().policy if self.is_finished else self.so_far().policy
        assert policy is not None, "a run's folder has its policy"
        return policy

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _contents(self) -> dict[str, bytes]:
        """By name, the files that hold a run's numbers, which cannot be larger than its spec lets them."""
        most = 2**20 + _EPISODE_BYTES * self.spec.env_steps
        bounds = {"curve.parquet": most, "metrics.jsonl": 16 * most, "policy.safetensors": MOST_BYTES}
        return {name: self._content(name, most) for name, most in bounds.items()}

    def _content(self, name: str, most_bytes: int) -> bytes:
        try:
            return read_bounded(self.path / name, most_bytes)
        except OSError as error:
            raise RunError(f"{self.path / name} cannot be read: {error.strerror}.") from error

    def locked(self) -> AbstractContextManager[Lock]:
        return locked(self.path / "lock")

    def sweep(self) -> None:
        """Remove what a process that was killed left unfinished; for who holds the lock."""
        sweep(self.path)
        if self.is_finished:
            self.checkpoints.remove()


def _not_a_run(path: Path) -> str:
    if not path.exists():
        return f"There is no folder {str(path)!r}: give a run's, which 'cycletime train' prints."
    if not path.is_dir():
        return f"{str(path)!r} is a file: give the run's folder."
    if runs := sorted(each.parent for each in path.glob("*/spec.json")):
        several = f"{len(runs)} runs are in it" if len(runs) > 1 else "a run is in it"
        return f"{str(path)!r} is not a run, but {several}: give {'one of them, such as ' * (len(runs) > 1)}{runs[0]}."
    hint = "; it is a study, whose runs 'cycletime study status --runs' names" if (path / "study.json").exists() else ""
    return f"{str(path)!r} is not a run: there is no spec.json in it{hint}."


def checkpoints_of(run: Path) -> Checkpoints:
    return Checkpoints(run / "checkpoints")


class _DamagedError(InputError):
    """A spec that cannot be read, or was changed."""


def _read_spec(file: Path) -> tuple[RunSpec, bool]:
    try:
        data = parse_json(read_bounded(file, _MOST_JSON))
        version, identity = data["format"], str(data["identity"])
        spec = RunSpec.from_json(data) if version in (1, FORMAT) else None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error_reason(error)}.") from error
    except _WRONG as error:
        raise _DamagedError(f"{file} cannot be read as a run's spec: {error_reason(error)}.") from error
    if spec is None:
        raise InputError(f"{file} has the format {version}: this version of cycletime reads 1 and {FORMAT}.")
    if identity != spec.identity:
        differ = f"it says {identity[:10]} and is {spec.identity[:10]}. Put it back, or train anew in another folder"
        changed = f"{file} was changed, or written by a version of cycletime whose runs give other numbers"
        raise _DamagedError(f"{changed}: {differ}.")
    try:
        check_seal(data, known=("format", "identity", *spec.as_json()) if version == 1 else None)
    except ValueError as error:
        raise _DamagedError(f"{file} cannot be read as a run's spec: {error}.") from error
    return spec, is_sealed(data)
