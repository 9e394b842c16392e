from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cycletime.training.learning_curve import (
    LINES,
    Columns,
    Episodes,
    MetricsLog,
    metrics_columns,
    metrics_lines,
    metrics_text,
    updates_per_line,
)


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

    def ended(self, begin: int, end: int) -> Episodes:
        """The episodes that ended in these agent steps."""
        curve = self.curve(end)
        return curve.where(curve.agent_steps > begin)

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


Cut = tuple[list[dict[str, Any]], Columns]
"""The lines that were told one after the other, and those that were kept."""


def kept(story: Story, window: int, cuts: Sequence[int] = (), stops: Sequence[int] = ()) -> Cut:
    """The lines of a run cut into chunks, and killed at some of the cuts, a chunk after each of these checkpoints."""
    log = MetricsLog(window, story.k)
    last, told = len(story.cycles), []
    for begin, end in pairwise([0, *sorted(cuts), last]):
        told += log.add(story.told(begin, end), story.ended(begin, end))
        if end in stops:
            arrays = {name: each.copy() for name, each in log.arrays().items()}
            log.add(story.told(end, last), story.ended(end, last))
            log = MetricsLog(window, story.k)
            log.resume(arrays)
    told += log.finish()
    return told, log.columns


@settings(max_examples=60)
@given(stories(), st.integers(1, 6), st.data())
def test_however_a_run_is_cut_and_killed_the_lines_are_the_same(story: Story, window: int, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(story.cycles)), max_size=6)))
    stops = data.draw(st.sets(st.sampled_from(cuts))) if cuts else set()
    told, columns = kept(story, window)
    cut_told, cut_columns = kept(story, window, cuts, sorted(stops))
    assert metrics_text(cut_columns) == metrics_text(columns)
    assert {name: (each.dtype, each.tobytes()) for name, each in cut_columns.items()} == {
        name: (each.dtype, each.tobytes()) for name, each in columns.items()
    }
    assert told == cut_told == metrics_lines(columns), "what listeners hear is what is kept"


@settings(max_examples=60)
@given(stories(), st.integers(1, 6))
def test_lines_count_environment_steps_as_one_does_by_hand(story: Story, window: int) -> None:
    lines, _ = kept(story, window)
    ends = [*story.learns_at[window - 1 :: window]]
    if len(story.learns_at) % window:
        ends.append(story.learns_at[-1])
    assert [line["agent_steps"] for line in lines] == ends
    assert [line["env_steps"] for line in lines] == [story.cycles[step - 1][0] for step in ends]
    assert sum(line["learnings"] for line in lines) == len(story.learns_at)
    assert all(line["learnings"] == window for line in lines[:-1])


def test_environment_steps_are_told_inside_episodes_at_their_ends_and_after_short_cycles() -> None:
    """Episodes of 25 environment steps at ten a cycle: the third cycle is short."""
    log = MetricsLog(window=1, cycle_steps=10)
    ended = Episodes(np.array([25]), np.array([3]), np.zeros(1), np.array([25]))
    first = log.add({"agent_steps": np.array([1, 3, 4])}, ended)
    then = log.add({"agent_steps": np.array([5])}, Episodes.none())
    assert [line["env_steps"] for line in (*first, *then)] == [10, 25, 35, 45]


def test_a_line_holds_means_over_its_learnings() -> None:
    log = MetricsLog(window=2, cycle_steps=10)
    told = {"agent_steps": np.array([5, 10, 15]), "loss": np.array([1.0, 2.0, 7.0], np.float32)}
    assert log.add(told, Episodes.none()) == [{"env_steps": 100, "agent_steps": 10, "learnings": 2, "loss": 1.5}]
    assert log.finish() == [{"env_steps": 150, "agent_steps": 15, "learnings": 1, "loss": 7.0}]
    assert log.finish() == []
    assert metrics_lines(log.columns)[1]["loss"] == 7.0
    assert {name: each.dtype for name, each in log.columns.items()} == {
        "env_steps": np.int64,
        "agent_steps": np.int64,
        "learnings": np.int64,
        "loss": np.float64,
    }


def test_means_are_computed_in_float64_and_told_with_the_digits_of_float32() -> None:
    log = MetricsLog(window=1000, cycle_steps=1)
    numbers = np.full(1000, 0.1, np.float32)
    (line,) = log.add({"agent_steps": np.arange(1, 1001), "loss": numbers}, Episodes.none())
    assert line["loss"] == 0.1
    (line,) = log.add({"agent_steps": np.arange(1, 1001), "loss": numbers * np.float32(1e-20)}, Episodes.none())
    assert line["loss"] == 1e-21


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_json_cannot_say_is_null(number: float) -> None:
    log = MetricsLog(window=2, cycle_steps=1)
    log.add({"agent_steps": np.array([1, 2]), "loss": np.array([1, number], np.float32)}, Episodes.none())

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    line = json.loads(metrics_text(log.columns), parse_constant=refuse)
    assert line["loss"] is None
    assert line["learnings"] == 2
    assert np.isnan(metrics_columns([line])["loss"]).all()
    assert metrics_text(metrics_columns([line])) == metrics_text(log.columns)


def test_a_run_that_never_learned_has_no_lines() -> None:
    log = MetricsLog(window=2, cycle_steps=1)
    assert log.add({}, Episodes.none()) == log.finish() == []
    assert (metrics_text(log.columns), metrics_columns([])) == ("", {})
    log.resume(log.arrays())
    assert log.finish() == []


@given(st.integers(1, 10**10), st.integers(1, 100), st.integers(1, 10**6))
def test_a_run_has_about_a_thousand_lines_at_most(env_steps: int, cycle_steps: int, period: int) -> None:
    window = updates_per_line(env_steps, cycle_steps, period)
    learnings = env_steps / cycle_steps / period
    assert window >= 1
    assert learnings / window <= LINES * (1 + 1e-12)
    assert window == 1 or learnings / (window - 1) > LINES * (1 - 1e-12)
