"""A robot's run from its journal: a line for each episode, and a summary with histograms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from cycletime.training.journal import Cycles, EpisodeRecord, JournalEntry, summarize_timing

_EDGES_MS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_BAR_WIDTH = 40

_TIMING_LABELS = {
    "wake_error_s": "wake-up error",
    "observation_age_s": "age of observation",
    "act_s": "act",
    "send_s": "send",
    "learn_s": "learn",
}


def episode_line(episode: EpisodeRecord) -> str:
    timing = summarize_timing([episode.cycles])
    late = timing.spreads["wake_error_s"]
    return (
        f"episode {episode.number + 1}: return {episode.undiscounted_return:,.2f} in {episode.agent_steps:,} cycles, "
        f"{1000 * late.mean_s:.2f} ms late on average and {1000 * late.worst_s:.2f} at worst, "
        f"{timing.overruns:,} overruns, {episode.ended_by}"
    )


def summarize_journal(entries: Sequence[JournalEntry], dt_s: float) -> list[str]:
    episodes = [entry.episode for entry in entries]
    cycles = Cycles.joined(episode.cycles for episode in episodes)
    work_s = cycles.act_s + cycles.send_s + cycles.learn_s
    return [
        *_episode_lines(episodes, entries[-1].session),
        "",
        *_timing_lines(cycles),
        "",
        *histogram(f"{_TIMING_LABELS['wake_error_s']}, of {len(cycles):,} cycles", cycles.wake_error_s),
        "",
        *histogram(f"work of a cycle (act, send and learn), of {1000 * dt_s:g} ms", work_s),
    ]


def histogram(title: str, times_s: NDArray[np.float64]) -> list[str]:
    """How many times are up to which length, as bars; from the first that has any to the last."""
    edges = np.array(_EDGES_MS) / 1000
    counts = np.bincount(np.searchsorted(edges, times_s[~np.isnan(times_s)]), minlength=len(edges) + 1)
    if not counts.any():
        return [f"{title}: not told"]
    used = np.flatnonzero(counts)
    names = [*(f"up to {edge:g} ms" for edge in _EDGES_MS), f"above {_EDGES_MS[-1]:g} ms"]
    return [
        title,
        *(
            f"  {names[place]:>14} {'#' * ceil(_BAR_WIDTH * counts[place] / counts.max())} {counts[place]:,}"
            for place in range(used[0], used[-1] + 1)
        ),
    ]


def _episode_lines(episodes: Sequence[EpisodeRecord], sessions: int) -> list[str]:
    returns = [episode.undiscounted_return for episode in episodes]
    best = int(np.argmax(returns))
    ends = Counter(episode.ended_by for episode in episodes)
    by_itself = ("terminated", "truncated")  # others end with a safety mode
    stopped = [str(episode.number + 1) for episode in episodes if episode.ended_by not in by_itself]
    return [
        f"{len(episodes):,} episodes, {sum(each.env_steps for each in episodes):,} environment steps"
        + ("" if sessions == 1 else f", in {sessions} sessions"),
        f"returns: first {returns[0]:,.2f}, last {returns[-1]:,.2f}, "
        f"best {returns[best]:,.2f} (episode {episodes[best].number + 1:,})",
        "ended by: " + ", ".join(f"{why} {count:,}" for why, count in ends.most_common()),
        *([f"cut short: episodes {', '.join(stopped)}"] if stopped else []),
    ]


def _timing_lines(cycles: Cycles) -> list[str]:
    timing = summarize_timing([cycles])
    lines = [f"{'ms':<20}{'mean':>10}{'p99':>10}{'worst':>10}"]
    for name, words in _TIMING_LABELS.items():
        spread = timing.spreads[name]
        values = (1000 * each for each in (spread.mean_s, spread.p99_s, spread.worst_s))
        lines.append(
            f"{words:<20}" + "".join(f"{'-' if value != value else format(value, '.3f'):>10}" for value in values)
        )
    lines.append(f"overruns: {timing.overruns:,} of {timing.cycles:,} cycles ({timing.share_of_overruns:.2%})")
    missed = int(cycles.missed_packages[cycles.missed_packages > 0].sum())
    lines.append(f"lost: {missed:,} packages of the robot, {int(cycles.missed_steps.sum()):,} environment steps")
    return [*lines, *([timing.warning] if timing.warning else [])]
