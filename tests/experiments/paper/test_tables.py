import json

import numpy as np
import pytest
from scipy import stats

from cycletime.experiments.outcome import NotRunError
from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.tables import PUBLISHED_TABLES, tuned_table
from tests.experiments.paper.synthetic import Labels, synthetic_data

BEST = {"4ms": (8000, 50), "8ms": (8000, 25), "16ms": (8000, 50), "32ms": (2000, 12), "64ms": (1000, 12)}
"""Ours: the paper's but for 16 ms."""


def ppo(labels: Labels) -> float:
    """The best choice has 15, the neighbour in mini-batch a little less, others much less; fresh seeds a bit less."""
    batch, minibatch = BEST[labels["dt"]]
    steps = abs(np.log2(labels["batch"] / batch)) + 0.1 * abs(round(np.log2(labels["minibatch"] / minibatch)))
    return float(15 - steps - (0.05 if labels["study"].endswith("-winners") else 0))


@pytest.fixture(scope="module")
def data() -> PaperResults:
    return synthetic_data(ppo, seeds=5, only=("ppo-grid", "ppo-grid-winners"))


def test_winners_stand_beside_the_papers_values(data: PaperResults) -> None:
    rows = tuned_table(data, "ppo-tuned").rows
    assert [row.ours for row in rows] == list(BEST.values())
    assert [row.paper for row in rows] == [(8000, 50), (8000, 25), (4000, 12), (2000, 12), (1000, 12)]
    assert [row.is_same for row in rows] == [True, True, False, True, True]


def test_scores_are_means_of_the_right_runs(data: PaperResults) -> None:
    row = tuned_table(data, "ppo-tuned").rows[2]
    grid, fresh = data.outcome("ppo-grid"), data.outcome("ppo-grid-winners").cell(dt="16ms").scores
    papers = grid.cell(dt="16ms", batch=4000, minibatch=12).scores
    sweep, again, choice = (row.scores[name] for name in ("sweep", "fresh", "papers_choice"))
    assert sweep is not None
    assert again is not None
    assert choice is not None
    assert (sweep.value, again.value, choice.value) == pytest.approx((15.0, 14.95, papers.mean()))
    assert again.high == pytest.approx(14.95 + fresh.std(ddof=1) / 5**0.5)
    assert row.scores["difference"] is not None
    interval = stats.ttest_ind(fresh, papers, equal_var=False).confidence_interval(0.95)
    assert (row.scores["difference"].low, row.scores["difference"].high) == pytest.approx((interval.low, interval.high))


def test_neighbours_that_are_as_good_are_listed(data: PaperResults) -> None:
    table = tuned_table(data, "ppo-tuned")
    assert set(table.rows[2].as_good) == {(8000, 12), (8000, 25), (8000, 100), (8000, 200)}
    assert "Of 24 other choices so many are as good" in table.as_text().replace("\n  ", " ")


def test_markdown_is_a_table_of_about_100_columns(data: PaperResults) -> None:
    title, _, header, rule, *rest = tuned_table(data, "ppo-tuned").as_text().splitlines()
    assert title == "PPO on Reacher, batch b and mini-batch m tuned at each cycle time"
    assert header.split("|")[2:4] == [" paper b, m ", " our b, m "]
    assert set(rule) == {"|", "-", " "}
    assert {len(line) for line in rest[:5]} == {len(header)}
    assert max(map(len, rest)) <= 105
    assert "| same values" in rest[0]
    assert "n = 5 in the sweep, 5 with fresh seeds and 5 with the paper's values" in " ".join(" ".join(rest).split())


def test_json_has_the_same(data: PaperResults) -> None:
    told = json.loads(json.dumps(tuned_table(data, "ppo-tuned").as_json(), allow_nan=False))
    assert told["scale"] == 1
    row = told["rows"][2]
    assert (row["dt_s"], row["paper"], row["ours"]) == (
        0.016,
        {"batch": 4000, "minibatch": 12},
        {"batch": 8000, "minibatch": 50},
    )
    assert row["fresh"]["value"] == pytest.approx(14.95)
    assert len(row["as_good"]) == 4


def test_the_papers_three_digits_of_a_discount_find_the_sweeps_six() -> None:
    data = synthetic_data(lambda labels: float(labels["discount"] == 0.851458), seeds=2, only=["sac-gamma-sweep"])
    table = tuned_table(data, "sac-tuned")
    assert [row.is_same for row in table.rows] == [False, False, True, True, True]
    assert [row.scores["papers_choice"].value for row in table.rows if row.scores["papers_choice"]] == pytest.approx(
        [0, 0, 1, 1, 1]
    )
    assert [row.scores["fresh"] for row in table.rows] == [None] * 5
    text = table.as_text()
    assert "The winners have not been run again with fresh seeds." in text
    assert "| 0.961 " in text
    assert "| 0.851 " in text


def test_scaled_down_tables_are_labelled() -> None:
    table = tuned_table(synthetic_data(lambda _: 1.0, 2, scale=0.01, only=["sac-gamma-sweep"]), "sac-tuned")
    assert table.as_text().splitlines()[0].endswith("(scaled down to 1 % of the environment steps)")
    assert table.as_json()["scale"] == 0.01


def test_what_is_not_there_is_refused(data: PaperResults) -> None:
    with pytest.raises(NotRunError, match="sac-gamma-sweep"):
        tuned_table(data, "sac-tuned")


def test_published_values_are_in_the_sweeps() -> None:
    data = synthetic_data(lambda _: 1.0, 1, only=("ppo-grid", "sac-gamma-sweep"))
    for published in PUBLISHED_TABLES.values():
        for dt, values in published.values.items():
            cells = data.outcome(published.sweep).where(dt=dt)
            tried = np.array([[cell.labels[name] for name in published.short] for cell in cells])
            assert np.isclose(tried, values, rtol=0, atol=6e-4).all(axis=1).sum() == 1
