"""What is committed fits together: the frozen list, the verdicts, the page and the rule follow from the results."""

import re
import tomllib
from pathlib import Path

import pytest

from cycletime.duration import Duration
from cycletime.experiments.horizons import ranking
from cycletime.experiments.horizons.candidates import ALGORITHM_SPECS, TASK_SETS
from cycletime.experiments.horizons.page import fill_page
from cycletime.experiments.horizons.preregistration import preregistered_rules, preregistration_file
from cycletime.experiments.horizons.results import Evidence
from cycletime.experiments.outcome import read_results
from cycletime.rules import PPO, SAC
from tests.experiments.horizons.freezing import chosen_candidates, predictions

ROOT = Path(__file__).parents[3]
RESULTS, PAGE = ROOT / "results" / "horizons", ROOT / "docs" / "horizons.md"
RESAMPLES = ranking.RESAMPLES


def _tried(algorithm: str) -> bool:
    task_set = TASK_SETS[algorithm]["trial"]
    return all((RESULTS / f"{task_set.study_name(task)}.npz").exists() for task in task_set.tasks)


OTHERWISE_NOW: dict[str, dict[tuple[str, str], tuple[str, str]]] = {
    "ppo": {},
    "sac": {
        ("floor-6-updates", "worst_from_tuned_than_scaled"): ("less", "undecided"),
        ("floor-6", "average_from_tuned_than_baseline"): ("undecided", "more"),
        ("floor-6", "average_from_untuned_than_baseline"): ("undecided", "more"),
        ("floor-6-more-updates", "worst_from_tuned_than_baseline"): ("undecided", "more"),
        ("floor-6-more-updates", "worst_from_untuned_than_baseline"): ("undecided", "more"),
        ("floor-6-more-updates", "worst_from_untuned_than_scaled"): ("undecided", "more"),
    },
}
"""By algorithm, predictions that the measure as it is now would have made otherwise: as frozen, and now."""
VERDICTS = {
    "ppo": {"floor-6": "no worse", "floor-12": "no worse"},
    "sac": {
        "floor-6-more-updates": "no worse",
        "floor-6": "worse",
        "floor-6-updates": "worse",
        "scaled-updates": "worse",
    },
}
OBJECTIONS = {
    "ppo": [
        "the average from untuned values",
        "the worst cycle time from untuned values",
        "the average from tuned values on acrobot",
    ],
    "sac": [],
}
KEPT = {algorithm: Evidence(read_results(RESULTS), spec) for algorithm, spec in ALGORITHM_SPECS.items()}
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
    now = {(name, key): each["predicted"] for name in told["predictions"] for key, each in predictions(search, name)}
    frozen = {place: told["predictions"][place[0]][place[1]]["predicted"] for place in now}
    assert {place: (frozen[place], now[place]) for place in now if now[place] != frozen[place]} == OTHERWISE_NOW[
        algorithm
    ]


@pytest.mark.parametrize(("algorithm", "verdicts"), VERDICTS.items())
def test_the_verdicts_on_the_candidates_are_those_of_the_data(algorithm: str, verdicts: dict[str, str]) -> None:
    trial = KEPT[algorithm].trial
    assert {name: trial.verdict(name) for name in trial.judged} == verdicts
    assert list(trial.objections()) == OBJECTIONS[algorithm]


def test_more_updates_gain_nothing_over_a_kept_gamma_on_average_and_lose_at_the_worst_cycle_time() -> None:
    trial = KEPT["sac"].trial
    average, worst = (trial.advantage(trial.winner, "baseline", "tuned", measure) for measure in ("average", "worst"))
    assert average.low < 0 < average.high
    assert worst.high < 0
    assert f"gains nothing on average ({average})" in " ".join(PAGE.read_text().split())


def _score_of(algorithm: str, task: str, kind: str, rule: str, begun: str, dt: str) -> float:
    """A single cell of the trial: the normalised score at a cycle time, from a starting point at another."""
    trial = KEPT[algorithm].trial
    (start,) = (each for each in trial.starts_of(kind, task) if each.values.dt == Duration(begun))
    return float(trial.scores(rule, start)[0][trial.targets(start).index(Duration(dt))])


def test_the_page_s_single_scores_are_those_of_the_trial() -> None:
    page, trial = " ".join(PAGE.read_text().split()), KEPT["ppo"].trial
    scale, runs = trial.scales["pendulum"], trial.outcomes["pendulum"]
    at_home, best = (
        runs.cell(dt="128ms", **values).scores.mean()
        for tuned in [scale.retuned[Duration("128ms")]]
        for values in (
            {"batch": 2000, "discount": 0.99, "trace_decay": 0.95},
            {name: tuned[name] for name in ("batch", "discount", "trace_decay")},
        )
    )
    untuned = [_score_of("ppo", "pendulum", "untuned", rule, "128ms", "8ms") for rule in ("dt-aware", "floor-6")]
    there = (at_home - scale.nothing) / (best - scale.nothing)
    assert f"scores {there:.2f}; at 8 ms `dt-aware` then has {untuned[0]:.2f}, `horizons` {untuned[1]:.2f}." in page
    rules = ("floor-6", "floor-6-more-updates", "baseline")
    one, more, kept = (f"{_score_of('sac', 'cart-pole', 'tuned', rule, '32ms', '64ms'):.2f}" for rule in rules)
    assert f"from 32 to 64 ms rises from {one} to {more}, and has {kept} with a kept gamma" in page


def test_nothing_is_tried_before_the_list_is_frozen() -> None:
    assert set(TRIED) <= set(FROZEN)


@pytest.mark.parametrize("page", [PAGE, RESULTS / "tables.md"], ids=lambda page: page.name)
def test_the_pages_tables_are_those_of_the_results(page: Path) -> None:
    text = page.read_text()
    assert fill_page(text, list(KEPT.values())) == text


@pytest.mark.parametrize("algorithm", TRIED)
def test_the_rule_with_the_name_is_the_winner(algorithm: str) -> None:
    kept = KEPT[algorithm]
    assert kept.spec.usual.rules["horizons"].laws == preregistered_rules(RESULTS, kept.spec)[kept.trial.winner].laws


def test_the_page_counts_all_runs() -> None:
    counts = dict.fromkeys(ALGORITHM_SPECS, 0)
    for outcome in read_results(RESULTS).outcomes.values():
        counts[outcome.cells[0].labels["algorithm"]] += outcome.about["runs"]
    told = f"{sum(counts.values()):,} runs: {counts['ppo']:,} of PPO and {counts['sac']:,} of SAC"
    assert told in PAGE.read_text()


def test_the_readme_quotes_the_trial_over_tasks() -> None:
    trial = KEPT["ppo"].trial
    found = trial.over_tasks("floor-6", "tuned", "average", "dt-aware")
    more = {task: trial.interval("floor-6", "tuned", "average", "dt-aware", task=task).value for task in trial.dts}
    assert sum(each < 0 for each in more.values()) == 1
    told = f"over tasks {found.value:.2f} more [{found.low:.2f}, {found.high:.2f}], on one less"
    assert told in (ROOT / "README.md").read_text()


def test_the_page_s_figures_are_there() -> None:
    for target in re.findall(r"\]\((figures/horizons/[^)]+)\)", PAGE.read_text()):
        assert (PAGE.parent / target).exists()


def test_what_users_are_told_to_do_quotes_the_trial() -> None:
    """The shares of retuning in the reasons for the recommended rules, from untuned and from tuned values."""
    quoted = {
        ("ppo", "untuned"): (PPO.recommended.untuned, ["dt-aware", "floor-6"]),
        ("ppo", "tuned"): (PPO.recommended.tuned, ["floor-6", "dt-aware"]),
        ("sac", "untuned"): (SAC.recommended.untuned, ["baseline", "scaled", "floor-6-more-updates"]),
        ("sac", "tuned"): (SAC.recommended.tuned, ["baseline", "scaled", "floor-6-more-updates"]),
    }
    for (algorithm, kind), (advice, rules) in quoted.items():
        trial = KEPT[algorithm].trial
        shares = [round(100 * trial.interval(rule, kind, "average").value) for rule in rules]
        assert [int(each) for each in re.findall(r"(\d+) %", advice.why)] == shares
        assert f"retuning {algorithm.upper()} on" in advice.why  # which A2C, TD3, DDPG and TQC quote
