"""Run the next trainings of the plan for some seconds: python -m benchmarks.robots.run --seconds 570 --out OUT.

Takes the runs that have no row yet, in the plan's order, groups those of a setting, and trains three or four settings
side by side, each in a process of its own. Every evaluation and every finished run is on disk at once, in
OUT/rows.jsonl: killed, a command loses the runs in progress and nothing else, and the next command goes on; on the same
machine it finds in the cache what was done and compiled, and its OUT has all rows of that machine. Beside them
other processes compile the settings that come next, so that the card does not wait for the compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import sqrt
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

from benchmarks.robots.rows import Rows, read_rows
from benchmarks.robots.trial import BUDGET, HERE, PLAN, PREREGISTRATION, Run, Trial, read_trial

MAX_FAILURES = 2  # of a setting
MAX_FAILURES_IN_A_ROW = 6  # without a run that ended well: something is wrong with the machine
MARGIN = 1.1
TRACING = 0.3  # of the time until a setting is compiled: what is left of it when its program is on disk
LOOK_AHEAD = 8  # settings that are compiled and wait for a place
GRACE_S = 8
ROWS, POLICIES, COMPILED = "rows.jsonl", "policies.tar", "compiled.txt"
EXPECTED_INTERVALS = 10
TINY_INTERVALS = 2


@dataclass(frozen=True)
class Group:
    """Runs of one setting that a process trains one after the other."""

    stage: str
    setting: str
    seeds: tuple[int, ...]
    intervals: int

    @property
    def keys(self) -> set[str]:
        """What identifies its rows."""
        return {Run(self.stage, self.setting, seed).key for seed in self.seeds}


@dataclass
class Worker:
    """A process that trains a group."""

    group: Group
    process: subprocess.Popen[str]
    compile_only: bool = False
    running: str | None = None
    told_failure: bool = False


@dataclass
class Estimates:
    """How long compilation and runs take, from rows where there are any."""

    trial: Trial
    rows: Rows
    compiled: set[str] = field(default_factory=set)
    """Settings whose programs are on this machine's disk."""

    def setup_s(self, setting: str) -> float:
        """Until the first training step of a setting is compiled."""
        task = self.trial.settings[setting].task
        seen = [row["setup_s"] for row in self.rows.runs if row["task"] == task]
        whole_s = max(seen) if seen else self.trial.tasks[task].expected[0]
        return whole_s * TRACING if setting in self.compiled else whole_s

    def run_s(self, setting: str, intervals: int) -> float:
        """A run without compilation: as others of its cycle time, else guessed from the task's other cycle times."""
        task, dt_ms = self.trial.settings[setting].task, self.trial.settings[setting].dt_ms
        seen = [
            (row["dt_ms"] == dt_ms, (row["wall_s"] - row["setup_s"]) / row["intervals"] * sqrt(row["dt_ms"] / dt_ms))
            for row in self.rows.runs
            if row["task"] == task and row["intervals"]
        ]
        alike = [each_s for same, each_s in seen if same] or [each_s for _, each_s in seen]
        expected = self.trial.tasks[task].expected[1] / EXPECTED_INTERVALS
        return (statistics.median(alike) if alike else expected) * intervals

    def fitting(self, group: Group, left_s: float) -> tuple[int, ...]:
        """As many of the seeds as can be trained in the time that is left."""
        setup_s = self.setup_s(group.setting)
        run_s = self.run_s(group.setting, group.intervals)
        if group.stage == BUDGET:
            run_s = min(run_s, self.trial.numbers["budget_wall_s"])
        rest_s = left_s / MARGIN - setup_s - run_s
        further_s = run_s + TRACING * setup_s  # each further seed is traced anew
        return group.seeds[: 1 + int(rest_s / max(further_s, 1e-9))] if rest_s >= 0 else ()


def intervals_of(run: Run, trial: Trial, rows: Rows) -> int | None:
    """How many intervals a run lasts; None if that is not known yet."""
    if run.stage == BUDGET:
        return int(trial.numbers["max_intervals"])
    budget = rows.budget_intervals(trial.task_of(run).name)
    return budget and (trial.settings[run.setting].fixed_intervals or budget)


def pending_groups(
    trial: Trial, rows: Rows, taken: Collection[str] = (), tiny: bool = False, unknown: int | None = None
) -> Iterator[Group]:
    """What can be trained now, in the plan's order, the seeds of a setting and stage together.

    With `unknown`, also what waits for its task's budget: with so many intervals.
    """
    finished = rows.finished().union(taken)
    groups: dict[tuple[str, str], list[int]] = {}
    for run in trial.runs:
        wanted = run.key not in finished and not rows.left_out(trial.task_of(run).name)
        if wanted and rows.failed(run.setting) < MAX_FAILURES:
            groups.setdefault((run.stage, run.setting), []).append(run.seed)
    for (stage, setting), seeds in groups.items():
        intervals = intervals_of(Run(stage, setting, seeds[0]), trial, rows) or unknown
        if intervals is not None:
            yield Group(stage, setting, tuple(seeds), TINY_INTERVALS if tiny else intervals)


def listed_groups(trial: Trial, rows: Rows, slots: int) -> Iterator[str]:
    """What is left to run, block by block, with the wall time that is expected of it."""
    estimates, finished = Estimates(trial, rows), rows.finished()
    blocks: dict[tuple[str, str], list[float]] = {}
    settings: dict[tuple[str, str], int] = {}
    for run in trial.runs:
        task = trial.task_of(run).name
        if run.key in finished or rows.left_out(task):
            continue
        intervals = intervals_of(run, trial, rows) or EXPECTED_INTERVALS
        run_s = estimates.run_s(run.setting, intervals)
        run_s = min(run_s, trial.numbers["budget_wall_s"]) if run.stage == BUDGET else run_s
        seen = settings.setdefault((run.stage, run.setting), 0)
        settings[run.stage, run.setting] += 1
        blocks.setdefault((run.stage, task), []).append(
            run_s + estimates.setup_s(run.setting) * (TRACING if seen else 1)
        )
    total_s = 0.0
    for (stage, task), seconds in blocks.items():
        wall_s = sum(seconds) / slots
        total_s += wall_s
        yield f"{stage:>10} {task:36} {len(seconds):3} runs {wall_s:6.0f} s, in all {total_s / 60:5.0f} min"


@dataclass
class Runner:
    """Starts processes while time is left, and keeps what they print."""

    trial: Trial
    rows: Rows
    out: Path
    deadline: float
    worker_command: Sequence[str]
    cache: Path
    slots: int = 4
    compilers: int = 0
    tiny: bool = False
    only: Collection[str] = ()
    workers: list[Worker] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    failures_in_a_row: int = 0
    printed: queue.Queue[tuple[Worker, str | None]] = field(default_factory=queue.Queue)
    estimates: Estimates = field(init=False)
    records: list[TextIO] = field(init=False)
    log: TextIO = field(init=False)

    def __post_init__(self) -> None:
        """Open the files that the rows go to."""
        self.scratch = self.out / ".scratch"
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.cache.mkdir(parents=True, exist_ok=True)
        for name in (ROWS, POLICIES):  # of earlier commands on this machine, whose OUT may be gone
            if (self.cache / name).exists() and not (self.out / name).exists():
                shutil.copy(self.cache / name, self.out / name)
        listed = self.cache / COMPILED
        compiled = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
        self.estimates = Estimates(self.trial, self.rows, set(compiled))
        self.records = [(folder / ROWS).open("a", encoding="utf-8") for folder in (self.out, self.cache)]
        self.log = (self.out / "log.txt").open("a", encoding="utf-8")

    def run(self) -> None:
        """Train until no run fits into the time that is left."""
        while True:
            while self._start_next() or self._compile_next():
                pass
            if not self.workers:
                break
            self._take_one()
            if time.time() > self.deadline:
                self._stop_all()
        for file in (*self.records, self.log):
            file.close()

    def _has_place(self, compile_only: bool, places: int) -> bool:
        busy = sum(worker.compile_only == compile_only for worker in self.workers)
        return busy < places and self.failures_in_a_row < MAX_FAILURES_IN_A_ROW

    def _pending(self, unknown: int | None = None) -> Iterator[Group]:
        for group in pending_groups(self.trial, self.rows, self.taken, self.tiny, unknown):
            if not self.only or self.trial.settings[group.setting].task in self.only:
                yield group

    def _start_next(self) -> bool:
        left_s = self.deadline - time.time()
        if not self._has_place(False, self.slots) or left_s <= 0:
            return False
        for group in self._pending():
            seeds = group.seeds if self.tiny else self.estimates.fitting(group, left_s)
            if seeds:
                self._start(Group(group.stage, group.setting, seeds, group.intervals))
                return True
        return False

    def _compile_next(self) -> bool:
        """Begin to compile the next setting that still fits into the time and is neither compiled nor begun."""
        left_s = self.deadline - time.time()
        if not self._has_place(True, self.compilers):
            return False
        begun = {worker.group.setting for worker in self.workers}
        waiting = 0
        for group in self._pending(unknown=int(self.trial.numbers["min_intervals"])):
            if group.setting in self.estimates.compiled:
                waiting += 1
            elif group.setting not in begun and self.estimates.fitting(group, left_s):
                self._start(group, compile_only=True)
                return True
            if waiting == LOOK_AHEAD:
                return False
        return False

    def _start(self, group: Group, compile_only: bool = False) -> None:
        words = ["--setting", group.setting, "--seeds", *map(str, group.seeds), "--stage", group.stage]
        words += ["--intervals", str(group.intervals), "--deadline", str(self.deadline), "--slots", str(self.slots)]
        words += ["--scratch", str(self.scratch), *(["--tiny"] if self.tiny else [])]
        words += ["--compile-only"] if compile_only else []
        process = subprocess.Popen(
            [*self.worker_command, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        worker = Worker(group, process, compile_only)
        self.workers.append(worker)
        self.taken |= group.keys
        doing = "compiling" if compile_only else f"{group.intervals} intervals"
        self._say(f"{group.setting} with seeds {group.seeds}: {doing}")
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()

    def _listen(self, worker: Worker) -> None:
        assert worker.process.stdout is not None
        with worker.process.stdout as lines:
            for line in lines:
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
        else:
            self._take_line(worker, line)

    def _take_line(self, worker: Worker, line: str) -> None:
        try:
            record = json.loads(line) if line.startswith("{") else None
        except json.JSONDecodeError:
            record = None
        if not isinstance(record, dict) or "kind" not in record:
            self._log(f"{worker.group.setting}: {line.rstrip()}")
            return
        kind = record["kind"]
        if kind == "evaluation" and record["env_steps"]:
            self._note_compiled(worker.group.setting)
        if worker.compile_only and kind != "failure":
            return
        if kind == "policy":
            self._keep_policy(record)
        elif kind != "left":
            worker.running = record["key"] if kind in ("began", "evaluation") else None
            worker.told_failure |= kind == "failure"
            self._keep(record)

    def _note_compiled(self, setting: str) -> None:
        if setting not in self.estimates.compiled:
            self.estimates.compiled.add(setting)
            with (self.cache / COMPILED).open("a", encoding="utf-8") as listed:
                listed.write(f"{setting}\n")

    def _ended(self, worker: Worker) -> None:
        self.workers.remove(worker)
        code = worker.process.returncode
        if worker.running is not None or (code and not worker.told_failure):
            key = worker.running or min(worker.group.keys)
            self._keep({"kind": "failure", "key": key, "message": f"the process ended with {code}"})
        self.taken -= worker.group.keys  # what has no row can be taken again
        if code:
            self._say(f"{worker.group.setting}: ended with {code}")

    def _stop_all(self) -> None:
        for worker in self.workers:
            self._say(f"{worker.group.setting}: stopped, the time is over; lost: {worker.running or 'nothing'}")
            worker.process.terminate()
        for worker in self.workers:
            try:
                worker.process.wait(GRACE_S / 2)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        self.workers.clear()
        with suppress(queue.Empty):  # what was printed before the end
            while True:
                worker, line = self.printed.get(timeout=0.2)
                if line is not None:
                    self._take_line(worker, line)

    def _keep(self, record: dict[str, Any]) -> None:
        if self.tiny:
            record["rehearsal"] = True
        if record["kind"] == "failure":
            record |= {"uid": uuid4().hex[:12], "at": datetime.now(UTC).isoformat(timespec="seconds")}
        self.failures_in_a_row = (
            0 if record["kind"] == "run" else self.failures_in_a_row + (record["kind"] == "failure")
        )
        self.rows.add(record)
        for file in self.records:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if record["kind"] in ("run", "failure"):
            said = record.get("message") or f"score {record['score']}, final {record['final']}, {record['wall_s']} s"
            self._say(f"{record['key']}: {said}")

    def _keep_policy(self, record: dict[str, Any]) -> None:
        file = Path(record["file"])
        for folder in (self.out, self.cache):
            with tarfile.open(folder / POLICIES, "a") as archive:
                archive.add(file, arcname=record["key"].replace("/", "_") + ".npz")
        file.unlink()

    def _say(self, text: str) -> None:
        self._log(text)
        print(f"{self.deadline - time.time():7.1f} {text}", flush=True)

    def _log(self, text: str) -> None:
        self.log.write(f"{self.deadline - time.time():7.1f} {text}\n")
        self.log.flush()


def set_environment(cache: Path) -> None:
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
    parser.add_argument("--seconds", type=float, default=570, help="how long the command may last")
    parser.add_argument("--out", type=Path, default=Path("robots-out"), help="for rows.jsonl, log.txt, policies.tar")
    parser.add_argument("--rows", type=Path, nargs="*", help="rows.jsonl of earlier commands, beside results/robots'")
    parser.add_argument("--slots", type=int, default=4, help="processes side by side")
    parser.add_argument("--compilers", type=int, default=4, help="processes that compile what comes next")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/robots-trial-cache"), help="compiled programs")
    parser.add_argument("--only", nargs="*", default=(), help="tasks to run, instead of all")
    parser.add_argument("--afresh", action="store_true", help="also what the committed results have")
    parser.add_argument("--retry", action="store_true", help="also settings that have failed in earlier commands")
    parser.add_argument(
        "--list", action="store_true", help="say what would be run, and how long it is expected to take"
    )
    parser.add_argument("--tiny", action="store_true", help="a rehearsal on a CPU: sizes in which nothing is learned")
    parser.add_argument("--plan", type=Path, default=PLAN)
    parser.add_argument("--preregistration", type=Path, default=PREREGISTRATION)
    asked = parser.parse_args()
    deadline = time.time() + asked.seconds - GRACE_S
    set_environment(asked.cache)
    files = [
        *([] if asked.afresh else [HERE.parent.parent / "results" / "robots" / ROWS]),
        *(asked.rows or ()),
        asked.cache / ROWS,
        asked.out / ROWS,
    ]
    rows = read_rows([file for file in files if file.exists()], rehearsal=asked.tiny)
    if asked.retry:
        rows.failures.clear()
    command = [sys.executable, "-m", "benchmarks.robots.train"]
    command += ["--plan", str(asked.plan), "--preregistration", str(asked.preregistration)]
    trial = read_trial(asked.preregistration, asked.plan)
    if asked.list:
        print("\n".join(listed_groups(trial, rows, asked.slots)))
        return 0
    runner = Runner(
        trial,
        rows,
        asked.out,
        deadline,
        command,
        asked.cache,
        slots=asked.slots,
        compilers=0 if asked.tiny else asked.compilers,
        tiny=asked.tiny,
        only=asked.only,
    )
    runner.run()
    if runner.failures_in_a_row >= MAX_FAILURES_IN_A_ROW:
        print(f"{runner.failures_in_a_row} failures in a row: no further run was started. See {asked.out / 'log.txt'}.")
        return 1
    done = sum(run.key in rows.finished() for run in trial.runs)
    print(f"{done} of {len(trial.runs)} runs have a row.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
