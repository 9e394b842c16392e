"""How long a study was worked on, whoever was killed or worked at the same time."""

import json
from pathlib import Path

import pytest

from cycletime.studies.events import WALL_TIME_INTERVAL_S as SAVE_INTERVAL_S
from cycletime.studies.events import Event, WallTimeRecorder, recorded_wall_s
from cycletime.studies.plan import Plan
from tests.studies.small import quick_study

PLAN = Plan.of(quick_study())


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_time_is_written_while_it_runs_so_that_a_kill_loses_little(tmp_path: Path) -> None:
    clock = Clock()
    timed = WallTimeRecorder(tmp_path, clock)
    timed.begin(PLAN, {"a": "pending", "b": "done"})
    assert recorded_wall_s(tmp_path) == 0.0
    clock.now += SAVE_INTERVAL_S / 2
    timed.update(Event("a", 1))
    assert recorded_wall_s(tmp_path) == 0.0, "too soon"
    clock.now += SAVE_INTERVAL_S
    timed.update(Event("a", 2))
    assert recorded_wall_s(tmp_path) == 1.5 * SAVE_INTERVAL_S
    clock.now += 1.0
    timed.end()
    assert recorded_wall_s(tmp_path) == 1.5 * SAVE_INTERVAL_S + 1


def test_a_time_that_was_changed_is_not_known(tmp_path: Path) -> None:
    timed = WallTimeRecorder(tmp_path, Clock())
    timed.begin(PLAN, {"a": "pending"})
    assert recorded_wall_s(tmp_path) == 0.0
    timed.file.write_text(timed.file.read_text().replace('ended": 100', 'ended": 900'))
    assert recorded_wall_s(tmp_path) is None


def test_who_finds_nothing_to_do_does_not_count(tmp_path: Path) -> None:
    timed = WallTimeRecorder(tmp_path, Clock())
    timed.begin(PLAN, {"a": "done"})
    timed.update(Event("a", outcome="done"))
    timed.end()
    assert recorded_wall_s(tmp_path) is None


@pytest.mark.parametrize(
    ("times", "seconds"),
    [([(0, 10), (20, 25)], 15), ([(0, 10), (5, 12)], 12), ([(0, 10), (2, 3), (9, 11)], 11), ([(20, 30), (0, 1)], 11)],
)
def test_what_counts_is_the_time_in_which_at_least_one_worked(
    tmp_path: Path, times: list[tuple[float, float]], seconds: float
) -> None:
    (tmp_path / "sessions").mkdir()
    for index, (began, ended) in enumerate(times):
        (tmp_path / "sessions" / f"{index}.json").write_text(json.dumps({"began": began, "ended": ended}))
    assert recorded_wall_s(tmp_path) == seconds


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[1]", b'{"began": 1}', b'{"began": "soon", "ended": []}', b"[" * 10**5]
)
def test_a_time_that_cannot_be_read_is_not_known(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "good.json").write_text('{"began": 1, "ended": 2}')
    (tmp_path / "sessions" / "spoilt.json").write_bytes(content)
    assert recorded_wall_s(tmp_path) is None
