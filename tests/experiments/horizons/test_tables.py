"""Tables of the page, from made-up results whose numbers are known."""

from cycletime.experiments.horizons import page
from cycletime.experiments.horizons.candidates import SEARCH, TRIAL
from cycletime.experiments.horizons.results import Evidence
from cycletime.experiments.horizons.verdicts import judged_predictions
from tests.experiments.horizons.made import BEST_S
from tests.experiments.horizons.markdown import cells_of


def test_the_best_horizons_are_those_that_tuning_found(evidence: Evidence) -> None:
    _, rows = cells_of(page.best_horizons_table(evidence))
    assert [row[:2] for row in rows[::2]] == [[task, "discount"] for task in (*SEARCH.tasks, *TRIAL.tasks)]
    for task, words, _, *found in rows:
        best = BEST_S[task][words == "trace"]
        assert found == [f"{best:.2g} s"] * 5


def test_measures_are_told_with_their_intervals(evidence: Evidence) -> None:
    comparison = evidence.search
    _, (row,) = cells_of(page.measures_table(comparison, ["scaled"]))
    found = comparison.interval("scaled", "untuned", "worst")
    assert row[0] == "`scaled`"
    assert row[4] == f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
    _, (row,) = cells_of(page.measures_table(evidence.trial, ["scaled"]))
    over = evidence.trial.over_tasks("scaled", "tuned", "average")
    assert row[1].endswith(f"; [{over.low:.2f}, {over.high:.2f}]")


def test_every_task_has_a_column_and_every_rule_a_row_for_each_kind(evidence: Evidence) -> None:
    _, rows = cells_of(page.task_table(evidence.trial))
    assert len(rows) == 2 * len(evidence.trial.rules)
    assert {len(row) for row in rows} == {2 + len(TRIAL.tasks)}


def test_verdicts_and_predictions_are_those_of_the_trial(evidence: Evidence) -> None:
    trial = evidence.trial
    assert [row[:2] for row in cells_of(page.verdicts_table(trial))[1]] == [
        [f"`{name}`", f"**{trial.verdict(name)}**"] for name in trial.judged
    ]
    _, told = cells_of(page.predictions_table(evidence))
    for name, row in zip(trial.judged, told, strict=True):
        became = list(judged_predictions(trial, evidence.predictions, name).values())
        assert [int(number) for number in row[1:4]] == [
            became.count(word) for word in ("held", "refuted", "not decided")
        ]
    assert len(cells_of(page.default_table(trial))[1]) == 4 + len(TRIAL.tasks)


def test_every_study_is_told_where_it_comes_from(evidence: Evidence) -> None:
    _, rows = cells_of(page.provenance_table(evidence.outcomes))
    assert len(rows) == 12
    assert rows[0] == ["tuning-reacher", "420", "6,000,000", "`cycletime experiment pack horizons`", "1", "none", "1 s"]
