"""What is committed fits together: the frozen list, the verdicts, the page and the rule follow from the results."""

import re
import tomllib
from pathlib import Path

import pytest

from cycletime.experiments.horizons import ranking
from cycletime.experiments.horizons.candidates import ALGORITHM_SPECS, TASK_SETS
from cycletime.experiments.horizons.page import fill_page
from cycletime.experiments.horizons.preregistration import (
    chosen_candidates,
    predictions,
    preregistered_rules,
    preregistration_file,
)
from cycletime.experiments.horizons.results import Evidence, read_horizons_results

ROOT = Path(__file__).parents[3]
RESULTS, PAGE = ROOT / "results" / "horizons", ROOT / "docs" / "horizons.md"
RESAMPLES = ranking.RESAMPLES


def _tried(algorithm: str) -> bool:
    task_set = TASK_SETS[algorithm]["trial"]
    return all((RESULTS / f"{task_set.study_name(task)}.npz").exists() for task in task_set.tasks)


OTHERWISE = {"ppo": "dt-aware", "sac": "tuned-scaled"}
"""By algorithm, the rule that is the default unless a trial says otherwise."""
KEPT = {
    algorithm: Evidence(read_horizons_results(RESULTS), spec.algorithm) for algorithm, spec in ALGORITHM_SPECS.items()
}
FROZEN = [algorithm for algorithm, kept in KEPT.items() if (RESULTS / preregistration_file(kept.spec)).exists()]
TRIED = [algorithm for algorithm in ALGORITHM_SPECS if _tried(algorithm)]


@pytest.fixture(autouse=True)
def all_draws(few_draws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del few_draws
    monkeypatch.setattr(ranking, "RESAMPLES", RESAMPLES)


@pytest.mark.parametrize("algorithm", FROZEN)
def test_the_list_was_frozen_by_its_criteria(algorithm: str) -> None:
    search = KEPT[algorithm].search
    told = tomllib.loads((RESULTS / preregistration_file(search.spec)).read_text())
    assert {name: each["chosen"] for name, each in told["predictions"].items()} == chosen_candidates(search)
    for name in told["predictions"]:
        for key, predicted in predictions(search, name):
            assert told["predictions"][name][key]["predicted"] == predicted["predicted"]


def test_nothing_is_tried_before_the_list_is_frozen() -> None:
    assert set(TRIED) <= set(FROZEN)


def test_the_page_s_tables_are_those_of_the_results() -> None:
    text = PAGE.read_text()
    assert fill_page(text, list(KEPT.values())) == text


@pytest.mark.parametrize("algorithm", TRIED)
def test_the_rule_with_the_name_is_the_winner(algorithm: str) -> None:
    kept = KEPT[algorithm]
    assert kept.spec.usual.rules["horizons"].laws == preregistered_rules(RESULTS, kept.spec)[kept.trial.winner].laws


@pytest.mark.parametrize("algorithm", ALGORITHM_SPECS)
def test_the_default_is_what_the_trial_says(algorithm: str) -> None:
    changes = algorithm in TRIED and KEPT[algorithm].trial.changes_default
    default = KEPT[algorithm].spec.usual.default_rule
    assert default == ("horizons" if changes else OTHERWISE[algorithm])


def test_the_page_s_figures_are_there() -> None:
    for target in re.findall(r"\]\((figures/horizons/[^)]+)\)", PAGE.read_text()):
        assert (PAGE.parent / target).exists()
