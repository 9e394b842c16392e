import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.studies import running, work
from cycletime.studies.executors.executor import Event, Job
from cycletime.studies.folder import State, StudyFolder, failures_of, forget_failures
from cycletime.studies.lease import leased
from cycletime.studies.plan import Plan
from cycletime.studies.running import jobs_of, run_study
from cycletime.studies.work import Outcome, work_on


@dataclass
class InTurn:
    """An executor that does one run after another, in this process."""

    workers: int = 1
    before: Callable[[str], Outcome | None] = lambda name: None
    """What becomes of a run by its name, instead of working on it."""
    given: list[list[str]] = field(default_factory=list)

    def execute(
        self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], stop: Callable[[], bool]
    ) -> None:
        specs = [RunSpec.from_json(json.loads(json.dumps(spec))) for job in jobs for spec in job.specs]
        self.given.append([spec.name for spec in specs])
        study = StudyFolder.open(folder)
        for spec in specs:
            if stop():
                return
            outcome = self.before(spec.name) or work_on(study, spec, worker="w")
            noted = failures_of(study.runs / spec.name)
            error = (noted[-1]["error"] if noted else "its worker died") if outcome == "failed" else None
            tell(Event(spec.name, outcome=outcome, error=error))


@dataclass
class Notes:
    """A watcher that writes down what it is told."""

    heard: list[object] = field(default_factory=list)

    def begin(self, plan: Plan, states: dict[str, State]) -> None:
        self.heard.append(dict(states))

    def update(self, event: Event) -> None:
        self.heard.append(event)

    def end(self) -> None:
        self.heard.append("end")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nothing waits in these tests; how long it would have."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


def test_all_runs_are_done_once_and_a_done_study_is_left_alone(
    make_folder: Callable[..., StudyFolder], trained: list[str]
) -> None:
    folder, notes = make_folder(), Notes()
    names = [planned.name for planned in Plan.of(folder.study).runs]
    assert run_study(folder, InTurn(), watcher=notes) == {"done": 6}
    assert sorted(trained) == sorted(names)
    assert notes.heard[0] == dict.fromkeys(names, "pending")
    assert [event.name for event in notes.heard if isinstance(event, Event)] == trained
    assert notes.heard[-1] == "end"
    idle = InTurn()
    assert run_study(folder, idle) == {"done": 6}
    assert (idle.given, len(trained)) == ([], 6)


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"seeds": 3}, 3),
        ({"dts": ["8ms", "16ms", "32ms"]}, 4),
        ({"rules": ["baseline", "dt-aware", "constant"]}, 2),
        ({"seeds": 1}, 0),
        ({"tuned": {"dt": "16ms", "batch": [100, 200], "minibatch": 50}}, 6),
    ],
)
def test_a_study_that_grew_runs_only_what_is_new(
    make_folder: Callable[..., StudyFolder], trained: list[str], change: dict[str, object], more: int
) -> None:
    run_study(make_folder(), InTurn())
    before = list(trained)
    run_study(make_folder(**change), InTurn())
    assert len(trained) == len(before) + more == len(set(trained))


def test_a_run_that_fails_three_times_does_not_stop_the_others(
    make_folder: Callable[..., StudyFolder], finish: Callable[[RunFolder], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder()
    bad = Plan.of(folder.study).runs[2].name
    tries: list[str] = []

    def train(run: RunFolder, **_: object) -> str:
        tries.append(run.spec.name)
        if run.spec.name == bad:
            raise FloatingPointError("no number")
        finish(run)
        return "finished"

    monkeypatch.setattr(work, "train", train)
    assert run_study(folder, InTurn()) == {"done": 5, "failed": 1}
    assert (tries.count(bad), len(tries)) == (3, 8)
    assert [each["error"] for each in failures_of(folder.runs / bad)] == ["FloatingPointError: no number"] * 3
    assert run_study(folder, InTurn()) == {"done": 5, "failed": 1}
    assert len(tries) == 8
    forget_failures(folder.runs / bad)
    assert run_study(folder, InTurn()) == {"done": 5, "failed": 1}
    assert tries.count(bad) == 6


def test_a_run_that_the_executor_gives_up_is_noted_and_not_tried_for_ever(
    make_folder: Callable[..., StudyFolder], trained: list[str]
) -> None:
    folder = make_folder()
    bad = Plan.of(folder.study).runs[0].name
    executor = InTurn(before=lambda name: "failed" if name == bad else None)
    assert run_study(folder, executor) == {"done": 5, "failed": 1}
    assert len(executor.given) == 1
    (noted,) = failures_of(folder.runs / bad)
    assert (noted["error"], noted["gives_up"]) == ("its worker died", True)


def test_one_that_failed_before_and_is_then_given_up_is_noted_too(
    make_folder: Callable[..., StudyFolder], trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(seeds=1, rules=["baseline"], dts=["16ms"])
    (planned,) = Plan.of(folder.study).runs
    run = folder.run_folder(Plan.of(folder.study).spec(planned)).path
    (run / "failures.jsonl").write_text('{"error": "once"}\n')

    class Dies(InTurn):
        def execute(
            self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], stop: Callable[[], bool]
        ) -> None:
            tell(Event(planned.name, outcome="failed", error="its worker died"))

    assert run_study(folder, Dies()) == {"failed": 1}
    assert [each["error"] for each in failures_of(run)] == ["once", "its worker died"]


def test_runs_of_others_are_waited_for_and_told_of(
    make_folder: Callable[..., StudyFolder],
    trained: list[str],
    finish: Callable[[RunFolder], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, notes = make_folder(), Notes()
    plan = Plan.of(folder.study)
    theirs = folder.run_folder(plan.spec(plan.runs[3]))
    waits: list[float] = []
    with leased(theirs.path, "other") as lease:
        assert lease is not None

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                finish(theirs)
                lease.give_back()

        monkeypatch.setattr(time, "sleep", sleep)
        assert run_study(folder, InTurn(), watcher=notes) == {"done": 6}
    assert waits == [running.WAIT_S] * 3
    assert theirs.spec.name not in trained
    done = [event.name for event in notes.heard if isinstance(event, Event) and event.outcome == "done"]
    assert sorted(done) == sorted(planned.name for planned in plan.runs)


def test_where_all_is_busy_it_waits_before_it_asks_again(
    make_folder: Callable[..., StudyFolder], trained: list[str], no_waiting: list[float]
) -> None:
    asked: list[str] = []

    def busy_at_first(name: str) -> Outcome | None:
        asked.append(name)
        return "busy" if len(asked) <= 12 else None

    assert run_study(make_folder(), InTurn(before=busy_at_first)) == {"done": 6}
    assert no_waiting == [running.WAIT_S] * 2


def test_asked_to_stop_it_leaves_the_rest_for_later(
    make_folder: Callable[..., StudyFolder], trained: list[str]
) -> None:
    folder, notes = make_folder(), Notes()
    assert run_study(folder, InTurn(), watcher=notes, stop=lambda: len(trained) >= 2) == {"done": 2, "pending": 4}
    assert notes.heard[-1] == "end"
    assert run_study(folder, InTurn()) == {"done": 6}
    assert len(trained) == len(set(trained)) == 6


def test_the_watcher_is_told_of_the_end_whatever_happens(
    make_folder: Callable[..., StudyFolder], tmp_path: Path
) -> None:
    def fails(name: str) -> Outcome | None:
        raise KeyboardInterrupt

    notes = Notes()
    with pytest.raises(KeyboardInterrupt):
        run_study(make_folder(), InTurn(before=fails), watcher=notes)
    assert notes.heard[-1] == "end"


def test_jobs_have_one_program_each_and_no_more_than_so_many_runs(make_folder: Callable[..., StudyFolder]) -> None:
    plan = Plan.of(make_folder(seeds=7).study)
    jobs = list(jobs_of(plan, plan.runs, most=3))
    assert sorted(len(job.specs) for job in jobs) == [1, 1, 1, 3, 3, 3, 3, 3, 3]
    given = [RunSpec.from_json(spec).name for job in jobs for spec in job.specs]
    assert sorted(given) == sorted(planned.name for planned in plan.runs)
    keys = plan.groups()
    for job in jobs:
        names = {planned.name for planned in keys[job.key]}
        assert {RunSpec.from_json(spec).name for spec in job.specs} <= names


def test_jobs_do_not_break_apart_what_is_trained_together(make_folder: Callable[..., StudyFolder]) -> None:
    plan = Plan.of(make_folder(seeds=7, width=3, rules=["baseline"], dts=["16ms"]).study)
    assert [(len(job.specs), job.together) for job in jobs_of(plan, plan.runs, most=5)] == [(3, 3), (3, 3), (1, 3)]
    assert [len(job.specs) for job in jobs_of(plan, plan.runs, most=6)] == [6, 1]
    assert [len(job.specs) for job in jobs_of(plan, plan.runs, most=2)] == [3, 3, 1]
