import json
import shutil
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.robots.rows import Rows, read_rows
from benchmarks.robots.run import Estimates, Group, Runner, listed_groups, pending_groups
from benchmarks.robots.trial import BUDGET, Run, Setting, Trial, read_preregistration, tasks_of

TASK = tasks_of(read_preregistration())["CartpoleSwingup"]

# What train.py prints, without training: runs of 'slow' last, 'broken' fails, 'dying' and 'silent' end the process.
WORKER = """
import argparse, json, os, sys, time, uuid
parser = argparse.ArgumentParser()
parser.add_argument("--setting"); parser.add_argument("--seeds", nargs="+"); parser.add_argument("--stage")
parser.add_argument("--compile-only", action="store_true")
asked, _ = parser.parse_known_args()
say = lambda **record: print(json.dumps(record), flush=True)
for seed in asked.seeds:
    key = f"{asked.setting}/{seed}"
    key = f"budget/{key}" if asked.stage == "budget" else key
    task, dt, arm = asked.setting.split("/")
    if arm == "silent":
        sys.exit("no such module")
    say(kind="began", key=key)
    if arm == "dying":
        os._exit(7)
    if arm == "broken":
        say(kind="failure", key=key, message="RuntimeError: out of memory")
        sys.exit(1)
    if arm == "slow":
        time.sleep(3600)
    print("a line of a library")
    say(kind="evaluation", key=key, env_steps=10)
    row = dict(kind="run", uid=uuid.uuid4().hex, key=key, task=task, stage=asked.stage, intervals=5, wall_s=3.0,
               setup_s=1.0, score=1.0, final=2.0, started="now", dt_ms=8)
    say(**row, **({"budget_intervals": 7} if asked.stage == "budget" else {}))
"""


def trial_of(*arms: str, seeds: tuple[int, ...] = (0, 1)) -> Trial:
    names = ["shipped", *arms]
    settings = {f"T/8ms/{arm}": Setting(f"T/8ms/{arm}", "T", 8, (arm,), "ppo", "shipped", {}, 10, 1) for arm in names}
    runs = [Run(BUDGET, "T/8ms/shipped", 1000)]
    runs += [Run("main", setting, seed) for setting in settings for seed in seeds]
    numbers = {"max_intervals": 20, "min_intervals": 5, "budget_wall_s": 200}
    return Trial(numbers, {"T": replace(TASK, name="T", expected=(100, 50))}, settings, tuple(runs))


def runner_of(trial: Trial, tmp_path: Path, rows: Rows | None = None, seconds: float = 600, **more: Any) -> Runner:  # noqa: ANN401
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    deadline = time.time() + seconds
    command = [sys.executable, "-S", str(script)]
    more = {"slots": 2, "tiny": True, **more}
    return Runner(trial, rows or Rows(), tmp_path / "out", deadline, command, tmp_path / "cache", **more)


def records_of(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]


def test_all_runs_get_a_row_after_the_budget(tmp_path: Path) -> None:
    trial = trial_of("kept", "horizons")
    runner = runner_of(trial, tmp_path)
    runner.run()
    assert runner.rows.finished() == {run.key for run in trial.runs}
    finished = [record["key"] for record in records_of(tmp_path) if record["kind"] == "run"]
    assert finished[0] == "budget/T/8ms/shipped/1000"
    assert len(finished) == len(set(finished)) == 7
    assert "a line of a library" in (tmp_path / "out" / "log.txt").read_text()
    assert "T/8ms/kept" in (tmp_path / "cache" / "compiled.txt").read_text().splitlines()


def test_a_second_command_runs_what_is_missing_and_nothing_twice(tmp_path: Path) -> None:
    trial = trial_of("kept")
    runner_of(replace(trial, runs=trial.runs[:3]), tmp_path).run()
    rows = read_rows([tmp_path / "out" / "rows.jsonl"], rehearsal=True)
    assert len(rows.finished()) == 3
    runner_of(trial, tmp_path, rows).run()
    keys = [record["key"] for record in records_of(tmp_path) if record["kind"] == "run"]
    assert sorted(keys) == sorted(run.key for run in trial.runs)


@pytest.mark.parametrize("arm", ["broken", "dying", "silent"])
def test_a_setting_that_fails_is_told_and_left_after_two_tries(tmp_path: Path, arm: str) -> None:
    runner = runner_of(trial_of(arm, "kept"), tmp_path)
    runner.run()
    failures = [record for record in records_of(tmp_path) if record["kind"] == "failure"]
    assert [failure["key"] for failure in failures] == [f"T/8ms/{arm}/0"] * 2
    messages = {"broken": "RuntimeError: out of memory", "dying": "the process ended with 7"}
    assert failures[0]["message"] == messages.get(arm, "the process ended with 1")
    assert {"T/8ms/kept/0", "T/8ms/kept/1"} <= runner.rows.finished()


def test_a_machine_on_which_everything_fails_is_given_up(tmp_path: Path) -> None:
    trial = trial_of(*(["broken"]), seeds=(0,))
    names = [f"T{i}/8ms/broken" for i in range(9)]
    settings = {name: replace(trial.settings["T/8ms/broken"], name=name, task=name[:2]) for name in names}
    tasks = {name[:2]: trial.tasks["T"] for name in names}
    runs = tuple(Run(BUDGET, name, 0) for name in names)
    runner = runner_of(Trial(trial.numbers, tasks, settings, runs), tmp_path, slots=1)
    runner.run()
    assert len(runner.rows.failures) == 6


def test_at_the_deadline_only_the_run_in_progress_is_lost(tmp_path: Path) -> None:
    runner, kept = runner_of(trial_of("kept", "slow"), tmp_path), {"T/8ms/kept/0", "T/8ms/kept/1"}

    def let_the_deadline_pass() -> None:
        """When all but the slow run are done, which would last an hour."""
        while not (kept <= runner.rows.finished() and "T/8ms/slow/0" in (tmp_path / "out" / "rows.jsonl").read_text()):
            time.sleep(0.05)
        runner.deadline = time.time()

    threading.Thread(target=let_the_deadline_pass, daemon=True).start()
    runner.run()
    assert kept <= runner.rows.finished()
    assert not [record for record in records_of(tmp_path) if record["kind"] == "failure"]
    assert list(runner.rows.unfinished) == ["T/8ms/slow/0"]


def test_the_next_command_on_a_machine_has_the_rows_of_the_one_before(tmp_path: Path) -> None:
    trial = trial_of("kept")
    runner_of(replace(trial, runs=trial.runs[:3]), tmp_path).run()
    shutil.rmtree(tmp_path / "out")
    rows = read_rows([tmp_path / "cache" / "rows.jsonl"], rehearsal=True)
    runner_of(trial, tmp_path, rows).run()
    assert read_rows([tmp_path / "out" / "rows.jsonl"], rehearsal=True).finished() == {run.key for run in trial.runs}


def test_what_is_left_is_listed_with_its_time() -> None:
    lines = list(listed_groups(trial_of("kept"), Rows(), 2))
    assert lines[0].split() == ["budget", "T", "1", "runs", "100", "s,", "in", "all", "2", "min"]  # (100 + 100) / 2
    assert lines[1].split()[2:5] == ["4", "runs", "230"]  # twice 100 + 50 + 30 + 50


def test_nothing_but_budgets_begins_before_a_budget_is_known() -> None:
    trial, rows = trial_of("kept"), Rows()
    assert [group.stage for group in pending_groups(trial, rows)] == [BUDGET]
    rows.add({"kind": "run", "uid": "b", "key": trial.runs[0].key, "task": "T", "budget_intervals": 7})
    assert list(pending_groups(trial, rows)) == [
        Group("main", "T/8ms/shipped", (0, 1), 7),
        Group("main", "T/8ms/kept", (0, 1), 7),
    ]
    assert list(pending_groups(trial, rows, {"T/8ms/shipped/0", "T/8ms/shipped/1", "T/8ms/kept/0"})) == [
        Group("main", "T/8ms/kept", (1,), 7)
    ]


def test_a_task_that_is_left_out_has_no_further_runs() -> None:
    trial, rows = trial_of("kept"), Rows()
    rows.add({"kind": "run", "uid": "b", "key": trial.runs[0].key, "task": "T", "budget_intervals": None})
    assert list(pending_groups(trial, rows)) == []


def test_as_many_seeds_as_fit_are_taken() -> None:
    trial, rows = trial_of("kept"), Rows()
    group = Group("main", "T/8ms/kept", (0, 1, 2), 10)
    estimates = Estimates(trial, rows)  # 100 s until it is compiled, 50 s a run, 30 s to trace it again
    assert estimates.fitting(group, 1.1 * 149) == ()
    assert estimates.fitting(group, 1.1 * 151) == (0,)
    assert estimates.fitting(group, 1.1 * 231) == (0, 1)
    rows.add({"kind": "run", "uid": "a", "key": "a", "task": "T", "dt_ms": 8, "setup_s": 40.0, "wall_s": 60.0,
              "intervals": 5})  # fmt: skip
    assert estimates.fitting(group, 1.1 * 81) == (0,)  # 40 s and 10 intervals of 4 s
    estimates.compiled.add("T/8ms/kept")
    assert estimates.fitting(group, 1.1 * 53) == (0,)  # 12 s and 40 s


def test_what_comes_next_is_compiled_beside_the_trainings(tmp_path: Path) -> None:
    trial = trial_of("slow", "kept", "horizons", seeds=(0,))  # 'slow' holds the only place until the time is over
    rows = Rows()
    taken = {"task": "T", "dt_ms": 8, "setup_s": 0.1, "wall_s": 0.2, "intervals": 5, "budget_intervals": 7}
    for run in trial.runs[:2]:
        rows.add({"kind": "run", "uid": run.key, "key": run.key, **taken})
    runner = runner_of(trial, tmp_path, rows, slots=1, compilers=1, tiny=False)
    compiled = tmp_path / "cache" / "compiled.txt"

    def end_when_compiled() -> None:
        while not compiled.exists() or len(compiled.read_text().splitlines()) < 2:
            time.sleep(0.02)
        runner.deadline = time.time()

    threading.Thread(target=end_when_compiled, daemon=True).start()
    runner.run()
    assert compiled.read_text().split() == ["T/8ms/kept", "T/8ms/horizons"]
    assert [record["kind"] for record in records_of(tmp_path)] == ["began"]


def test_a_run_takes_as_long_as_others_of_its_cycle_time() -> None:
    def row(dt_ms: float, wall_s: float) -> dict[str, Any]:
        uid = f"{dt_ms}{wall_s}"
        return {"kind": "run", "uid": uid, "key": uid, "task": "T", "dt_ms": dt_ms, "intervals": 5, "wall_s": wall_s,
                "setup_s": 10.0}  # fmt: skip

    estimates = Estimates(trial_of("kept"), Rows())
    assert estimates.run_s("T/8ms/kept", 20) == pytest.approx(100)  # as the plan expects of ten intervals: 50 s
    estimates.rows.add(row(32, 60.0))
    assert estimates.run_s("T/8ms/kept", 20) == pytest.approx(400)  # four times as many steps, twice the time
    for wall_s in (20.0, 30.0, 90.0):
        estimates.rows.add(row(8, wall_s))
    assert estimates.run_s("T/8ms/kept", 20) == pytest.approx(80)


def test_what_does_not_fit_any_more_is_not_compiled(tmp_path: Path) -> None:
    trial, rows = trial_of("kept"), Rows()
    rows.add({"kind": "run", "uid": "b", "key": trial.runs[0].key, "task": "T", "dt_ms": 8, "budget_intervals": 7,
              "setup_s": 5000.0, "wall_s": 6000.0, "intervals": 5})  # fmt: skip
    runner = runner_of(trial, tmp_path, rows, seconds=100, compilers=2, tiny=False)
    runner.run()
    assert not (tmp_path / "cache" / "compiled.txt").exists()
    assert (tmp_path / "out" / "rows.jsonl").read_text() == ""


def test_a_setting_is_compiled_before_its_budget_is_known(tmp_path: Path) -> None:
    trial, rows = trial_of("kept"), Rows()
    waiting = list(pending_groups(trial, rows, {trial.runs[0].key}, unknown=5))
    assert [(group.setting, group.intervals) for group in waiting] == [("T/8ms/shipped", 5), ("T/8ms/kept", 5)]
    assert list(pending_groups(trial, rows, {trial.runs[0].key})) == []
