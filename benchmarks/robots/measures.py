"""What is measured of a run, and how a budget follows from a run at the shipped cycle time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, isfinite, sqrt
from typing import Any

from benchmarks.robots.trial import Task

LEARNED_PART = 0.8
BUDGET_FACTOR = 1.5
STANDARD_ERRORS = 5


def rate_of(task: Task, dt_s: float, episode_steps: int, metrics: Mapping[str, Any]) -> float:
    """Return per second of a full episode, of the policy that was evaluated.

    Where a task multiplies its reward by dt, the sum over an episode is an integral over time already; where it pays in
    each step, it is multiplied by dt here. `Task.measured_by` names terms that are used in place of the reward.
    """
    episode_s = episode_steps * dt_s
    if task.measured_by:
        return sum(float(metrics[f"eval/episode_{term}"]) for term in task.measured_by) * dt_s / episode_s
    total = float(metrics["eval/episode_reward"])
    return total / episode_s if task.reward == "per second" else total * dt_s / episode_s


def over_learning(rates: Sequence[float | None]) -> float | None:
    """Mean of a learning curve over time, by the trapezoid rule; evaluations are equally far apart.

    An evaluation without a finite return counts as the untrained policy, which is the first.
    """
    filled = _filled(rates)
    if filled is None or len(filled) < 2:
        return None
    return (sum(filled) - (filled[0] + filled[-1]) / 2) / (len(filled) - 1)


def at_the_end(rates: Sequence[float | None]) -> float | None:
    """Mean of the last fifth of the evaluations, of two at least."""
    filled = _filled(rates)
    if filled is None or len(filled) < 3:
        return None
    last = filled[-max(2, ceil((len(filled) - 1) / 5)) :]
    return sum(last) / len(last)


def budget_intervals(rates: Sequence[float], first_std: float, eval_envs: int, fewest: int) -> int | None:
    """How many intervals the runs of a task last, by its run at the shipped cycle time; None: it is left out.

    1.5 times the first time at which 0.8 of the best improvement over the untrained policy was reached; not less than
    `fewest` intervals, nor more than that run had. A task is left out if the best evaluation is less than five standard
    errors of the first one above it.
    """
    finite = [rate for rate in rates if isfinite(rate)]
    if len(finite) < 2:
        return None
    start, best = rates[0], max(finite[1:])
    if not best - start > STANDARD_ERRORS * first_std / sqrt(eval_envs):
        return None
    wanted = start + LEARNED_PART * (best - start)
    reached = next(index for index, rate in enumerate(rates) if index and rate >= wanted)
    return max(fewest, min(ceil(BUDGET_FACTOR * reached), len(rates) - 1))


def _filled(rates: Sequence[float | None]) -> list[float] | None:
    if not rates or rates[0] is None or not isfinite(rates[0]):
        return None
    return [rates[0] if rate is None or not isfinite(rate) else rate for rate in rates]
