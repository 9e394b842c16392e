"""The journal against power cuts: whatever is left of the file, all whole episodes are there, and no other."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.errors import InputError, RunError
from cycletime.training.journal import Cycle, Cycles, EpisodeRecord, Journal, JournalEntry

IDENTITY = "ab" * 32


def an_entry(number: int, steps: int = 2, session: int = 1) -> JournalEntry:
    rng = np.random.default_rng(number)
    cycles = Cycles.of([_cycle(rng.normal(size=6).tolist(), overrun=bool(step % 2)) for step in range(steps)])
    rows, lengths = rng.normal(size=(steps, 7)).astype(np.float32), np.full(steps, 4)
    return JournalEntry(
        EpisodeRecord(number, rows, lengths, rng.normal(size=steps), cycles, "truncated", 8 * number), session
    )


def _cycle(times_s: list[float], *, overrun: bool) -> Cycle:
    numbers: list[Any] = [*times_s, 1, 0, 5, -1, overrun]
    return Cycle(*numbers)


def same(one: JournalEntry, other: JournalEntry) -> bool:
    first, second = one.episode, other.episode
    arrays = zip(_arrays(first), _arrays(second), strict=True)
    facts = [(each.number, each.ended_by, each.run_env_steps) for each in (first, second)]
    equal = all(np.array_equal(a, b, equal_nan=True) and a.dtype == b.dtype for a, b in arrays)
    return equal and facts[0] == facts[1] and one.session == other.session


def _arrays(episode: EpisodeRecord) -> list[NDArray[Any]]:
    return [episode.rows, episode.length_steps, episode.rewards, *(episode.cycles[name] for name in Cycle._fields)]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.cycles", IDENTITY)


def test_what_was_appended_is_there(journal: Journal) -> None:
    assert list(journal.entries()) == []
    assert journal.last() is None
    entries = [an_entry(number, steps=number + 1, session=number + 1) for number in range(3)]
    for entry in entries:
        journal.append(entry)
    assert all(same(*pair) for pair in zip(journal.entries(), entries, strict=True))
    last = journal.last()
    assert last is not None
    assert same(last, entries[-1])
    assert journal.repair() is None


def test_a_cut_at_any_byte_loses_the_episode_in_progress_at_most(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = []
    for number in range(2):
        journal.append(an_entry(number, steps=1))
        ends.append(journal.path.stat().st_size)
    monkeypatch.setattr(
        "cycletime.training.journal._decode_entry", lambda payload: payload
    )  # a thousand times is enough
    payloads: list[object] = list(journal.entries())
    assert len(payloads) == 2
    for size in reversed(range(ends[-1])):
        os.truncate(journal.path, size)
        assert list(journal.entries()) == payloads[: sum(end <= size for end in ends)], size


@pytest.mark.parametrize("left", [0, 3, 88, -1, 0.5])
def test_after_a_cut_it_goes_on_behind_the_last_whole_episode(journal: Journal, left: float) -> None:
    journal.append(an_entry(0))
    end = journal.path.stat().st_size
    journal.append(an_entry(1))
    size = left if left >= 1 or not left else end + left if left < 0 else end + 100
    os.truncate(journal.path, int(size))
    whole = int(size >= end)
    told = journal.repair()
    assert (told is None) == (size in (0, 88)), "88 bytes are the first line"
    for number in range(whole, 3):
        journal.append(an_entry(number))
    assert all(same(entry, an_entry(number)) for number, entry in enumerate(journal.entries()))
    assert len(list(journal.entries())) == 3
    assert journal.repair() is None


def test_zeros_that_a_file_system_left_at_the_end_are_no_episode(journal: Journal) -> None:
    journal.append(an_entry(0))
    with journal.path.open("ab") as file:
        file.write(bytes(4096))
    assert [entry.episode.number for entry in journal.entries()] == [0]
    told = journal.repair()
    assert told is not None
    assert "4,096 bytes at the end of" in told
    assert journal.path.with_name("unusable-journal.cycles").read_bytes() == bytes(4096)


def test_a_changed_byte_is_noticed_and_what_follows_is_put_aside(journal: Journal) -> None:
    journal.append(an_entry(0))
    end = journal.path.stat().st_size
    journal.append(an_entry(1))
    content = bytearray(journal.path.read_bytes())
    for at in range(end, len(content), 97):
        changed = content.copy()
        changed[at] ^= 1
        journal.path.write_bytes(changed)
        assert len(list(journal.entries())) == 1, at
    assert journal.repair()
    aside = journal.path.with_name("unusable-journal.cycles")
    assert journal.path.stat().st_size + aside.stat().st_size == len(content)


def test_behind_a_changed_bit_reading_goes_on_and_what_is_lost_is_told(journal: Journal) -> None:
    ends = [len(journal._head())]
    for number in range(9):
        journal.append(an_entry(number))
        ends.append(journal.path.stat().st_size)
    content = journal.path.read_bytes()
    assert journal.lost() is None
    for at in range(ends[2], ends[3], 41):  # the third episode: its mark, length, checksum, content
        for bit in (1, 64):
            journal.path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
            assert [entry.episode.number for entry in journal.entries()] == [0, 1, 3, 4, 5, 6, 7, 8], at
    assert journal.lost() == f"{journal.path} is damaged: 8 of 9 episodes are whole, lost are 3."
    assert journal.repair() is None
    journal.append(an_entry(9))
    last = journal.last()
    assert last is not None
    assert last.episode.number == 9
    os.truncate(journal.path, journal.path.stat().st_size - 1)
    assert "8 of 9 episodes are whole, lost are 3 and " in str(journal.lost())


def test_a_damaged_first_line_and_a_journal_without_a_whole_episode(journal: Journal) -> None:
    assert journal.lost() is None, "there is none"
    journal.append(an_entry(0))
    content, head = journal.path.read_bytes(), len(journal._head())
    for at in range(head):
        journal.path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        assert [entry.episode.number for entry in journal.entries()] == [0], at
    journal.path.write_bytes(content[:-1])
    torn = len(content) - head - 1
    assert journal.lost() == (
        f"{journal.path} is damaged: 0 of 0 episodes are whole, {torn:,} bytes behind the last are no whole one."
    )


def test_a_length_that_cannot_be_is_not_read(journal: Journal) -> None:
    journal.append(an_entry(0))
    with journal.path.open("ab") as file:
        file.write(b"EPISODE\n" + (2**62).to_bytes(8, "little") + bytes(4))
    assert len(list(journal.entries())) == 1


@pytest.mark.parametrize("content", [b"something else", b"cycletime journal 1 of " + b"cd" * 32 + b"\n"])
def test_another_file_is_refused_and_left_as_it_is(journal: Journal, content: bytes) -> None:
    journal.path.write_bytes(content.ljust(200))
    for ask in (lambda: list(journal.entries()), journal.last, journal.repair):
        with pytest.raises(RunError, match="is not the journal of this run: it begins with"):
            ask()
    assert journal.path.read_bytes() == content.ljust(200)


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"):
        Journal(tmp_path / "nowhere" / "journal.cycles", IDENTITY).append(an_entry(0))


def test_a_pipe_in_place_of_a_journal_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "journal.cycles")
    with pytest.raises(InputError, match="is a pipe: give a regular file"):
        Journal(tmp_path / "journal.cycles", IDENTITY).last()
    with pytest.raises(InputError, match="is a pipe: give a regular file"):
        Journal(tmp_path / "journal.cycles", IDENTITY).append(an_entry(0))
