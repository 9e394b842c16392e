"""How a training is shown."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cycletime.agents import SACAgent
from cycletime.training import progress_bar as progress_module
from cycletime.training.learning_curve import Episodes
from cycletime.training.observers import Progress
from cycletime.training.progress_bar import ErrorConsole, ProgressBar, show_progress
from cycletime.training.run_folder import RunFolder
from tests.terminals import full_disk, terminal
from tests.training.engines.scripted import make_spec

FOLDER = RunFolder(Path("nowhere"), make_spec(chunks=1000))
BUDGET = FOLDER.spec.env_steps


def progress(env_steps: int, *returns: float) -> Progress:
    count = np.zeros(len(returns), np.int64)
    return Progress(env_steps, env_steps, Episodes(count, count, np.array(returns, float), count), [])


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is written, of all that could be."""
    shown: list[str] = []
    monkeypatch.setattr(progress_module, "LINE_S", 0)
    monkeypatch.setattr(ErrorConsole, "print", lambda self, text, **options: shown.append(text))
    return shown


def test_the_speed_is_that_of_the_last_seconds(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with show_progress("a run", 1, alike=True) as (listener,):
        listener.begin(FOLDER, 1_000)
        for now_s, env_steps in ((60.0, 1_100), (61.0, 2_100), (71.0, 4_100), (72.0, 7_100), (81.0, 16_100)):  # noqa: B007
            listener.update(progress(env_steps))
    assert lines[0] == "a run: goes on from 1,000 environment steps"
    speeds = [re.search(r"([\d,]+) env steps/s", line) for line in lines[1:]]
    assert [each and each[1] for each in speeds] == [None, "1,000", "200", "455", "1,200"]


@pytest.mark.parametrize(
    ("updates", "told"),
    [(1, "-:--:--"), (2, "-:--:-- 400 env steps/s"), (3, "-:--:--"), (4, "0:06:20 10 env steps/s")],
)
def test_speed_and_time_left_are_those_of_learning(monkeypatch: pytest.MonkeyPatch, updates: int, told: str) -> None:
    """SAC takes 400 steps a second until it learns, and then 10."""
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    sac = RunFolder(Path("nowhere"), replace(FOLDER.spec, agent=SACAgent(minibatch=256), env_steps=4_070))
    with terminal(150) as shown, show_progress("a run", 1, alike=True) as (listener,):
        listener.begin(sac, None)
        for now_s, steps in ((1.0, 50), (1.5, 250), (9.0, 260), (10.0, 270))[:updates]:  # noqa: B007
            listener.update(progress(steps))
    last = [line for line in re.split(r"[\r\n]+", shown[0]) if line.strip()][-1]
    assert last.rstrip().endswith(f" {told}"), last


@pytest.mark.parametrize("columns", [80, 150])
def test_a_bar_shows_the_time_that_it_took_on_terminals_of_all_widths(columns: int) -> None:
    now_s = 0.0
    with terminal(columns) as shown:
        bar = ProgressBar("Pendulum-v1 actor-critic 50ms seed 0")
        bar.console.get_time = lambda: now_s
        bar.open(BUDGET, 0)
        now_s = 75.0
        bar.show(BUDGET // 2, [-1234.5])
        bar.close()
    last = [line for line in re.split(r"[\r\n]+", shown[0]) if line.strip()][-1]
    assert re.search(r"seed 0 (━\S* )? *50% 0:01:15 [-\d]:[-\d]{2}:[-\d]{2} return -1,2", last), last
    assert len(last) <= columns


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (30, r"reacher ppo 16ms…  50% 0:00:01"),
        (40, r"reacher ppo 16ms seed 0  50% 0:00:01"),
        (80, r"reacher ppo 16ms seed 0  50% 0:00:00 0:00:01 return -321.50, 1,887 env steps/s"),
        (100, r"reacher ppo 16ms seed 0 ━+  50% 0:00:00 0:00:01 return -321.50, 1,887 env steps/s"),
    ],
)
def test_a_narrow_terminal_has_fewer_columns_and_those_are_whole(
    monkeypatch: pytest.MonkeyPatch, columns: int, line: str
) -> None:
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with terminal(columns) as shown:
        bar = ProgressBar("reacher ppo 16ms seed 0")
        bar.console.get_time = lambda: 0.0
        bar.open(2 * 1887, 0)
        bar.show(0, [-321.5])
        now_s = 1.0
        bar.show(1887, [])
        bar.close()
    last = [each for each in re.split(r"[\r\n]+", shown[0]) if each.strip()][-1]
    assert re.fullmatch(line, re.sub(r"[╸╺]", "━", last).rstrip()), last


@pytest.mark.parametrize("alike", [True, False])
def test_runs_share_a_bar_and_their_returns_a_mean_where_they_can_be_compared(lines: list[str], alike: bool) -> None:
    with show_progress("runs", 2, alike=alike) as (one, other):
        one.begin(FOLDER, None)
        other.begin(FOLDER, BUDGET // 2)
        one.update(progress(BUDGET // 4, 1.0, 2.0))
        other.update(progress(BUDGET, 6.0))
        other.end("finished")
        one.remark("Something was wrong.")
    shares = [re.search(r"(\d+)%", line) for line in lines]
    assert [each and each[1] for each in shares] == ["38", "62", None]  # of the bar that is twice as long
    assert ["return 1.50" in lines[0], "return 3.00" in lines[1]] == [alike, alike]
    assert lines[2] == "runs: Something was wrong."


def test_lines_come_now_and_then(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(progress_module, "LINE_S", 10)
    with show_progress("a run", 1, alike=True) as (listener,):
        listener.begin(FOLDER, None)
        for now_s in (100.0, 109.0, 110.5, 112.0, 121.0):  # noqa: B007
            listener.update(progress(100))
    assert len(lines) == 3


@pytest.mark.parametrize("kind", ["terminal", "file"])
def test_a_disk_that_is_full_does_not_end_what_is_shown(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(progress_module, "LINE_S", 0)
    monkeypatch.setattr(Console, "is_terminal", kind == "terminal")
    with full_disk(), show_progress("a run", 1, alike=True) as (listener,):
        listener.begin(FOLDER, 300)
        for steps in (400, 500):
            listener.update(progress(steps))
        listener.remark("It goes on.")
        listener.end("finished")


def test_what_does_not_come_from_the_output_is_not_hidden(lines: list[str]) -> None:
    with show_progress("a run", 1, alike=True) as (listener,):
        listener.begin(FOLDER, None)
        with pytest.raises(AttributeError):
            listener.update(None)  # type: ignore[arg-type]
