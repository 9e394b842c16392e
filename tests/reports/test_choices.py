import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from scipy import stats

from cycletime.reports import tables as choices_module
from cycletime.reports.output import print_report, report_as_json, report_as_markdown, write_report
from cycletime.reports.report import Report
from cycletime.reports.tables import RankedChoices
from cycletime.studies.study_folder import StudyFolder

MakeStudy = Callable[..., StudyFolder]
POINTS = [{"batch": 100, "discount": 0.9}, {"batch": 200, "discount": 1 / 3}, {"batch": 300, "discount": 0.5}]
KEYS: Mapping[str, Any] = {"points": POINTS, "tuned": {"minibatch": 50}, "rules": [], "dts": ["16ms"]}


def by_batch(scores: Mapping[int, float | str | None]) -> Callable[[Mapping[str, Any], int], float | str | None]:
    """Three seeds around a score with a standard deviation of 1, or what else becomes of them."""

    def score(labels: Mapping[str, Any], seed: int) -> float | str | None:
        come = scores[labels["batch"]]
        return come + (seed - 1) * (1 if labels["batch"] == 200 else -1) if isinstance(come, float) else come

    return score


def choices_of(folder: StudyFolder) -> RankedChoices:
    (choices,) = Report.of(folder).choices
    return choices


def test_points_at_one_cycle_time_are_one_table_with_the_best_first(make_study: MakeStudy) -> None:
    report = Report.of(make_study(by_batch({100: -50.0, 200: 1.0, 300: 0.5}), **KEYS))
    assert not report.summaries
    table = report.choices[0].table("average")
    assert table.title == "reacher, ppo, at 16 ms: 3 choices"
    assert table.header == ("batch", "discount", "score")
    assert tuple(table.rows) == (
        ("200", "0.333333", "1.00 ± 0.58 (3)"),
        ("300", "0.5", "0.50 ± 0.58 (3) undecided"),
        ("100", "0.9", "-50.00 ± 0.58 (3) worse"),
    )
    assert report.choices[0].sentences()[0] == (
        "The best choice is batch 200, discount 0.333333 with a mean of 1.00 ± 0.58 (n = 3); the runner-up is +0.50 "
        "(-4.47 to +5.47, 95 % paired t, n = 3) behind. It is better than 1 of 2 others; for 1 that is not decided "
        "by the data."
    )


def test_the_best_is_compared_as_one_that_the_data_chose(make_study: MakeStudy) -> None:
    choices = choices_of(make_study(by_batch({100: 0.0, 200: 3.0, 300: -3.0}), **KEYS))
    alone = [stats.ttest_rel([2, 3, 4], other).pvalue for other in ([1, 0, -1], [-2, -3, -4])]
    # Of three pairs the smallest p-value counts three times, the next twice.
    assert choices.against[2].p_value == pytest.approx(3 * alone[1])
    assert choices.against[1].p_value == pytest.approx(2 * alone[0])


def test_choices_without_scores_come_last_and_say_why(make_study: MakeStudy) -> None:
    choices = choices_of(make_study(by_batch({100: "astray", 200: 1.0, 300: None}), **KEYS))
    assert [row[-1] for row in choices.table("average").rows] == [
        "1.00 ± 0.58 (3)",
        "- (0, 3 not finite)",
        "- (0 of 3)",
    ]
    assert choices.sentences()[0].endswith("(n = 3); no other has a score.")


def test_nothing_done_says_nothing(make_study: MakeStudy) -> None:
    choices = choices_of(make_study(lambda labels, seed: None, **KEYS))
    assert choices.sentences() == ()
    assert {row[-1] for row in choices.table("average").rows} == {"- (0 of 3)"}


def test_long_tables_end_with_how_many_more_there_are(make_study: MakeStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices_module, "MAX_ROWS", 2)
    table = choices_of(make_study(lambda labels, seed: None, **KEYS)).table("average")
    assert (len(table.rows), table.notes[-1]) == (2, "1 more are in scores.csv.")


def test_they_are_in_all_that_is_written(make_study: MakeStudy, tmp_path: Path) -> None:
    report = Report.of(make_study(by_batch({100: -50.0, 200: 1.0, 300: 0.5}), **KEYS))
    assert "| 200 | 0.333333 | 1.00 ± 0.58 (3) |" in report_as_markdown(report)
    (told,) = report_as_json(report)["choices"]
    assert [each["hyperparameters"]["batch"] for each in told["ranking"]] == [200, 300, 100]
    assert [each["verdict"] for each in told["ranking"]] == [None, "undecided", "worse"]
    out = io.StringIO()
    print_report(report, Console(file=out, width=80))
    assert "The best choice is batch 200" in out.getvalue()
    write_report(report, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "report.html",
        "report.json",
        "report.md",
        "scores.csv",
    ]


def test_choices_at_several_cycle_times_have_tables_of_their_own(make_study: MakeStudy) -> None:
    keys = {**KEYS, "dts": ["16ms", "32ms"]}
    report = Report.of(make_study(by_batch({100: -50.0, 200: 1.0, 300: 0.5}), **keys))
    assert report.choices == ()
    assert [summary.panel.title for summary in report.summaries] == [
        "reacher, ppo, batch 100, discount 0.9",
        "reacher, ppo, batch 200, discount 0.333333",
        "reacher, ppo, batch 300, discount 0.5",
    ]


def test_choices_that_are_each_for_a_cycle_time_are_compared_within_it(make_study: MakeStudy, tmp_path: Path) -> None:
    points = [{"dt": "16ms", "batch": batch} for batch in (100, 200)] + [{"dt": "32ms", "batch": 300}]
    keys = {**KEYS, "points": points, "dts": ["16ms", "32ms"]}
    report = Report.of(make_study(by_batch({100: -50.0, 200: 1.0, 300: 7.0}), **keys))
    (at_16ms,) = report.choices
    assert [panel.hyperparameters["batch"] for panel in at_16ms.panels] == [200, 100]
    (at_32ms,) = report.summaries
    assert [str(dt) for dt in at_32ms.panel.dts] == ["32ms"]
    write_report(report, tmp_path / "report")
