"""Cycles and episodes with numbers that tests can check by hand."""

from __future__ import annotations

import numpy as np

from cycletime.training.journal import Cycle, Cycles, EpisodeRecord, JournalEntry

NAN = float("nan")


def a_cycle(number: int = 0, *, late_s: float = 0.0001, overrun: bool = False) -> Cycle:
    return Cycle(
        scheduled_s=100 + 0.04 * number,
        wake_error_s=late_s,
        observation_age_s=NAN,
        act_s=0.0004,
        send_s=0.0001,
        learn_s=0.002,
        stale_updates=0,
        missed_steps=int(overrun),
        packages=5,
        missed_packages=int(overrun),
        overrun=overrun,
    )


def an_episode(number: int, rewards: tuple[float, ...] = (1.0, 2.0), ended_by: str = "truncated") -> EpisodeRecord:
    cycles = [a_cycle(place, late_s=0.0001 * (place + 1), overrun=number == 1) for place in range(len(rewards))]
    return EpisodeRecord(
        number=number,
        rows=np.zeros((len(rewards), 3), np.float32),
        length_steps=np.full(len(rewards), 4),
        rewards=np.array(rewards),
        cycles=Cycles.of(cycles),
        ended_by=ended_by,
        run_env_steps=8 * (number + 1),
    )


def entries() -> list[JournalEntry]:
    """Three episodes: one good, one late and stopped, one of a second session."""
    return [
        JournalEntry(an_episode(0), 1),
        JournalEntry(an_episode(1, (5.0, 5.0), "PROTECTIVE_STOP"), 1),
        JournalEntry(an_episode(2, (-1.0, -3.0)), 2),
    ]
