"""What the page says of results: of those that are committed, and of made-up ones whose verdicts are known."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from benchmarks.robots import page
from benchmarks.robots.judge import Judgement
from benchmarks.robots.merge import RESULTS
from benchmarks.robots.rows import Rows, read_rows
from benchmarks.robots.trial import read_trial
from cycletime.errors import InputError
from cycletime.experiments.page_parts import read_page
from cycletime.reports.drawing import draw_figure
from tests.robots_trial.test_judge import BETTER, TRIAL, rows_of

WHOLE = {"device": "NVIDIA H200", "wall_s": 36.0, "fallen": 0.1}


def judged(scores: dict[str, float], tasks: int = 10) -> Judgement:
    rows = rows_of(scores, tasks)
    return Judgement(TRIAL, Rows([{**run, **WHOLE} for run in rows.runs]))


def test_the_pages_are_as_the_committed_results_make_them() -> None:
    texts = [read_page(file) for file in (page.PAGE, RESULTS / "README.md")]
    judgement = Judgement(read_trial(), read_rows([RESULTS / "rows.jsonl"]))
    assert [page.filled(text, judgement) for text in texts] == texts
    assert {name for name in page.PARTS if f"<!-- made: {name} -->" in "".join(texts)} == set(page.PARTS)


def test_verdicts_have_the_numbers_of_a_paired_t_test() -> None:
    judgement = judged(BETTER)
    line = page.verdicts_table(judgement).splitlines()[2].split(" | ")
    x, y = (
        np.array([judgement.normalised(task, "shorter", arm) for task in judgement.tasks("shorter")])
        for arm in ("horizons", "kept")
    )
    interval = ttest_rel(x, y).confidence_interval()
    assert line[1:4] == [
        "`horizons` minus `kept`", "10", f"{(x - y).mean():.2f} [{interval.low:.2f}, {interval.high:.2f}]",
    ]  # fmt: skip
    assert line[-1] == "better |"


def test_what_follows_for_the_default() -> None:
    assert page.default_text(judged(BETTER)) == (
        "By the criteria the default is at shorter cycle times `horizons` and at longer cycle times `horizons`."
    )
    assert "Against `horizons`: at shorter cycle times it is not better than dt-aware" in page.default_text(
        judged({**BETTER, "horizons": 0.7})
    )
    assert page.default_text(judged(BETTER, tasks=3)) == "The default of `transfer` does not change yet."
    assert page.verdicts_table(judged(BETTER, tasks=1)).startswith("None of the 4 comparisons")


def test_what_is_not_run_is_named() -> None:
    text = page.missing_text(judged(BETTER, tasks=14))
    assert text.endswith("all of AlohaHandOver, BerkeleyHumanoidJoystickFlatTerrain, WalkerWalk.")
    assert text.startswith("Planned and not run: of Go1JoystickFlatTerrain")
    assert "all of the 17 other tasks" in page.missing_text(Judgement(TRIAL, Rows()))
    every = [{"key": run.key, "task": TRIAL.task_of(run).name} for run in TRIAL.runs]
    assert page.missing_text(Judgement(TRIAL, Rows(every))) == "All that was planned is run."


def test_the_figure_has_a_panel_for_each_task_and_its_arms() -> None:
    spec = page.figure_of(judged(BETTER, tasks=6))
    assert [panel.title for panel in spec.panels] == list(TRIAL.tasks)[:6]
    line = next(each for each in spec.panels[1].lines if each.name == "kept")
    assert [float(np.mean(spec.cells[name].scores)) for name in line.cells if name] == pytest.approx(
        [0.5, 1.0, 0.6], abs=0.03
    )
    assert len(draw_figure(spec).axes) >= 6


def test_the_command_writes_page_and_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "page.md"
    file.write_text("Before.\n\n<!-- made: default -->\nold\n<!-- end -->\n")
    monkeypatch.setattr("sys.argv", ["page", "--pages", str(file), "--figures", str(tmp_path)])
    assert page.main() == 0
    assert "old" not in file.read_text()
    assert (tmp_path / "scores.png").stat().st_size > 1000
    with pytest.raises(InputError, match="The page has a part 'nothing'"):
        page.filled("<!-- made: nothing -->\n<!-- end -->", judged(BETTER))


def test_runs_that_fix_budgets_are_counted_apart() -> None:
    """As the notebook counts, whose runs are those that are compared."""
    judgement = Judgement(TRIAL, read_rows([RESULTS / "rows.jsonl"]))
    planned = {run.key: run.stage == "budget" for run in TRIAL.runs}
    budgets = [planned[key] for key in judgement.rows.finished()]
    counted = f"{budgets.count(False)} of 410 planned runs and {budgets.count(True)} of 17 budget runs are made ("
    assert page.counts_text(judgement).startswith(counted)


def test_the_page_tells_how_long_budget_runs_took_after_their_first_interval() -> None:
    text = page.budgets_table(Judgement(TRIAL, read_rows([RESULTS / "rows.jsonl"])))
    assert "| CartpoleSwingup | 12 | 300 s | 5 |\n| PandaPickCube | 4 | 342 s | 5 |" in text
