"""What a worker writes is what the command reads: whole lines, each once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cycletime.errors import RunError
from cycletime.studies.events import (
    PROGRESS_INTERVAL_S,
    Event,
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
    assert list(reader.new_events()) == []
    with diary(reader.path) as writer:
        writer.write(Event(worker="w"))
        writer.write(Event("a"))
        writer.progress("a", 0)
        assert list(reader.new_events()) == [Event(worker="w"), Event("a"), Event("a", 0)]
        writer.write(Event("a", outcome="done"))
        writer.write(Event("b", outcome="failed", error="E: no"))
        writer.write(Event(left=True))
    assert list(reader.new_events()) == [
        Event("a", outcome="done"),
        Event("b", outcome="failed", error="E: no"),
        Event(left=True),
    ]
    assert list(reader.new_events()) == []


def test_how_far_a_run_is_is_told_now_and_then_of_each(tmp_path: Path) -> None:
    now = [100.0]
    reader = EventReader(tmp_path / "w.jsonl")
    with diary(reader.path, now) as writer:
        for steps in (0, 10, 20):
            writer.progress("a", steps)
            writer.progress("b", steps)
            now[0] += 0.6 * PROGRESS_INTERVAL_S
    told = [(each.name, each.env_steps) for each in reader.new_events()]
    assert told == [("a", 0), ("b", 0), ("a", 20), ("b", 20)]


def test_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    reader = EventReader(path)
    path.write_text('{"name": "a"}\n{"name": "b", "outc')
    assert list(reader.new_events()) == [Event("a")]
    assert list(reader.new_events()) == []
    with path.open("a") as file:
        file.write('ome": "done"}\n')
    assert list(reader.new_events()) == [Event("b", outcome="done")]


def test_a_line_that_a_killed_worker_left_torn_does_not_spoil_the_next_one_s(tmp_path: Path) -> None:
    reader = EventReader(tmp_path / "w.jsonl")
    reader.path.write_bytes(b'{"worker": "w"}\n{"name": "\xc3')
    assert list(reader.new_events()) == [Event(worker="w")]
    with diary(reader.path) as again:
        again.write(Event(worker="w"))
        again.write(Event("b"))
    assert list(reader.new_events()) == [Event(worker="w"), Event("b")]


def test_what_is_no_line_of_a_diary_is_passed_over(tmp_path: Path) -> None:
    reader = EventReader(tmp_path / "w.jsonl")
    reader.path.write_text('\n\n[1]\n3\nnothing\n{"left": true}\n')
    assert list(reader.new_events()) == [Event(left=True)]


def test_a_full_disk_does_not_end_a_worker(tmp_path: Path) -> None:
    events_file(tmp_path, "w").symlink_to("/dev/full")
    with open_event_writer(tmp_path, "w") as writer:
        writer.write(Event("a"))
        writer.write(Event("b"))


def test_a_disk_that_takes_no_diary_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"), open_event_writer(tmp_path / "nowhere", "w"):
        pass


def test_a_worker_s_files_are_named_after_it_and_its_command(tmp_path: Path) -> None:
    assert events_file(tmp_path, "cycletime-1a2b.0-7") == tmp_path / "cycletime-1a2b.0-7.jsonl"
    assert stop_file(tmp_path, "cycletime-1a2b.0-7") == tmp_path / "cycletime-1a2b.0.stop"
    assert stop_file(tmp_path, "cycletime-1a2b-3") == stop_file(tmp_path, "cycletime-1a2b-4")
