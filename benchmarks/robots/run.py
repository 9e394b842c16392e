"""Run the next trainings of the plan for some seconds: python -m benchmarks.robots.run --seconds 570 --out OUT.

Takes the runs that have no row yet, in the plan's order, groups those of a setting, and trains three or four settings
side by side, each in a process of its own. Every evaluation and every finished run is on disk at once, in OUT/rows.jsonl:
killed, a command loses the runs in progress and nothing else. The next command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from benchmarks.robots.rows import Rows, read_rows
from benchmarks.robots.trial import BUDGET, HERE, PLAN, PREREGISTRATION, Run, Trial, read_trial

MAX_FAILURES = 2
MARGIN = 1.15
GRACE_S = 8
EXPECTED_INTERVALS = 10
TINY_INTERVALS = 2


@dataclass(frozen=True)
class Group:
    """Runs of one setting that a process trains one after the other."""

    stage: str
    setting: str
    seeds: tuple[int, ...]
    intervals: int


@dataclass
class Worker:
    """A process that trains a group."""

    group: Group
    process: subprocess.Popen[str]
    running: str | None = None


@dataclass
class Estimates:
    """How long compilation and runs take, from rows where there are any."""

    trial: Trial
    rows: Rows

    def setup_s(self, task: str) -> float:
        """Until the first training step of a setting is compiled."""
        seen = [row["setup_s"] for row in self.rows.runs if row["task"] == task]
        return max(seen) if seen else self.trial.tasks[task].expected[0]

    def run_s(self, task: str, intervals: int) -> float:
        """A run without compilation."""
        seen = [
            (row["wall_s"] - row["setup_s"]) / row["intervals"]
            for row in self.rows.runs
            if row["task"] == task and row["intervals"]
        ]
        expected = self.trial.tasks[task].expected[1] / EXPECTED_INTERVALS
        return (statistics.median(seen) if seen else expected) * intervals

    def fitting(self, task: str, intervals: int, seeds: Sequence[int], left_s: float) -> tuple[int, ...]:
        """As many of the seeds as can be trained in the time that is left."""
        free_s = left_s / MARGIN - self.setup_s(task)
        each_s = self.run_s(task, intervals)
        return tuple(seeds[: max(0, int(free_s / each_s))]) if each_s > 0 else tuple(seeds)


def intervals_of(run: Run, trial: Trial, rows: Rows) -> int | None:
    """How many intervals a run lasts; None if that is not known yet."""
    if run.stage == BUDGET:
        return int(trial.numbers["max_intervals"])
    return trial.settings[run.setting].fixed_intervals or rows.budget_intervals(trial.task_of(run).name)


def pending_groups(trial: Trial, rows: Rows, taken: set[str], *, tiny: bool = False) -> Iterator[Group]:
    """What can be trained now, in the plan's order, the seeds of a setting and stage together."""
    finished = rows.finished() | taken
    groups: dict[tuple[str, str], list[int]] = {}
    for run in trial.runs:
        if (
            run.key not in finished
            and rows.failed(run.key) < MAX_FAILURES
            and not rows.left_out(trial.task_of(run).name)
        ):
            groups.setdefault((run.stage, run.setting), []).append(run.seed)
    for (stage, setting), seeds in groups.items():
        intervals = intervals_of(Run(stage, setting, seeds[0]), trial, rows)
        if intervals is not None:
            yield Group(stage, setting, tuple(seeds), TINY_INTERVALS if tiny else intervals)


@dataclass
class Runner:
    """Starts processes while time is left, and keeps what they print."""

    trial: Trial
    rows: Rows
    out: Path
    deadline: float
    slots: int
    worker_command: Sequence[str]
    tiny: bool = False
    only: frozenset[str] = frozenset()
    workers: list[Worker] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    printed: queue.Queue[tuple[Worker, str | None]] = field(default_factory=queue.Queue)
    estimates: Estimates = field(init=False)
    records: TextIO = field(init=False)
    log: TextIO = field(init=False)

    def __post_init__(self) -> None:
        """Open the files that the rows go to."""
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / ".scratch").mkdir(exist_ok=True)
        self.estimates = Estimates(self.trial, self.rows)
        self.records = (self.out / "rows.jsonl").open("a", encoding="utf-8")
        self.log = (self.out / "log.txt").open("a", encoding="utf-8")

    def run(self) -> None:
        """Train until no run fits into the time that is left."""
        while True:
            while len(self.workers) < self.slots and self._start_next():
                pass
            if not self.workers:
                break
            self._take_one()
            if time.time() > self.deadline:
                self._stop_all()
        self.records.close()
        self.log.close()

    def _start_next(self) -> bool:
        left_s = self.deadline - time.time()
        for group in pending_groups(self.trial, self.rows, self.taken, tiny=self.tiny):
            task = self.trial.settings[group.setting].task
            if self.only and task not in self.only:
                continue
            seeds = self.estimates.fitting(task, group.intervals, group.seeds, left_s) if not self.tiny else group.seeds
            if seeds and left_s > 0:
                self._start(Group(group.stage, group.setting, seeds, group.intervals))
                return True
        return False

    def _start(self, group: Group) -> None:
        words = ["--setting", group.setting, "--seeds", *map(str, group.seeds), "--stage", group.stage]
        words += ["--intervals", str(group.intervals), "--deadline", str(self.deadline), "--slots", str(self.slots)]
        words += ["--scratch", str(self.out / ".scratch"), *(["--tiny"] if self.tiny else [])]
        process = subprocess.Popen(
            [*self.worker_command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        worker = Worker(group, process)
        self.workers.append(worker)
        self.taken |= {Run(group.stage, group.setting, seed).key for seed in group.seeds}
        self._say(f"{group.setting} with seeds {group.seeds}: {group.intervals} intervals")
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()

    def _listen(self, worker: Worker) -> None:
        assert worker.process.stdout is not None
        for line in worker.process.stdout:
            self.printed.put((worker, line))
        worker.process.wait()
        self.printed.put((worker, None))

    def _take_one(self) -> None:
        try:
            worker, line = self.printed.get(timeout=max(0.1, min(5.0, self.deadline - time.time())))
        except queue.Empty:
            return
        if line is None:
            self._ended(worker)
            return
        try:
            record = json.loads(line) if line.startswith("{") else None
        except json.JSONDecodeError:
            record = None
        if not isinstance(record, dict) or "kind" not in record:
            self._say(f"{worker.group.setting}: {line.rstrip()}")
            return
        if record["kind"] == "policy":
            self._keep_policy(record)
            return
        if record["kind"] == "left":
            self.taken.discard(record["key"])
            return
        worker.running = record["key"] if record["kind"] in ("began", "evaluation") else None
        self._keep(record)

    def _ended(self, worker: Worker) -> None:
        self.workers.remove(worker)
        code = worker.process.returncode
        if worker.running is not None:
            message = f"the process ended with {code} in the middle of the run"
            self._keep({"kind": "failure", "key": worker.running, "message": message})
        for seed in worker.group.seeds:  # what was not begun can be taken again
            self.taken.discard(Run(worker.group.stage, worker.group.setting, seed).key)
        if code:
            self._say(f"{worker.group.setting}: ended with {code}")

    def _stop_all(self) -> None:
        for worker in self.workers:
            self._say(f"{worker.group.setting}: stopped, the time is over; {worker.running} is lost")
            worker.process.terminate()
        for worker in self.workers:
            try:
                worker.process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                worker.process.kill()
        self.workers.clear()

    def _keep(self, record: dict[str, Any]) -> None:
        self.rows.add(record)
        self.records.write(json.dumps(record) + "\n")
        self.records.flush()
        os.fsync(self.records.fileno())
        if record["kind"] in ("run", "failure"):
            said = record.get("message") or f"score {record['score']}, final {record['final']}, {record['wall_s']} s"
            self._say(f"{record['key']}: {said}")

    def _keep_policy(self, record: dict[str, Any]) -> None:
        file = Path(record["file"])
        with tarfile.open(self.out / "policies.tar", "a") as archive:
            archive.add(file, arcname=record["key"].replace("/", "_") + ".npz")
        file.unlink()

    def _say(self, text: str) -> None:
        left_s = self.deadline - time.time()
        self.log.write(f"{left_s:7.1f} {text}\n")
        self.log.flush()
        print(f"{left_s:7.1f} {text}", flush=True)


def environment(cache: Path) -> None:
    """Set what the processes need: memory as it is used, full precision, compiled programs on disk."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("JAX_DEFAULT_MATMUL_PRECISION", "highest")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1")
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    os.environ.setdefault("MUJOCO_GL", "disable")


def main() -> int:
    """Read the table of finished runs, and go on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, required=True, help="how long the command may last")
    parser.add_argument("--out", type=Path, required=True, help="the folder for rows.jsonl, log.txt, policies.tar")
    parser.add_argument("--rows", type=Path, nargs="*", default=None, help="rows.jsonl of earlier commands")
    parser.add_argument("--slots", type=int, default=4, help="processes side by side")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/robots-trial-cache"), help="compiled programs")
    parser.add_argument("--only", nargs="*", default=(), help="tasks to run, instead of all")
    parser.add_argument("--tiny", action="store_true", help="a rehearsal on a CPU: sizes in which nothing is learned")
    parser.add_argument("--plan", type=Path, default=PLAN)
    parser.add_argument("--preregistration", type=Path, default=PREREGISTRATION)
    asked = parser.parse_args()
    deadline = time.time() + asked.seconds - GRACE_S
    environment(asked.cache)
    master = HERE.parent.parent / "results" / "robots" / "rows.jsonl"
    earlier = asked.rows if asked.rows is not None else [master] if master.exists() else []
    here = asked.out / "rows.jsonl"
    rows = read_rows([*earlier, *([here] if here.exists() else [])], rehearsal=asked.tiny)
    rows.unfinished.clear()
    command = [sys.executable, "-m", "benchmarks.robots.train"]
    command += ["--plan", str(asked.plan), "--preregistration", str(asked.preregistration)]
    trial = read_trial(asked.preregistration, asked.plan)
    runner = Runner(trial, rows, asked.out, deadline, asked.slots, command, asked.tiny, frozenset(asked.only))
    runner.run()
    done = len([run for run in trial.runs if run.key in runner.rows.finished()])
    print(f"{done} of {len(trial.runs)} runs have a row.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
