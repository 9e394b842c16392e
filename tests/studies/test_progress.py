"""What people see of a study while it runs."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cycletime.studies.events import Event
from cycletime.studies.plan import Plan
from cycletime.studies.progress import LINE_INTERVAL_S, StudyProgress, format_groups, format_seconds
from cycletime.studies.study_folder import RunState
from tests.studies.small import small_study
from tests.terminals import terminal


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes on where a test lets it."""
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


@pytest.fixture
def begun(now: list[float]) -> Callable[..., tuple[StudyProgress, list[str]]]:
    """A study that is shown, and the names of its runs."""

    def begin(states: Mapping[int, RunState] | None = None, **keys: Any) -> tuple[StudyProgress, list[str]]:  # noqa: ANN401
        plan = Plan.of(small_study(**keys))
        shown, names = StudyProgress(2), [planned.name for planned in plan.runs]
        shown.begin(plan, {name: (states or {}).get(place, "pending") for place, name in enumerate(names)})
        return shown, names

    return begin


def test_lines_tell_what_is_done_how_fast_and_what_is_left(
    begun: Callable[..., tuple[StudyProgress, list[str]]], now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    shown, names = begun({0: "done"})
    shown.update(Event(names[1], env_steps=800))  # perhaps of an earlier command
    shown.update(Event(names[2], env_steps=0))
    shown.update(Event(names[1], env_steps=1800))  # from now on it is known how fast it is
    now[0] += LINE_INTERVAL_S
    shown.update(Event(names[1], env_steps=2800))
    shown.update(Event(names[2], env_steps=500))
    now[0] += LINE_INTERVAL_S
    shown.update(Event(names[1], outcome="done"))
    shown.end()
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "small: 6 runs in 3 groups, 1 done; 2 at a time"
    assert "starting or compiling" in lines[0]
    assert lines[1].startswith("1 of 6 runs, 100 env steps/s, ")
    # 4 x 4800 - 500 steps are left of the others, at 1500 steps in 20 s.
    assert lines[2].startswith("2 of 6 runs, 75 env steps/s, 20 s so far, 4 min left")


def test_speed_and_time_left_are_those_of_learning(
    begun: Callable[..., tuple[StudyProgress, list[str]]], now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """SAC does its first 255 x 8 steps at once, then a program is compiled, and then it does 50 a second."""
    shown, (a, b, c) = begun(algorithm="sac", dts=["16ms"], rules=["baseline"], seeds=3, env_steps=4040, tuned={})
    for name in (a, b):
        shown.update(Event(name, env_steps=0))
        shown.update(Event(name, env_steps=8))
        shown.update(Event(name, env_steps=2040))
    now[0] += 60.0
    shown.update(Event(a, env_steps=2048))
    for env_steps in (2548, 3048):
        now[0] += LINE_INTERVAL_S
        shown.update(Event(a, env_steps=env_steps))
    shown.update(Event(c, env_steps=0))
    now[0] += LINE_INTERVAL_S
    shown.update(Event(c, env_steps=2540))  # of which 500 are learning's
    *_, compiling, one, two, three = capsys.readouterr().err.splitlines()
    assert "starting or compiling" in compiling
    # Of each run 2,000 steps are learning's.
    assert one.startswith("0 of 3 runs, 50 env steps/s, 70 s so far, 110 s left")
    assert two.startswith("0 of 3 runs, 50 env steps/s, 80 s so far, 100 s left")
    assert three.startswith("0 of 3 runs, 50 env steps/s, 90 s so far, 90 s left")


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (30, r"2/6 4 min left, 1 failure"),
        (40, r"2/6 4 min left, 1 failure"),
        (80, r"━+ 2/6 75 env steps/s, 1 failure, 20 s so far, 4 min left"),
        (120, r"━{40} 2/6 75 env steps/s, 1 failure, 20 s so far, 4 min left"),
    ],
)
def test_on_a_narrow_terminal_the_count_and_the_time_left_stay(
    begun: Callable[..., tuple[StudyProgress, list[str]]], now: list[float], columns: int, line: str
) -> None:
    with terminal(columns) as seen:
        shown, names = begun({0: "done"})
        for env_steps in (800, 1800):
            shown.update(Event(names[1], env_steps=env_steps))
        shown.update(Event(names[2], env_steps=0))
        now[0] += LINE_INTERVAL_S
        shown.update(Event(names[1], env_steps=2800))
        shown.update(Event(names[2], env_steps=500))
        now[0] += LINE_INTERVAL_S
        shown.update(Event(names[3], outcome="failed", error="it fell"))
        shown.update(Event(names[1], outcome="done"))
        shown.end()
    lines = [re.sub(r"[╸╺]", "━", each).rstrip() for each in re.split(r"[\r\n]+", seen[0])]
    assert any(re.fullmatch(line, each) for each in lines), lines


def test_a_failure_is_told_at_once_and_counted_once_for_each_run(
    begun: Callable[..., tuple[StudyProgress, list[str]]], now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    shown, names = begun()
    for name in (names[0], names[1], names[0], names[1]):  # each is tried again
        now[0] += LINE_INTERVAL_S
        shown.update(Event(name, outcome="failed", error="E: no"))
    told = capsys.readouterr().err
    assert [told.count(f"{name} failed: E: no") for name in names[:2]] == [1, 1]
    assert told.splitlines()[-1].split(", ")[2] == "2 failures"
    shown.update(Event(names[0], outcome="done"))
    now[0] += LINE_INTERVAL_S
    shown.update(Event(names[1], env_steps=10))
    assert "1 failure," in capsys.readouterr().err


def test_what_is_left_is_told_once_there_is_a_rate_to_trust(
    begun: Callable[..., tuple[StudyProgress, list[str]]], now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two workers one may still compile when the other begins."""
    shown, names = begun()
    for wait_s, env_steps in ((0.0, 0), (9.0, 10), (1.0, 1010), (10.0, 2010)):
        now[0] += wait_s
        shown.update(Event(names[0], env_steps=env_steps))
    *_, early, late = capsys.readouterr().err.splitlines()
    assert early == "0 of 6 runs, 1,000 env steps/s, 10 s so far"
    assert late.startswith("0 of 6 runs, 182 env steps/s, 20 s so far, ")
    assert late.endswith(" left")


def test_a_run_that_is_tried_again_is_told_and_no_failure_yet(
    begun: Callable[..., tuple[StudyProgress, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    shown, names = begun()
    shown.update(Event(names[0], error="it hangs"))
    told = capsys.readouterr().err
    assert f"{names[0]}: it hangs; it is tried again\n" in told
    assert "failure" not in told


def test_what_is_lost_by_going_back_to_a_checkpoint_does_not_slow_others_down(
    begun: Callable[..., tuple[StudyProgress, list[str]]], now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    shown, names = begun()
    for env_steps in (0, 10, 1000, 0):
        shown.update(Event(names[0], env_steps=env_steps))
    now[0] += LINE_INTERVAL_S
    shown.update(Event(names[0], env_steps=10))
    assert "0 of 6 runs, 100 env steps/s, " in capsys.readouterr().err


def test_for_whom_it_waits_is_told_once(
    begun: Callable[..., tuple[StudyProgress, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    shown, (a, b, c, *_) = begun()
    capsys.readouterr()
    for holders in ({a: "w on h, process 1", b: "w on h, process 1", c: "v on h, process 2"}, {a: "v on h, process 2"}):
        for _ in range(3):
            shown.wait(holders)
    shown.wait({})
    assert capsys.readouterr().err.splitlines() == [
        "waiting for 3 runs that others train: v on h, process 2 (1); w on h, process 1 (2)",
        "waiting for 1 run that others train: v on h, process 2 (1)",
    ]


def test_of_runs_that_are_not_counted_nothing_is_counted(
    begun: Callable[..., tuple[StudyProgress, list[str]]], now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    shown, names = begun({0: "done"})
    for _ in range(3):
        now[0] += LINE_INTERVAL_S
        shown.update(Event(names[0], env_steps=100))
        shown.update(Event(names[0], outcome="done"))
    assert "2 of 6" not in capsys.readouterr().err


@pytest.mark.parametrize(("seconds", "words"), [(3.2, "3 s"), (119, "119 s"), (300, "5 min"), (7300, "2.0 h")])
def test_a_time_is_spelled_as_people_say_it(seconds: float, words: str) -> None:
    assert format_seconds(seconds) == words


def test_runs_and_groups_are_counted() -> None:
    assert format_groups(Plan.of(small_study(seeds=1, dts=["16ms"]))) == "1 run in 1 group"


def test_runs_that_end_at_once_are_running_and_brackets_are_no_style(
    begun: Callable[..., tuple[StudyProgress, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    shown, names = begun()
    shown.update(Event(names[0], outcome="done"))
    shown.end()
    shown.update(Event(names[1], outcome="failed", error="'return' in [trainer] names others"))
    _, running, failed = capsys.readouterr().err.splitlines()[:3]
    assert running.startswith("1 of 6 runs, running, ")
    assert failed.endswith("failed: 'return' in [trainer] names others")
