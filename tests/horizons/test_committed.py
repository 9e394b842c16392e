"""What is committed fits together: the frozen list, the verdicts, the page and the rule follow from the results."""

import re
import tomllib
from pathlib import Path

import pytest

from cycletime.horizons import ranking
from cycletime.horizons.evidence import Evidence, every_evidence
from cycletime.horizons.freezing import file_of, frozen, frozen_rules, predictions
from cycletime.horizons.page import filled
from cycletime.rules import PPO

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "results" / "horizons", ROOT / "docs" / "horizons.md"
RESAMPLES = ranking.RESAMPLES


@pytest.fixture(scope="module")
def kept() -> Evidence:
    return Evidence(RESULTS)


@pytest.fixture(autouse=True)
def all_draws(few_draws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del few_draws
    monkeypatch.setattr(ranking, "RESAMPLES", RESAMPLES)


def test_the_list_was_frozen_by_its_criteria(kept: Evidence) -> None:
    told = tomllib.loads((RESULTS / file_of(kept.subject)).read_text())
    assert {name: each["chosen"] for name, each in told["predictions"].items()} == frozen(kept.search)
    for name in told["predictions"]:
        for key, predicted in predictions(kept.search, name):
            assert told["predictions"][name][key]["predicted"] == predicted["predicted"]


def test_the_page_s_tables_are_those_of_the_results(kept: Evidence) -> None:
    text = PAGE.read_text()
    assert filled(text, every_evidence(RESULTS)) == text


def test_the_rule_with_the_name_is_the_winner(kept: Evidence) -> None:
    assert PPO.rules["horizons"].laws == frozen_rules(RESULTS, kept.subject)[kept.trial.winner].laws


def test_the_default_is_what_the_trial_says(kept: Evidence) -> None:
    assert PPO.default_rule == ("horizons" if kept.trial.changes_default else "dt-aware")


def test_the_page_s_figures_are_there() -> None:
    for target in re.findall(r"\]\((figures/horizons/[^)]+)\)", PAGE.read_text()):
        assert (PAGE.parent / target).exists()
