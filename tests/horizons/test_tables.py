"""Tables of the page, from made-up results whose numbers are known."""

from cycletime.horizons import tables
from cycletime.horizons.evidence import Evidence
from cycletime.horizons.fields import SEARCH, TRIAL
from tests.horizons.made import BEST_S


def cells(table: str) -> list[list[str]]:
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert all(len(row) == len(header) for row in rows)
    return rows


def test_the_best_horizons_are_those_that_tuning_found(evidence: Evidence) -> None:
    rows = cells(tables.best_horizons(evidence))
    assert [row[:2] for row in rows[::2]] == [[task, "discount"] for task in (*SEARCH.tasks, *TRIAL.tasks)]
    for task, words, _, *found in rows:
        best = BEST_S[task][words == "trace"]
        assert found == [f"{best:.2g} s"] * 5


def test_measures_are_told_with_their_intervals(evidence: Evidence) -> None:
    comparison = evidence.search
    (row,) = cells(tables.measures(comparison, ["scaled"]))
    found = comparison.interval("scaled", "untuned", "worst")
    assert row[0] == "`scaled`"
    assert row[4] == f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def test_every_task_has_a_column_and_every_rule_a_row_for_each_kind(evidence: Evidence) -> None:
    rows = cells(tables.by_task(evidence.trial.comparison))
    assert len(rows) == 2 * len(evidence.trial.comparison.rules)
    assert {len(row) for row in rows} == {2 + len(TRIAL.tasks)}


def test_verdicts_and_predictions_are_those_of_the_trial(evidence: Evidence) -> None:
    trial = evidence.trial
    assert [row[:2] for row in cells(tables.verdicts(trial))] == [
        [f"`{name}`", f"**{trial.verdict(name)}**"] for name in trial.candidates
    ]
    told = cells(tables.predictions(evidence))
    for name, row in zip(trial.candidates, told, strict=True):
        became = list(trial.of_predictions(evidence.predictions, name).values())
        assert [int(number) for number in row[1:4]] == [
            became.count(word) for word in ("held", "refuted", "not decided")
        ]
    assert len(cells(tables.against_default(trial))) == 4 + len(TRIAL.tasks)


def test_every_study_is_told_where_it_comes_from(evidence: Evidence) -> None:
    rows = cells(tables.origins(evidence.outcomes))
    assert len(rows) == 12
    assert rows[0] == ["tuning-reacher", "420", "6,000,000", "`cycletime horizons pack`", "1", "none", "1 s"]
