"""What the trial says, by criteria that were fixed before its runs: python -m benchmarks.robots.judge.

- **A normalised score** is (J - J0) / (J1 - J01): J is a run's mean return per second over learning (or at the end), J0
  that of untrained policies at the same cycle time, J1 the mean of the shipped values at the shipped cycle time, J01
  that of untrained policies there. 0 is learning nothing, 1 is what the shipped values have. It is cut off at -1 and 2.
- **A task** counts in a direction if each of its three arms has a run there with a seed that all of them have, and if
  J1 > J01. Its difference between two arms is the mean over those seeds.
- **The unit of inference is the task**: Student's t of the tasks' differences, two-sided. The four primary comparisons
  are corrected together by Holm's method, at 5 %.
- **Equal for practical purposes** are two arms whose 95 % interval lies within -0.05 and 0.05.
- **The default** of `transfer` for PPO with many environments becomes 'horizons' if at least 8 tasks count, 5 of them
  robots, 'horizons' is better than 'dt-aware' at shorter cycle times, and nothing speaks against it (`objections`).
- **Keeping everything** is recommended for a direction in which the carried values are worse.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from benchmarks.robots.merge import RESULTS
from benchmarks.robots.rows import Rows, read_rows
from benchmarks.robots.trial import SHIPPED, Trial, read_trial
from cycletime.statistics import Comparison, compare, holm

Direction = Literal["shorter", "longer"]
Measure = Literal["score", "final"]
PRIMARY: tuple[tuple[Direction, str, str], ...] = (
    ("shorter", "horizons", "kept"),
    ("shorter", "horizons", "dt-aware"),
    ("shorter", "dt-aware", "kept"),
    ("longer", "horizons", "kept"),
)
ARMS = ("kept", "dt-aware", "horizons")
LOWEST, HIGHEST = -1.0, 2.0
EQUAL_WITHIN = 0.05
FEWEST_TASKS, FEWEST_ROBOTS, FEWEST_OF_A_KIND = 8, 5, 3
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Judgement:
    """The trial and what came of it."""

    trial: Trial
    rows: Rows

    def runs(self, task: str, dt_ms: float, arm: str) -> dict[int, dict[str, Any]]:
        """By seed, the runs that count for an arm; of a run that was trained twice the first."""
        found: dict[int, dict[str, Any]] = {}
        for row in sorted(self.rows.runs, key=lambda row: str(row["started"])):
            here = row["task"] == task and row["dt_ms"] == dt_ms and arm in row["arms"]
            if here and "budget_intervals" not in row:
                found.setdefault(row["seed"], row)
        return found

    def untrained(self, task: str, dt_ms: float) -> float:
        """Return per second of policies before training."""
        here = [row for row in self.rows.runs if row["task"] == task and row["dt_ms"] == dt_ms]
        return fmean(row["start"] for row in here if row["start"] is not None)

    def dt_ms(self, task: str, direction: Direction) -> float:
        """The task's shorter or longer cycle time."""
        return self.trial.tasks[task].cycle_times_ms[0 if direction == "shorter" else 2]

    def scale(self, task: str, measure: Measure) -> float | None:
        """What the shipped values gain over untrained policies; None if they were not run or gain nothing."""
        own_ms = self.trial.tasks[task].own_ms
        shipped = self.runs(task, own_ms, SHIPPED)
        if not shipped:
            return None
        gain = fmean(_value(row, measure) for row in shipped.values()) - self.untrained(task, own_ms)
        return gain if gain > 0 else None

    def seeds(self, task: str, direction: Direction) -> list[int]:
        """Seeds that all three arms have."""
        dt_ms = self.dt_ms(task, direction)
        return sorted(set.intersection(*(set(self.runs(task, dt_ms, arm)) for arm in ARMS)))

    def tasks(self, direction: Direction) -> list[str]:
        """The tasks that count in a direction."""
        return [task for task in self.trial.tasks if self.seeds(task, direction) and self.scale(task, "score")]

    def normalised(self, task: str, direction: Direction, arm: str, measure: Measure = "score") -> float:
        """An arm's normalised score on a task, over the seeds that all arms have."""
        dt_ms, scale = self.dt_ms(task, direction), self.scale(task, measure)
        start = self.untrained(task, dt_ms)
        of_arm = self.runs(task, dt_ms, arm)
        if scale is None:
            return 0.0
        scores = [(_value(of_arm[seed], measure) - start) / scale for seed in self.seeds(task, direction)]
        return fmean(min(max(score, LOWEST), HIGHEST) for score in scores)

    def fallen(self, task: str, direction: Direction, arm: str) -> float:
        """The part of episodes that is lost since they end early, at the end of learning."""
        of_arm = self.runs(task, self.dt_ms(task, direction), arm)
        return fmean(1.0 if of_arm[seed]["final_fallen"] is None else of_arm[seed]["final_fallen"]
                     for seed in self.seeds(task, direction))  # fmt: skip

    def comparison(
        self, direction: Direction, arm: str, than: str, measure: Measure = "score", kind: str | None = None
    ) -> Comparison | None:
        """What an arm has more than another, over tasks; None with fewer than two."""
        tasks = [task for task in self.tasks(direction) if kind is None or self.trial.tasks[task].kind == kind]
        if len(tasks) < 2:
            return None
        x, y = ([self.normalised(task, direction, each, measure) for task in tasks] for each in (arm, than))
        return compare(x, y, confidence=CONFIDENCE, paired=True)

    def primary(self) -> dict[str, Comparison]:
        """The comparisons that decide, corrected together."""
        found = {f"{arm} - {than}, {to}": self.comparison(to, arm, than) for to, arm, than in PRIMARY}
        return holm({name: each for name, each in found.items() if each is not None}, comparisons=len(PRIMARY))

    def objections(self) -> Iterator[str]:
        """What speaks against 'horizons' as the default for many environments."""
        tasks = self.tasks("shorter")
        robots = [task for task in tasks if self.trial.tasks[task].kind != "dm_control"]
        if len(tasks) < FEWEST_TASKS or len(robots) < FEWEST_ROBOTS:
            counted = f"{len(tasks)} tasks count, {len(robots)} of them robots"
            yield f"{counted}: {FEWEST_TASKS} and {FEWEST_ROBOTS} are needed"
            return
        primary = self.primary()
        if primary["horizons - dt-aware, shorter"].verdict != "better":
            yield "at shorter cycle times it is not better than dt-aware"
        if primary["horizons - kept, shorter"].verdict == "worse":
            yield "at shorter cycle times it is worse than keeping everything"
        at_the_end = self.comparison("shorter", "horizons", "dt-aware", "final")
        if at_the_end is not None and at_the_end.verdict == "worse":
            yield "at the end of learning it is worse than dt-aware"
        falls = compare(*([self.fallen(task, "shorter", arm) for task in robots] for arm in ("horizons", "dt-aware")),
                        paired=True)  # fmt: skip
        if falls.verdict == "better":  # more of them
            yield "robots fall more often than with dt-aware"
        for kind in dict.fromkeys(task.kind for task in self.trial.tasks.values()):
            of_kind = self.comparison("shorter", "horizons", "dt-aware", kind=kind)
            if of_kind is not None and of_kind.difference.n >= FEWEST_OF_A_KIND and of_kind.verdict == "worse":
                yield f"on tasks of the kind '{kind}' it is worse than dt-aware"

    def recommended(self) -> Mapping[Direction, str]:
        """The rule that `transfer` gives for PPO with many environments, by direction."""
        carried = "dt-aware" if any(self.objections()) else "horizons"
        primary = self.primary()
        deciding: Mapping[Direction, str] = {
            "shorter": f"{carried} - kept, shorter",
            "longer": "horizons - kept, longer",
        }
        worse = {to for to, name in deciding.items() if name in primary and primary[name].verdict == "worse"}
        return {to: "baseline" if to in worse else carried for to in deciding}


def detectable(tasks: int, alpha: float, power: float = 0.8) -> float:
    """The difference that is found with this probability, in standard deviations of the tasks' differences."""
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    critical = t.ppf(1 - alpha / 2, tasks - 1)
    return float(brentq(lambda d: nct.sf(critical, tasks - 1, d * tasks**0.5) - power, 0.3, 2.2))


def verdict_of(comparison: Comparison) -> str:
    """A comparison's verdict in words."""
    low, high = comparison.difference.low, comparison.difference.high
    if comparison.verdict == "not decided by the data" and low is not None and high is not None:
        return "equal for practical purposes" if low > -EQUAL_WITHIN and high < EQUAL_WITHIN else "not decided"
    return comparison.verdict


def _value(row: Mapping[str, Any], measure: Measure) -> float:
    value = row[measure]
    return float(row["start"] if value is None else value)


def main() -> int:
    """Print the verdicts."""
    master = RESULTS / "rows.jsonl"
    if not master.exists():
        print("There are no results yet.")
        return 1
    judgement = Judgement(read_trial(), read_rows([master]))
    for name, comparison in judgement.primary().items():
        print(f"{name}: {comparison.difference}, p = {comparison.p_value:.3g}: {verdict_of(comparison)}")
    for direction, rule in judgement.recommended().items():
        print(f"Recommended for {direction} cycle times: {rule}")
    for objection in judgement.objections():
        print(f"Against horizons as the default: {objection}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
