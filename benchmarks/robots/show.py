"""What the arms of each task have so far: python -m benchmarks.robots.show [OUT ...].

Without a folder it shows the committed results; with folders, the rows that came back there. Scores are relative to
what the shipped values gain over untrained policies at the shipped cycle time, as `judge.py` has it: 0 is learning
nothing, 1 is what Playground's own setting has.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from benchmarks.robots.judge import Judgement, Measure
from benchmarks.robots.merge import RESULTS
from benchmarks.robots.rows import read_rows
from benchmarks.robots.trial import read_trial
from cycletime.rules.hyperparameters import align_columns

HEAD = ("dt", "arm", "seeds", "score", "at the end", "lost to falls")


def relative_scores(judgement: Judgement, task: str, dt_ms: float, arm: str, measure: Measure = "score") -> list[float]:
    """An arm's relative scores, one for each seed; none where the shipped values were not run or gained nothing."""
    scale, runs = judgement.scale(task, measure), judgement.runs(task, dt_ms, arm).values()
    if scale is None or not runs:
        return []
    start = judgement.untrained(task, dt_ms)
    return [((row["start"] if row[measure] is None else row[measure]) - start) / scale for row in runs]


def lines_of(judgement: Judgement, task: str) -> Iterator[tuple[str, ...]]:
    """A line for each cycle time and arm of a task that has a run."""
    settings = [setting for setting in judgement.trial.settings.values() if setting.task == task]
    for setting in sorted(settings, key=lambda setting: setting.dt_ms):
        for arm in setting.arms:
            if runs := judgement.runs(task, setting.dt_ms, arm):
                place = judgement, task, setting.dt_ms, arm
                scores = relative_scores(*place, "score"), relative_scores(*place, "final")
                falls = fmean(1.0 if row["fallen"] is None else row["fallen"] for row in runs.values())
                seeds = ", ".join(map(str, sorted(runs)))
                numbers = (f"{fmean(each):.2f}" if each else "-" for each in scores)
                yield f"{setting.dt_ms:g} ms", arm, seeds, *numbers, f"{falls:.0%}"


def table_of(judgement: Judgement) -> str:
    """All tasks that have a run."""
    found = []
    for task in judgement.trial.tasks:
        if lines := list(lines_of(judgement, task)):
            interval_s = next(each.interval_s for each in judgement.trial.settings.values() if each.task == task)
            intervals = judgement.rows.budget_intervals(task) or 0
            found.append(f"{task}, {interval_s * intervals:,.0f} simulated seconds a run")
            found += [f"  {line}" for line in align_columns([HEAD, *lines], underlined=False)]
    return "\n".join(found) or "There are no runs yet."


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", help="with a rows.jsonl in each")
    parser.add_argument("--rehearsal", action="store_true", help="show the rows of a rehearsal, and no others")
    asked = parser.parse_args()
    files = [folder / "rows.jsonl" for folder in asked.folders or [RESULTS]]
    missing = [str(file) for file in files if not file.exists()]
    if missing:
        print(f"There is no {', '.join(missing)}.", file=sys.stderr)
        return 1
    print(table_of(Judgement(read_trial(), read_rows(files, rehearsal=asked.rehearsal))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
