from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cycletime.errors import RunError
from cycletime.loops import Episodes
from cycletime.runs.metrics import LINES, MetricsFile, window_of


@dataclass(frozen=True)
class Story:
    """A run's episodes, counted step by step, and what learning told."""

    k: int
    lengths: tuple[int, ...]
    learns_at: tuple[int, ...]
    """Agent steps."""

    @property
    def cycles(self) -> list[tuple[int, int]]:
        """Of every agent step, the environment steps of the run after it and the episode that it belongs to."""
        done, cycles = 0, []
        for number, length in enumerate(self.lengths):
            left = length
            while left:
                left, done = (left - self.k, done + self.k) if left > self.k else (0, done + left)
                cycles.append((done, number))
        return cycles

    def curve(self, agent_steps: int) -> Episodes:
        """The episodes that ended within so many agent steps."""
        numbers = [number for _, number in self.cycles]
        last_steps = [max(at + 1 for at, each in enumerate(numbers) if each == number) for number in set(numbers)]
        ended = [(step, number) for number, step in enumerate(sorted(last_steps)) if step <= agent_steps]
        return Episodes(
            np.array([self.cycles[step - 1][0] for step, _ in ended], np.int64),
            np.array([step for step, _ in ended], np.int64),
            np.zeros(len(ended)),
            np.array([self.lengths[number] for _, number in ended], np.int64),
        )

    def told(self, begin: int, end: int) -> dict[str, NDArray[Any]]:
        """What learning told in these agent steps; nothing at all where it did not."""
        steps = [step for step in self.learns_at if begin < step <= end]
        if not steps:
            return {}
        at = np.array(steps, np.int64)
        return {"agent_steps": at, "loss": np.sin(at).astype(np.float32), "kl": (at % 7 / 3).astype(np.float32)}


@st.composite
def stories(draw: st.DrawFn) -> Story:
    k = draw(st.integers(1, 5))
    lengths = tuple(draw(st.lists(st.integers(1, 23), min_size=1, max_size=8)))
    most = len(Story(k, lengths, ()).cycles)
    return Story(k, lengths, tuple(sorted(draw(st.sets(st.integers(1, most), max_size=40)))))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(path: Path, story: Story, window: int, cuts: Sequence[int] = (), stops: Sequence[int] = ()) -> bytes:
    """The file of a run cut into chunks, and killed at some of the cuts, a chunk after each of these checkpoints."""
    file = MetricsFile(path, window, story.k)
    file.resume(0, {})
    last = len(story.cycles)
    edges = [0, *sorted(cuts), last]
    for begin, end in pairwise(edges):
        file.add(story.told(begin, end), story.curve(end))
        if end in stops:
            file.flush()
            length, pending = file.length, {name: each.copy() for name, each in file.pending.items()}
            file.add(story.told(end, last), story.curve(last))
            with path.open("ab") as torn:
                torn.write(b'{"env_st')
            file = MetricsFile(path, window, story.k)
            file.resume(length, pending)
    file.finish(story.curve(last))
    return path.read_bytes()


@settings(max_examples=60)
@given(stories(), st.integers(1, 6), st.data())
def test_however_a_run_is_cut_and_killed_the_bytes_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, story: Story, window: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("run")
    cuts = sorted(data.draw(st.sets(st.integers(1, len(story.cycles)), max_size=6)))
    stops = data.draw(st.sets(st.sampled_from(cuts))) if cuts else set()
    whole = written(folder / "whole", story, window)
    assert written(folder / "cut", story, window, cuts, sorted(stops)) == whole


@settings(max_examples=60)
@given(stories(), st.integers(1, 6))
def test_lines_count_environment_steps_as_one_does_by_hand(
    tmp_path_factory: pytest.TempPathFactory, story: Story, window: int
) -> None:
    path = tmp_path_factory.mktemp("run") / "metrics.jsonl"
    written(path, story, window)
    lines = lines_of(path)
    ends = [*story.learns_at[window - 1 :: window]]
    if len(story.learns_at) % window:
        ends.append(story.learns_at[-1])
    assert [line["agent_steps"] for line in lines] == ends
    assert [line["env_steps"] for line in lines] == [story.cycles[step - 1][0] for step in ends]
    assert sum(line["learnings"] for line in lines) == len(story.learns_at)
    assert all(line["learnings"] == window for line in lines[:-1])


def test_a_line_holds_means_over_its_learnings(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl", window=2, cycle_steps=10)
    told = {"agent_steps": np.array([5, 10, 15]), "loss": np.array([1.0, 2.0, 7.0], np.float32)}
    added = file.add(told, Episodes.none())
    assert added == lines_of(file.path) == [{"env_steps": 100, "agent_steps": 10, "learnings": 2, "loss": 1.5}]
    last = file.finish(Episodes.none())
    assert last == lines_of(file.path)[1:] == [{"env_steps": 150, "agent_steps": 15, "learnings": 1, "loss": 7.0}]
    assert file.finish(Episodes.none()) == []


def test_means_are_computed_in_float64_and_written_with_the_digits_of_float32(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl", window=1000, cycle_steps=1)
    numbers = np.full(1000, 0.1, np.float32)
    (line,) = file.add({"agent_steps": np.arange(1, 1001), "loss": numbers}, Episodes.none())
    assert line["loss"] == 0.1
    (line,) = file.add({"agent_steps": np.arange(1, 1001), "loss": numbers * np.float32(1e-20)}, Episodes.none())
    assert line["loss"] == 1e-21


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_json_cannot_say_is_null(tmp_path: Path, number: float) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl", window=2, cycle_steps=1)
    file.add({"agent_steps": np.array([1, 2]), "loss": np.array([1, number], np.float32)}, Episodes.none())

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    line = json.loads(file.path.read_text(), parse_constant=refuse)
    assert line["loss"] is None
    assert line["learnings"] == 2


def test_a_run_that_never_learned_has_an_empty_file(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl", window=2, cycle_steps=1)
    assert file.length == 0
    file.flush()
    file.resume(0, {})
    assert file.add({}, Episodes.none()) == file.finish(Episodes.none()) == []
    assert file.path.read_bytes() == b""


def test_a_file_that_is_shorter_than_at_the_checkpoint_is_told_of_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path, window=1, cycle_steps=1)
    with pytest.raises(RunError, match=f"^{path} has 0 bytes, and 9 when the checkpoint was written: restore it, or"):
        file.resume(9, {})
    assert not path.exists()
    path.write_bytes(b"12345678")
    with pytest.raises(RunError, match="has 8 bytes, and 9 when"):
        file.resume(9, {})
    assert path.read_bytes() == b"12345678"


def test_a_full_disk_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.symlink_to("/dev/full")
    file = MetricsFile(path, window=1, cycle_steps=1)
    with pytest.raises(RunError, match=r"metrics\.jsonl cannot be written: the disk is full; make room and resume"):
        file.add({"agent_steps": np.array([1])}, Episodes.none())


@given(st.integers(1, 10**10), st.integers(1, 100), st.integers(1, 10**6))
def test_a_run_has_about_a_thousand_lines_at_most(env_steps: int, cycle_steps: int, period: int) -> None:
    window = window_of(env_steps, cycle_steps, period)
    learnings = env_steps / cycle_steps / period
    assert window >= 1
    assert learnings / window <= LINES * (1 + 1e-12)
    assert window == 1 or learnings / (window - 1) > LINES * (1 - 1e-12)
