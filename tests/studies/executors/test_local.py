"""The local executor with workers that speak as real ones do, and misbehave; real ones are in tests/cli/study."""

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import MachineError, RunError
from cycletime.studies import worker
from cycletime.studies.executors import local
from cycletime.studies.executors.executor import Event, Job
from cycletime.studies.executors.local import Local
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.running import jobs_of
from cycletime.studies.spec import Study
from cycletime.studies.study_file import study_from

SAYS = """
import json, os, signal, sys, time
from pathlib import Path
from types import SimpleNamespace

names = json.loads((Path(sys.argv[1]) / "names.json").read_text())  # since the package takes a second to import
def spec_of(told):
    return SimpleNamespace(name=names[json.dumps(told, sort_keys=True)], seed=told["seed"], dt=told["dt"])

signal.signal(signal.SIGINT, signal.SIG_IGN)
log = Path(sys.argv[1]) / f"log-{os.getpid()}"
def say(**told):
    print(json.dumps(told), flush=True)
def tries(name):
    with (Path(sys.argv[1]) / name).open("a") as file:
        file.write("x")
    return (Path(sys.argv[1]) / name).stat().st_size
for line in sys.stdin:
  given = json.loads(line)
  specs = [spec_of(each) for each in (given if isinstance(given, list) else [given])]
  with (Path(sys.argv[1]) / "given").open("a") as file:
    file.write(json.dumps([spec.name for spec in specs]) + "\\n")
  for spec in specs:
    name, seed, dt = spec.name, spec.seed, str(spec.dt)
    with log.open("a") as file:
        file.write(f"{name} {os.environ['OMP_NUM_THREADS']} {os.getpgid(0) == os.getpid()}\\n")
    say(name=name, env_steps=BEGINS)
BEHAVES
    say(name=name, outcome="done")
(Path(sys.argv[1]) / f"left-{os.getpid()}").touch()
"""


@pytest.fixture
def make_study() -> Callable[..., Study]:
    """Six short runs of three programs, with some keys of the study's file changed."""
    table = {"name": "s", "task": "reacher", "algorithm": "ppo", "dts": ["16ms", "32ms"], "seeds": 2, "env_steps": 99}
    table |= {"rules": ["baseline", "dt-aware"], "tuned": {"dt": "16ms", "batch": 100}}
    return lambda **keys: study_from({**table, **keys})


@pytest.fixture
def execute(
    tmp_path: Path, make_study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[Event]]:
    """Execute a study's jobs by workers that behave in some way."""

    def run(
        behaves: str = "    pass",
        begins: str = "0",
        workers: int = 2,
        gpus: tuple[str, ...] = (),
        stop: Callable[[], bool] = lambda: False,
        change: Callable[[Job], Job] = lambda job: job,
        **keys: Any,  # noqa: ANN401
    ) -> list[Event]:
        program = tmp_path / "worker.py"
        plan = Plan.of(make_study(**keys))
        names = {
            json.dumps(spec, sort_keys=True): run.name
            for run, spec in zip(plan.runs, plan.specs(plan.runs), strict=True)
        }
        (tmp_path / "names.json").write_text(json.dumps(names))
        program.write_text(SAYS.replace("BEHAVES", behaves).replace("BEGINS", begins))
        monkeypatch.setattr(local, "WORKER", (sys.executable, str(program)))
        events: list[Event] = []
        Local(workers, gpus).execute(str(tmp_path), list(map(change, jobs_of(plan, plan.runs))), events.append, stop)
        return events

    return run


def outcomes(events: Sequence[Event]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for event in events:
        if event.outcome:
            found.setdefault(event.name, []).append(event.outcome)
    return found


def test_each_run_is_given_once_to_workers_of_one_thread_each(
    execute: Callable[..., list[Event]], tmp_path: Path
) -> None:
    events = execute("    time.sleep(0.05)", seeds=4)
    assert list(outcomes(events).values()) == [["done"]] * 12
    logs = [path.read_text().splitlines() for path in tmp_path.glob("log-*")]
    assert len(logs) == 2
    assert {tuple(line.split()[1:]) for lines in logs for line in lines} == {("1", "True")}
    assert len(list(tmp_path.glob("left-*"))) == 2  # none is left behind


def test_each_worker_has_a_gpu_of_its_own_also_one_that_takes_the_place_of_a_dead_one(
    execute: Callable[..., list[Event]], tmp_path: Path
) -> None:
    notes = "    Path(sys.argv[1], f'gpu-{os.getpid()}').write_text(os.environ.get('CUDA_VISIBLE_DEVICES', 'all'))\n"
    dies = "    if tries(f'tries {name}') == 1 and seed == 0: os.kill(os.getpid(), signal.SIGKILL)\n    time.sleep(0.2)"
    execute(notes + dies, gpus=("GPU-1", "GPU-2"), seeds=4)
    seen = [path.read_text() for path in tmp_path.glob("gpu-*")]
    assert len(seen) > 2, "some died"
    assert set(seen) == {"GPU-1", "GPU-2"}


@pytest.mark.parametrize(
    ("workers", "enough", "given"),
    [(1, 2, [8]), (2, 2, [4, 4]), (2, 5, [3, 5]), (3, None, [8]), (5, 1, [2, 2, 2, 2])],
)
def test_runs_that_are_trained_together_are_shared_where_each_worker_has_enough(
    execute: Callable[..., list[Event]], tmp_path: Path, workers: int, enough: int | None, given: list[int]
) -> None:
    one = {"dts": ["16ms"], "rules": ["baseline"], "seeds": 8}
    execute(workers=workers, change=lambda job: replace(job, together=100, enough=enough), **one)
    lines = (tmp_path / "given").read_text().splitlines()
    assert sorted(len(json.loads(line)) for line in lines) == given


def test_a_worker_stays_with_its_program_while_there_are_runs_of_it(
    execute: Callable[..., list[Event]], tmp_path: Path, make_study: Callable[..., Study]
) -> None:
    execute("    time.sleep(0.02)", workers=1, seeds=4)
    (log,) = tmp_path.glob("log-*")
    groups = Plan.of(make_study(seeds=4)).groups()
    key_of = {planned.name: key for key, group in groups.items() for planned in group}
    keys = [key_of[line.split()[0]] for line in log.read_text().splitlines()]
    assert sum(one != other for one, other in pairwise(keys)) == len(groups) - 1


def test_runs_of_one_program_are_given_together_where_it_carries_several(
    execute: Callable[..., list[Event]], tmp_path: Path, make_study: Callable[..., Study]
) -> None:
    events = execute(workers=50, seeds=5, width=2)
    assert list(outcomes(events).values()) == [["done"]] * 15
    given = [json.loads(line) for line in (tmp_path / "given").read_text().splitlines()]
    assert sorted(map(len, given)) == [1] * 3 + [2] * 6
    groups = [{run.name for run in group} for group in Plan.of(make_study(seeds=5, width=2)).groups().values()]
    assert all(any(group.issuperset(names) for group in groups) for names in given)
    assert len(list(tmp_path.glob("log-*"))) <= 9  # no more workers than there are turns


def test_when_a_worker_dies_with_several_runs_those_without_an_outcome_are_given_again(
    execute: Callable[..., list[Event]], tmp_path: Path
) -> None:
    dies = "    if seed == 1 and tries(name) < 3: os.kill(os.getpid(), 9)"
    events = execute(dies, workers=1, seeds=3, width=3, dts=["16ms"])
    assert all(each == ["done"] for each in outcomes(events).values())
    given = [json.loads(line) for line in (tmp_path / "given").read_text().splitlines()]
    assert list(map(len, given)) == [3, 2, 1, 1], "the second time no longer together"


def test_no_more_workers_than_runs(execute: Callable[..., list[Event]], tmp_path: Path) -> None:
    execute(workers=50, seeds=1, dts=["16ms"])
    assert len(list(tmp_path.glob("log-*"))) == 1


def test_a_worker_that_dies_is_replaced_and_its_run_is_given_again(execute: Callable[..., list[Event]]) -> None:
    dies = "    if seed == 1 and tries(name) < 3: os.kill(os.getpid(), 9)"
    events = execute(dies, seeds=3)
    assert len(outcomes(events)) == 9
    assert all(each == ["done"] for each in outcomes(events).values())


def test_a_run_whose_worker_always_dies_is_given_up_and_the_others_go_on(execute: Callable[..., list[Event]]) -> None:
    events = execute("    if seed == 0 and dt == '16ms': os.kill(os.getpid(), 9)")
    found = outcomes(events)
    assert sorted(found.values()) == [["done"]] * 5 + [["failed"]]
    (failure,) = [event for event in events if event.outcome == "failed"]
    assert "16ms-seed0" in failure.name
    assert failure.error == "its worker died 5 times, the last time with status -9"


def test_a_run_that_kills_its_worker_is_told_from_those_that_are_trained_with_it(
    execute: Callable[..., list[Event]], tmp_path: Path
) -> None:
    dies = """
    for each in specs:
        say(name=each.name, env_steps=0)
    if 2 in [each.seed for each in specs]:
        os.kill(os.getpid(), 9)
"""
    found = outcomes(execute(dies, workers=1, seeds=4, width=4, dts=["16ms"]))
    by_seed = {name.partition("-seed")[2][0]: each for name, each in found.items()}
    assert by_seed == {"0": ["done"], "1": ["done"], "2": ["failed"], "3": ["done"]}
    given = [json.loads(line) for line in (tmp_path / "given").read_text().splitlines()]
    assert list(map(len, given)) == [4, 4, 2, 2, 1, 1, 1], "two times all of them, then halves"


def test_a_run_that_gets_further_each_time_is_not_given_up(
    execute: Callable[..., list[Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MOST_DEATHS", 2)
    one_run: dict[str, Any] = {"workers": 1, "seeds": 1, "dts": ["16ms"]}
    dies = "    if tries(name) < 4: os.kill(os.getpid(), 9)"
    events = execute(dies, begins="100 * tries('begun')", **one_run)
    assert [event.env_steps for event in events[:-1]] == [100, 200, 300, 400]
    assert [event.outcome for event in events if event.outcome] == ["done"]


def test_cut_off_words_of_the_dying_are_not_heard(execute: Callable[..., list[Event]]) -> None:
    torn = """
    if seed == 1 and tries(name) == 1:
        print('{"name": "x", "outc', end="", flush=True)
        os._exit(3)
"""
    found = outcomes(execute(torn))
    assert (len(found), "x" in found) == (6, False)


def test_workers_that_die_before_their_first_word_end_it_with_a_sentence(
    execute: Callable[..., list[Event]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    make_study: Callable[..., Study],
) -> None:
    monkeypatch.setattr(local, "WORKER", (sys.executable, "-c", "raise SystemExit(7)"))
    plan = Plan.of(make_study(seeds=50))
    with pytest.raises(RunError) as refusal:
        Local(2).execute(str(tmp_path), list(jobs_of(plan, plan.runs)), lambda event: None, lambda: False)
    assert str(refusal.value).startswith("10 workers died one after another without a word, the last with status 7: ")


def test_a_worker_that_finds_the_disk_full_ends_it_for_all(execute: Callable[..., list[Event]], tmp_path: Path) -> None:
    says = "    if seed == 1: say(machine=f'{name} cannot be written: the disk is full.')\n    time.sleep(0.2)"
    with pytest.raises(MachineError, match=r"^reacher-ppo-.* cannot be written: the disk is full\.$"):
        execute(says, seeds=6, workers=2)
    assert len(list(tmp_path.glob("left-*"))) == 2


def test_asked_to_stop_it_lets_all_workers_leave_by_themselves(
    execute: Callable[..., list[Event]], tmp_path: Path
) -> None:
    began = time.monotonic()

    def stop() -> bool:
        return len(list(tmp_path.glob("log-*"))) == 2 or time.monotonic() - began > 60

    events = execute("    time.sleep(0.7)", seeds=50, stop=stop)
    assert len(outcomes(events)) < 10
    assert len(list(tmp_path.glob("left-*"))) == 2


def test_an_idle_worker_that_is_asked_to_end_is_not_replaced(
    execute: Callable[..., list[Event]], tmp_path: Path
) -> None:
    """Two runs, two workers: the quick one is killed while the other still works."""
    slow = """
    if seed == 1:
        time.sleep(2)
"""
    killed: list[int] = []

    def stop() -> bool:
        for path in tmp_path.glob("log-*"):
            if "seed0" in path.read_text() and not killed:
                time.sleep(0.3)
                killed.append(int(path.name.removeprefix("log-")))
                os.kill(killed[0], signal.SIGKILL)
        return False

    found = outcomes(execute(slow, dts=["16ms"], stop=stop))
    assert [each[-1] for each in found.values()] == ["done"] * 2
    assert len(killed) == 1


def test_a_real_worker_says_what_the_executor_reads(
    make_study: Callable[..., Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: list[str]
) -> None:
    """The worker's own loop, in this process, with a training that takes no time."""
    folder = StudyFolder.create(tmp_path / "study", make_study())
    specs: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    plan = Plan.of(folder.study)
    for spec in plan.specs(plan.runs):
        specs.put(json.dumps(spec))
    specs.put(None)
    told: list[Any] = []
    monkeypatch.setattr("cycletime.studies.work.prepare_jax", lambda device: None)
    worker._work(folder.path, "w", specs, threading.Event(), told.append)
    assert told == [{"name": planned.name, "outcome": "done"} for planned in plan.runs]
    assert all(isinstance(job, Job) for job in jobs_of(plan, plan.runs))
