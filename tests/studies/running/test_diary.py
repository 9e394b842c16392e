"""What a worker writes is what the command reads: whole lines, each once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cycletime.errors import RunError
from cycletime.studies.events import (
    PROGRESS_INTERVAL_S,
    EventReader,
    EventWriter,
    events_file,
    open_event_writer,
    stop_file,
)


@contextmanager
def diary(path: Path, now: list[float] | None = None) -> Iterator[EventWriter]:
    with path.open("a") as file:
        yield EventWriter(file, clock=lambda: (now or [0.0])[0])


def test_all_that_is_written_is_read_once(tmp_path: Path) -> None:
    reader = EventReader(tmp_path / "w.jsonl")
    assert list(reader.lines()) == []
    with diary(reader.path) as writer:
        writer.write({"worker": "w"})
        writer.begin("a")
        writer.tell("a", 0)
        assert list(reader.lines()) == [{"worker": "w"}, {"name": "a"}, {"name": "a", "env_steps": 0}]
        writer.end("a", "done")
        writer.end("b", "failed", "E: no")
        writer.write({"left": True})
    assert list(reader.lines()) == [
        {"name": "a", "outcome": "done"},
        {"name": "b", "outcome": "failed", "error": "E: no"},
        {"left": True},
    ]
    assert list(reader.lines()) == []


def test_how_far_a_run_is_is_told_now_and_then_of_each(tmp_path: Path) -> None:
    now = [100.0]
    reader = EventReader(tmp_path / "w.jsonl")
    with diary(reader.path, now) as writer:
        for steps in (0, 10, 20):
            writer.tell("a", steps)
            writer.tell("b", steps)
            now[0] += 0.6 * PROGRESS_INTERVAL_S
    told = [(each["name"], each["env_steps"]) for each in reader.lines()]
    assert told == [("a", 0), ("b", 0), ("a", 20), ("b", 20)]


def test_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    reader = EventReader(path)
    path.write_text('{"name": "a"}\n{"name": "b", "outc')
    assert list(reader.lines()) == [{"name": "a"}]
    assert list(reader.lines()) == []
    with path.open("a") as file:
        file.write('ome": "done"}\n')
    assert list(reader.lines()) == [{"name": "b", "outcome": "done"}]


def test_a_line_that_a_killed_worker_left_torn_does_not_spoil_the_next_one_s(tmp_path: Path) -> None:
    reader = EventReader(tmp_path / "w.jsonl")
    reader.path.write_bytes(b'{"worker": "w"}\n{"name": "\xc3')
    assert list(reader.lines()) == [{"worker": "w"}]
    with diary(reader.path) as again:
        again.write({"worker": "w"})
        again.begin("b")
    assert list(reader.lines()) == [{"worker": "w"}, {"name": "b"}]


def test_what_is_no_line_of_a_diary_is_passed_over(tmp_path: Path) -> None:
    reader = EventReader(tmp_path / "w.jsonl")
    reader.path.write_text('\n\n[1]\n3\nnothing\n{"left": true}\n')
    assert list(reader.lines()) == [{"left": True}]


def test_a_full_disk_does_not_end_a_worker(tmp_path: Path) -> None:
    events_file(tmp_path, "w").symlink_to("/dev/full")
    with open_event_writer(tmp_path, "w") as writer:
        writer.begin("a")
        writer.begin("b")


def test_a_disk_that_takes_no_diary_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"), open_event_writer(tmp_path / "nowhere", "w"):
        pass


def test_a_worker_s_files_are_named_after_it_and_its_command(tmp_path: Path) -> None:
    assert events_file(tmp_path, "cycletime-1a2b.0-7") == tmp_path / "cycletime-1a2b.0-7.jsonl"
    assert stop_file(tmp_path, "cycletime-1a2b.0-7") == tmp_path / "cycletime-1a2b.0.stop"
    assert stop_file(tmp_path, "cycletime-1a2b-3") == stop_file(tmp_path, "cycletime-1a2b-4")
