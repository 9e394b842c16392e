"""A study's folder: the study as it was last planned, its runs, their failures, and what is damaged.

study.json    the study with its engine, and what is kept of its runs
finished/     finished runs, many in a file
runs/NAME/    unfinished runs: a checkpoint, and failures.jsonl with what went wrong
leases/       which runs are being trained, and by whom
workers/      events of workers while a command supervises them
damaged/      files that were moved aside
"""

from __future__ import annotations

import json
import shlex
import shutil
import traceback
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cycletime.bounded import read_bounded, read_bounded_text
from cycletime.errors import InputError, RunError, error_sentence, printable
from cycletime.studies.leases import STALE_S, hold_lease, lease_holders
from cycletime.studies.plan import Plan, PlannedRun
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import study_from_table, study_table
from cycletime.training.atomic_files import check_writable, disk_errors, make_folder, move, write_whole
from cycletime.training.engine import AUTO
from cycletime.training.external import ExternalAgent
from cycletime.training.finished_run import FinishedRun
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.run_folder import RunFolder, checkpoints_of
from cycletime.training.run_recorder import SAVE_ALL, SaveOptions
from cycletime.training.run_store import Store, code_of
from cycletime.training.sealed_json import check_seal, error_reason, is_count, parse_json, sealed_text
from cycletime.training.spec import RunSpec
from cycletime.training.toml_files import MOST_BYTES_KEPT

MAX_FAILURES = 3
"""A run that fails so often, or whose workers die so often without getting further, is left alone until a retry."""


@dataclass(frozen=True)
class RunFailures:
    run: Path

    @property
    def file(self) -> Path:
        return self.run / "failures.jsonl"

    def read(self) -> list[Mapping[str, Any]]:
        try:
            lines = read_bounded(self.file, MOST_BYTES_KEPT).splitlines()
        except OSError:
            return []
        return [data for line in lines if (data := _parse_failure(line)) is not None]

    @property
    def last(self) -> Mapping[str, Any]:
        return next(reversed(self.read()), {})

    @property
    def is_final(self) -> bool:
        noted = self.read()
        alone = Counter(each.get("begun_at") for each in noted if each.get("died_among") == 1)
        raised = sum("died_among" not in each for each in noted)
        is_wrong = any(each.get("wrong_input") is True for each in noted)
        return is_wrong or raised >= MAX_FAILURES or max(alone.values(), default=0) >= MAX_FAILURES

    def max_batch_size(self) -> int | None:
        """How many runs it may be trained among: fewer after each death of a worker. None for any number."""
        deaths = [int(each["died_among"]) for each in self.read() if "died_among" in each]
        return max(1, min(deaths) // 2) if deaths else None

    def add(self, error: Exception | str) -> None:
        """Note an error of the run; after an InputError it is not tried again."""
        trace = "" if isinstance(error, str) else "".join(traceback.format_exception(error))
        text = error if isinstance(error, str) else error_sentence(error)
        self._note({"error": text, "traceback": trace, "wrong_input": isinstance(error, InputError)})

    def add_death(self, why: str, begun_at: int | None, among: int) -> None:
        """Note that a worker died which trained this run, among so many."""
        self._note({"error": why, "begun_at": begun_at, "died_among": among})

    def forget(self) -> None:
        with disk_errors(self.run):
            self.file.unlink(missing_ok=True)

    def _note(self, failure: Mapping[str, Any]) -> None:
        when = datetime.now(UTC).isoformat(timespec="seconds")
        make_folder(self.run)
        with disk_errors(self.run), self.file.open("a") as file:
            file.write("\n" + json.dumps({"when": when, **failure}) + "\n")  # what was torn by a kill ends there


def _parse_failure(line: bytes) -> Mapping[str, Any] | None:
    """A line's content; None if it was torn by a kill or a disk, and then the run is tried once more."""
    try:
        data = parse_json(line)
    except ValueError:
        return None
    is_death, begun_at = "died_among" in data, data.get("begun_at")
    can_be = not is_death or (is_count(data["died_among"]) and (begun_at is None or is_count(begun_at)))
    return data if can_be and isinstance(data.get("error"), str) else None


FORMAT = 2
_MARKERS = ("study.json", "finished", "leases", "workers", "advice.json", "code-*")
"""Signs of a study's folder, even without study.json: advice and packs write theirs first."""
RunState: TypeAlias = Literal["done", "running", "failed", "stopped", "pending"]
"""Stopped runs have a checkpoint, and nobody trains them now."""


@dataclass(frozen=True)
class StudyFolder:
    path: Path
    study: StudySpec
    keep: SaveOptions = SAVE_ALL
    is_checked: bool = False
    """Whether only runs whose files were read and verified count as done."""

    @classmethod
    def create(
        cls, path: Path, study: StudySpec, *, keep: SaveOptions | None = None, write: bool = True
    ) -> StudyFolder:
        """Make a study's folder, or update it; finished runs stay. Without `write` only what would be refused is."""
        check_folder_free(path)
        before = cls.open(path) if (path / "study.json").exists() else None
        study = study.resolved(before.study if before else None)
        study.check_runs(here=True)  # before anything is written
        study_from_table(study_table(study))  # which refuses what could not be read again
        if before is not None and before.study.name != study.name:
            raise InputError(f"{path} holds the study {before.study.name!r}, not {study.name!r}: give another folder.")
        if before is not None and (began := _engine_label(before.study)) != (now := _engine_label(study)):
            remedy = "its runs would not be comparable bit for bit, so give the same engine, or another folder"
            raise InputError(f"The study in {path} began on {began}, and is now to go on with {now}: {remedy}.")
        folder = cls(path, study, keep or (before.keep if before else SAVE_ALL))
        if not write:
            return folder
        for each in (folder.leases, folder.runs):  # in this order: the first one is a sign
            make_folder(each)
        text = sealed_text({"format": FORMAT, "study": study_table(study), "keep": asdict(folder.keep)})
        file = path / "study.json"
        if not file.exists() or file.read_text() != text:
            write_whole(file, lambda unfinished: unfinished.write_text(text))
        return folder

    @classmethod
    def open(cls, path: Path | str) -> StudyFolder:
        path = Path(path)
        file = path / "study.json"
        if not file.is_file():
            raise InputError(_not_a_study(path))
        text = read_bounded_text(file, MOST_BYTES_KEPT)
        try:
            data = parse_json(text.encode())
            if (version := data["format"]) == FORMAT:
                data = check_seal(data, known=("format", "study", "keep"))
                return cls(path, study_from_table(data["study"]), SaveOptions(**data["keep"]))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            remedy = "Put it back, or delete it and run the study's file again: what is done stays."
            raise InputError(f"{file} cannot be read as a study: {error_reason(error)}. {remedy}") from error
        raise InputError(f"{file} has the format {version}, and this version of cycletime reads {FORMAT}.")

    @cached_property
    def _inode(self) -> int:
        return self.path.stat().st_ino

    @property
    def is_in_place(self) -> bool:
        """Whether the folder is still where it was when this was first asked."""
        with suppress(OSError):
            return self.path.stat().st_ino == self._inode
        return False

    def check_in_place(self) -> None:
        if not self.is_in_place:
            stays = "nothing more is written there. What was saved before goes on where the folder is now"
            raise RunError(f"The study's folder {self.path} was moved or deleted while it was run: {stays}.")

    @staticmethod
    def of_run(run: Path) -> Path | None:
        study = run.resolve().parent.parent
        return study if run.resolve().parent.name == "runs" and (study / "study.json").exists() else None

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def leases(self) -> Path:
        return self.path / "leases"

    @property
    def finished(self) -> Path:
        return self.path / "finished"

    @property
    def stale_s(self) -> float:
        """An environment may keep Python's lock, and heartbeats, for a fifth of the time after which work hangs."""
        return max(STALE_S, float(self.study.hang_timeout) / 5)

    @property
    def workers(self) -> Path:
        return self.path / "workers"

    def make_worker_folders(self) -> None:
        for each in (self.workers, self.leases, self.runs, self.finished):
            make_folder(each)
            check_writable(each)

    def checked(self) -> StudyFolder:
        """The same with all results verified, for readers of scores; workers only need names."""
        return self if self.is_checked else replace(self, is_checked=True)

    @cached_property
    def store(self) -> Store:
        store = Store(self.finished, self.is_checked)
        store.refresh()
        return store

    def run_folder(self, spec: RunSpec) -> RunFolder:
        return RunFolder(self.runs / spec.name, spec)

    def failures(self, name: str) -> RunFailures:
        return RunFailures(self.runs / name)

    def clean(self, done: Collection[str]) -> None:
        """Remove folders and leases of finished runs, left by a worker that was killed just then."""
        for name in {path.name for path in self.runs.glob("*")}.intersection(done):
            shutil.rmtree(self.runs / name, ignore_errors=True)
        for name in {path.stem for path in self.leases.glob("*.json")}.intersection(done):
            with hold_lease(self.leases, name, "cleaning", stale_s=self.stale_s):
                pass  # taking a stale lease and releasing it at once removes it

    def damage(self) -> list[str]:
        again = "'cycletime study verify --repair' moves it away, and 'cycletime study run' trains its runs again"
        sentences = [
            f"{path} is damaged ({wrong}): its runs count as not done. Restore it; or {again}."
            for path, wrong in self.store.damaged.items()
        ]
        return [*sentences, *self.disputes()]

    def disputes(self) -> list[str]:
        """What must not be beside each other: other scores of a run, or runs of other code of a kernel or a trainer."""
        codes: dict[tuple[str, str], dict[str, Path]] = {}  # by algorithm and kind, of each code its first file
        for bundle in self.store.bundles.values():
            for about in bundle.about:
                machine = about["result"].get("machine")
                if isinstance(machine, dict) and (code := code_of(machine)):
                    of_kind = codes.setdefault((str(about["spec"].get("algorithm")), code[0]), {})
                    of_kind.setdefault(code[1], bundle.path)
        return [
            *(
                f"{name} has other scores in {other} than in {first.name} beside it, which are taken: remove one of "
                "them."
                for name, (first, other) in self.store.disputed.items()
            ),
            *(
                f"{path} has runs of {algorithm} by the {kind} {code}, and others here are by another, so that they "
                "are not comparable: remove the files of one of them, or take a new folder."
                for (algorithm, kind), files in codes.items()
                for code, path in (files.items() if len(files) > 1 else ())
            ),
        ]

    def states(self, names: Iterable[str]) -> dict[str, RunState]:
        begun = {path.name for path in self.runs.glob("*")}
        running = lease_holders(self.leases).keys()
        self.store.refresh()  # last, since a run is finished before its lease is given back

        def state_of(name: str) -> RunState:
            if name in self.store:
                return "done"
            if name in running:
                return "running"
            if name not in begun:
                return "pending"
            if self.failures(name).is_final:
                return "failed"
            return "stopped" if checkpoints_of(self.runs / name).exist else "pending"

        return {name: state_of(name) for name in names}

    @staticmethod
    def runs_left(plan: Plan, states: Mapping[str, RunState], *, is_unclaimed: bool = False) -> tuple[PlannedRun, ...]:
        """Runs that are neither done nor have failed for good; if unclaimed, also without those being trained."""
        over = ("done", "failed", "running") if is_unclaimed else ("done", "failed")
        return tuple(run for run in plan.runs if states[run.name] not in over)


def check_folder_free(path: Path, what: str = "study", signs: Sequence[str] = _MARKERS) -> None:
    """Refuse a folder that has other things in it, such as runs of 'cycletime train', and none of the signs."""
    if path.is_file():
        raise InputError(f"{str(path)!r} is a file: give a new folder or an empty one.")
    if not path.is_dir() or any(next(path.glob(sign), None) for sign in signs):
        return
    with disk_errors(path):
        there = sorted(each.name for each in path.iterdir() if not each.name.startswith("."))
    if there:
        other = f"has other things in it, such as {there[0]!r}: give a new folder or an empty one"
        raise InputError(f"{str(path)!r} is not a {what}, and {other}.")


def format_states(counts: Mapping[RunState, int], folder: Path | None = None) -> str:
    """The counts; with the folder, where failures are explained. A machine that runs a pack lacks these commands."""
    why = f"\n  'cycletime study status {shlex.quote(str(folder))}' says why, and 'study retry' has them tried again"
    states = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
    return printable(f"{states}{why if folder and counts.get('failed') else ''}")


def open_run(path: Path) -> RunFolder | FinishedRun:
    study = StudyFolder.of_run(path)
    if study is not None and not (path / "spec.json").exists():
        store = StudyFolder.open(study).store
        if path.name in store:
            return store.run(path.name)
        raise InputError(f"{path.name!r} is not a run of {study}: 'cycletime study status --runs' names them.")
    return RunFolder.open(path)


def policy_of(run: RunFolder | FinishedRun) -> SavedPolicy:
    if isinstance(run, RunFolder):
        return run.policy()
    if run.policy is None and isinstance(run.spec.agent, ExternalAgent):
        raise InputError(f"{run.name} was trained by {run.spec.agent.trainer.label}: its policies are not kept here.")
    if run.policy is None:
        raise InputError(f"{run.name} came without its policy: it was not asked for where it was computed.")
    return run.policy


def _not_a_study(path: Path) -> str:
    if not path.exists():
        return f"There is no folder {str(path)!r}: give the one that 'cycletime study run' has as --out."
    if not path.is_dir():
        return f"{str(path)!r} is a file: give the study's folder, which 'cycletime study run' has as --out."
    tuning = (path / "trials" / "study.json").is_file()
    hint = "; it is a tuning, whose studies are trials and fresh in it" if tuning else ""
    return f"{str(path)!r} is not a study: there is no study.json in it{hint}."


def _engine_label(study: StudySpec) -> str:
    where = study.device if study.engine == AUTO else f"{study.device} with the engine {study.engine}"
    return f"{where} with {study.width} runs in a program" if (study.width or 1) > 1 else where


def damaged_runs(folder: StudyFolder, names: Collection[str] | None = None) -> Iterator[tuple[Path, str]]:
    """Runs, all or some, that nobody trains and cannot go on, since no checkpoint of theirs can be used, and why."""
    plan = Plan.of(folder.study)
    begun = {path.name for path in folder.runs.glob("*") if names is None or path.name in names}
    planned = {run.name: run for run in plan.runs if run.name in begun}
    for name, state in folder.states(planned).items():
        if state in ("done", "running"):
            continue
        path = folder.runs / name
        if fault := checkpoints_of(path).fault(plan.spec(planned[name]).identity):
            yield path, fault.rstrip(".")


def move_aside(folder: StudyFolder, path: Path) -> Path:
    """Move a file of finished runs or a run's folder out of a study, so that it begins anew; where it is now."""
    aside = folder.path / "damaged"
    make_folder(aside)
    place, number = aside / path.name, 1
    while place.exists():
        number += 1
        place = aside / f"{path.stem}-{number}{path.suffix}"
    return move(path, place)
