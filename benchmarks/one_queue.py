"""The runs of a pack's studies in one queue, on one GPU: python benchmarks/one_queue.py PACK OUT [--without FILE].

A pack trains its studies one after the other, and near the end of each the card has fewer runs than multiprocessors:
with SAC's long runs that is a third of the time. Here the runs of all its studies wait in one line, the longest first,
and OUT has the same folders. A run that several studies plan is trained once. There is one process and nobody who looks
after it: killed, it goes on from its checkpoints, if it was given --checkpoint-s.

At the end each study is given its share of the time, by the times that its runs were expected to take.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from uuid import uuid4

from cycletime.cuda.run_batch import KERNELS
from cycletime.studies.pack_main import MANIFEST
from cycletime.studies.plan import Plan
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.engine import engine_for
from cycletime.training.machine import prepare_jax
from cycletime.training.process import stopping
from cycletime.training.run_recorder import SaveOptions, TrainingJob
from cycletime.training.trainer import CompletedRun, ResultSink, TrainingOutcome, train_batch


@dataclass
class Member:
    """A study whose runs wait in the line."""

    folder: StudyFolder
    keep: SaveOptions
    names: set[str] = field(default_factory=set)
    """Of all its runs."""
    expected_s: float = 0.0
    """Of those that are trained for it, and for no study before it."""


@dataclass
class Shelf(ResultSink):
    """Puts finished runs into every study that plans them."""

    members: Sequence[Member]
    began: float = field(default_factory=time.monotonic)
    done: int = 0

    @property
    def save_options(self) -> SaveOptions:
        """What any of them wants."""
        keeps = [member.keep for member in self.members]
        return SaveOptions(any(keep.episodes for keep in keeps), any(keep.policies for keep in keeps))

    def finish(self, completed: Sequence[CompletedRun]) -> list[Exception | None]:
        """Put them there; their folders are not needed any more."""
        for member in self.members:
            mine = [run for _, run in completed if run.name in member.names]
            if mine:
                member.folder.store.add(mine if member.keep.policies else [replace(run, policy=None) for run in mine])
        for recorder, _ in completed:
            recorder.folder.remove()
        self.done += len(completed)
        print(f"  {self.done:,} finished, {time.monotonic() - self.began:,.1f} s", flush=True)
        return [None] * len(completed)


def members_in(pack: Path, out: Path) -> list[Member]:
    """The studies of a pack, each with its folder."""
    with zipfile.ZipFile(pack) as file:
        told = json.loads(file.read(MANIFEST))
    keeps = [SaveOptions(**part["keep"]) for part in told["studies"]]
    folders = [
        StudyFolder.create(out / part["folder"], study_from_table(part["study"]), keep=keep)
        for part, keep in zip(told["studies"], keeps, strict=True)
    ]
    return [Member(folder, keep) for folder, keep in zip(folders, keeps, strict=True)]


def line_of(members: Iterable[Member], without: set[str]) -> dict[str, list[TrainingJob]]:
    """By program, the runs that are left to train, each once."""
    line: dict[str, list[TrainingJob]] = {}
    known = set(without)
    for member in members:
        plan = Plan.of(member.folder.study)
        member.names = {planned.name for planned in plan.runs}
        known |= {name for name in member.names if name in member.folder.store}
        for planned in plan.runs:
            if planned.name not in known:
                known.add(planned.name)
                spec = plan.spec(planned)
                member.expected_s += KERNELS[spec.algorithm].expected_s(spec)
                trainee = TrainingJob(member.folder.run_folder(spec), [], lambda: None)
                line.setdefault(engine_for(spec).program(spec), []).append(trainee)
    return line


def tell_shares(members: Sequence[Member], wall_s: float) -> None:
    """Print what each study took of the time, and write it down as its sessions are."""
    all_s = sum(member.expected_s for member in members)
    for member in members:
        share_s = member.expected_s / (all_s or inf) * wall_s
        print(f"{member.folder.study.name}: {share_s:,.0f} s of {wall_s:,.0f}")
        sessions, now = member.folder.path / "sessions", time.time()
        sessions.mkdir(exist_ok=True)
        (sessions / f"{uuid4().hex[:12]}.json").write_text(json.dumps({"began": now - share_s, "ended": now}) + "\n")


def parts_of(line: Mapping[str, list[TrainingJob]]) -> Iterable[list[TrainingJob]]:
    """As many runs of one program as are trained together: on the kernel, all that there are."""
    for trainees in line.values():
        spec = trainees[0].folder.spec
        engine = engine_for(spec)
        most = len(trainees) if engine.name == "cuda" else engine.max_batch_size(spec)
        for first in range(0, len(trainees), most):
            yield trainees[first : first + most]


def main(arguments: Sequence[str]) -> int:
    """Train them; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack", type=Path, help="of 'cycletime study pack' or 'experiment pack paper'")
    parser.add_argument("out", type=Path, help="where results are written")
    parser.add_argument("--without", type=Path, help="a file with names of runs that are done elsewhere, a line each")
    parser.add_argument("--checkpoint-s", type=float, default=inf, help="seconds between checkpoints; else none")
    given = parser.parse_args(arguments)
    prepare_jax("cpu")
    members = members_in(given.pack, given.out)
    line = line_of(members, set(given.without.read_text().split()) if given.without else set())
    shelf, ends = Shelf(members), list[TrainingOutcome | Exception]()
    print(f"{sum(map(len, line.values())):,} runs", flush=True)
    with stopping() as stopper:
        for trainees in parts_of(line):
            if not stopper():
                ends += train_batch(trainees, shelf, stop=stopper, checkpoint_s=given.checkpoint_s)
    faults = [end for end in ends if isinstance(end, Exception)]
    for fault in faults[:10]:
        print(f"{type(fault).__name__}: {fault}", file=sys.stderr)
    tell_shares(members, time.monotonic() - shelf.began)
    return stopper.status if stopper() else int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
