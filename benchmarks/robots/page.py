"""Make anew what the trial's two pages say of the results, and the figure: python -m benchmarks.robots.page.

Verdicts are `judge.py`'s; this only says them. It takes a few seconds, and no GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.robots.judge import ARMS, FEWEST_ROBOTS, FEWEST_TASKS, PRIMARY, Judgement, verdict_of
from benchmarks.robots.merge import RESULTS
from benchmarks.robots.rows import read_rows
from benchmarks.robots.show import relative_scores, table_of
from benchmarks.robots.trial import BUDGET, HERE, SHIPPED, Task, read_trial
from cycletime.experiments.page_parts import PagePart, fill_parts, read_page
from cycletime.reports.drawing import draw_figure, save_figures
from cycletime.reports.figure import COLOURS, CYCLE_TIME, MARKERS, FigureCell, FigureSpec, LineSpec, PanelSpec
from cycletime.reports.page.document import write_text

PAGE = HERE.parent.parent / "docs" / "robots-trial.md"
FIGURES = Path("figures", "robots")
NAME = "scores"
MOST_NAMED = 5
COMMAND = "python -m benchmarks.robots.page"


def counts_text(judgement: Judgement) -> str:
    """How much of the plan there is, and what failed."""
    rows, trial = judgement.rows, judgement.trial
    keys = [{run.key for run in trial.runs if (run.stage == BUDGET) == is_budget} for is_budget in (False, True)]
    planned, budgets = (f"{len(rows.finished() & each)} of {len(each)}" for each in keys)
    hours = sum(row["wall_s"] for row in rows.runs) / 3600
    devices = ", ".join(sorted({row["device"] for row in rows.runs})) or "no machine"
    shorter, longer = len(judgement.tasks("shorter")), len(judgement.tasks("longer"))
    failed = "; ".join(f"{each['key']}: {each['message']}" for each in rows.failures) or "none"
    return (
        f"{planned} planned runs and {budgets} budget runs are made ({hours:.1f} hours, several side by side; "
        f"{devices}). "
        f"Of {len(trial.tasks)} tasks {shorter} can be judged at shorter cycle times and {longer} at longer ones; it "
        f"takes {FEWEST_TASKS}, {FEWEST_ROBOTS} of them robots, to change the default. Failures: {failed}."
    )


def budgets_table(judgement: Judgement) -> str:
    """The run of each task that says how long its others last."""
    runs = sorted((run for run in judgement.rows.runs if run["stage"] == BUDGET), key=lambda run: str(run["started"]))
    lines = []
    for run in runs:
        _, first, *_, last = run["curve"]["wall_s"]
        lasts = run["budget_intervals"]
        lines.append((run["task"], str(run["intervals"]), f"{last - first:.0f} s", str(lasts or "left out")))
    return _markdown(("task", "intervals of its budget run", "from the first on", "of its other runs"), lines)


def verdicts_table(judgement: Judgement) -> str:
    """The four comparisons that decide."""
    found, lines = judgement.primary(), []
    if not found:
        return f"None of the {len(PRIMARY)} comparisons can be made before two tasks count."
    for direction, arm, than in PRIMARY:
        name = f"{arm} - {than}, {direction}"
        if name in found:
            each = found[name]
            low, high = each.difference.low, each.difference.high
            assert low is not None
            assert high is not None
            numbers = f"{each.difference.value:.2f} [{low:.2f}, {high:.2f}]", f"{each.p_value:.2g}", verdict_of(each)
        else:
            numbers = "-", "-", "not decided"
        lines.append((direction, f"`{arm}` minus `{than}`", str(len(judgement.tasks(direction))), *numbers))
    return _markdown(("cycle times", "difference", "tasks", "mean [95 %]", "p, Holm", "verdict"), lines)


def default_text(judgement: Judgement) -> str:
    """What follows for the default, by the criteria."""
    objections = list(judgement.objections())
    if any("are needed" in each for each in objections):
        return "The default of `transfer` does not change yet."
    said = [f"at {direction} cycle times `{rule}`" for direction, rule in judgement.recommended().items()]
    against = f" Against `horizons`: {'; '.join(objections)}." if objections else ""
    return f"By the criteria the default is {' and '.join(said)}.{against}"


def missing_text(judgement: Judgement) -> str:
    """What was planned and not run, by task."""
    finished, untouched, parts = judgement.rows.finished(), [], []
    for task in judgement.trial.tasks.values():
        planned = [run for run in judgement.trial.runs if judgement.trial.task_of(run) is task and run.stage != BUDGET]
        left = sum(run.key not in finished for run in planned)
        if judgement.rows.left_out(task.name):
            parts.append(f"{task.name} is left out, since nothing was learned at its own cycle time")
        elif left == len(planned):
            untouched.append(task.name)
        elif left:
            parts.append(f"of {task.name} {left} of {len(planned)}")
    if untouched:
        names = ", ".join(untouched) if len(untouched) <= MOST_NAMED else f"the {len(untouched)} other tasks"
        parts.append(f"all of {names}")
    return f"Planned and not run: {'; '.join(parts)}." if parts else "All that was planned is run."


def figure_of(judgement: Judgement) -> FigureSpec:
    """Scores of the three main arms against the cycle time, a panel for each task that counts in a direction."""
    cells: dict[str, FigureCell] = {}
    counting = {*judgement.tasks("shorter"), *judgement.tasks("longer")}
    tasks = [task for task in judgement.trial.tasks.values() if task.name in counting]

    def line(task: Task, index: int, arm: str) -> LineSpec:
        names: list[str | None] = []
        for dt_ms in task.cycle_times_ms:
            own = SHIPPED if dt_ms == task.own_ms else arm
            scores = relative_scores(judgement, task.name, dt_ms, own)
            name = f"{task.name}/{dt_ms:g}/{arm}"
            if scores:
                cells[name] = FigureCell(scores)
            names.append(name if scores else None)
        return LineSpec(arm, tuple(names), COLOURS[index], marker=MARKERS[index])

    panels = [
        PanelSpec(task.name, tuple(line(task, *each) for each in enumerate(ARMS)), task.cycle_times_ms)
        for task in tasks
    ]
    return FigureSpec(
        name=NAME,
        title="Robots' trial: score over learning against the cycle time",
        kind="points",
        panels=tuple(panels),
        cells=cells,
        caption="0 is learning nothing, 1 what Playground's own values have at its own cycle time (middle), which all "
        f"arms share. Means ± one standard error over {_seeds(cells.values())} seeds. Data: brax's PPO on MuJoCo "
        "Playground (MJX).",
        y_label="relative score",
        x_label=CYCLE_TIME,
        command=COMMAND,
        bars=True,
    )


def _seeds(cells: Iterable[FigureCell]) -> str:
    counts = sorted({len(cell.scores) for cell in cells})
    return " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def _markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


PARTS: Mapping[str, Callable[[Judgement], str]] = {
    "counts": counts_text,
    "arms": lambda judgement: f"```text\n{table_of(judgement)}\n```",
    "budgets": budgets_table,
    "verdicts": verdicts_table,
    "default": default_text,
    "missing": missing_text,
    "figure": lambda judgement: f"![Relative scores against the cycle time]({(FIGURES / f'{NAME}.png').as_posix()})",
}


def filled(text: str, judgement: Judgement) -> str:
    """The page's text with its parts made anew."""
    return fill_parts(text, {name: PagePart("robots", partial(make, judgement)) for name, make in PARTS.items()})


def main() -> int:
    """Write the page and its figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="where rows.jsonl is")
    parser.add_argument("--pages", type=Path, nargs="+", default=[PAGE, RESULTS / "README.md"])
    parser.add_argument("--figures", type=Path, default=PAGE.parent / FIGURES)
    asked = parser.parse_args()
    judgement = Judgement(read_trial(), read_rows([asked.results / "rows.jsonl"]))
    for page in asked.pages:
        write_text(page, filled(read_page(page), judgement))
    save_figures({NAME: draw_figure(figure_of(judgement))}, asked.figures, ("png",))
    return 0


if __name__ == "__main__":
    sys.exit(main())
