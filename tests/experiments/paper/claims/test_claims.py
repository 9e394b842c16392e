"""Each claim, where the data must confirm it, refute it, and leave it undecided; and where some are missing."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from cycletime.experiments.judging import Claim, claim_as_json, judge
from cycletime.experiments.paper.claims import CLAIMS
from cycletime.experiments.paper.data import PaperResults
from tests.experiments.paper.claims.worlds import (
    GAMMAS,
    Change,
    as_the_paper_says,
    behaviours,
    changed,
    learning,
    more,
    paper_world,
    where,
    without,
)
from tests.experiments.paper.synthetic import synthetic_data

BY_NUMBER = {claim.number: claim for claim in CLAIMS}
_DT_AWARE = (
    *("ppo-baseline", "ppo-dt-aware", "ppo-pendulum"),
    *("sac-baseline", "sac-dt-aware", "sac-pendulum-baseline", "sac-pendulum-dt-aware"),
)
NEEDS: Mapping[str, tuple[str, ...]] = {
    "1a": ("ppo-baseline",),
    "1b": ("ppo-baseline", "ppo-baseline-4ms"),
    "2": ("ppo-baseline",),
    "3": ("ppo-baseline", "ppo-grid", "ppo-grid-winners"),
    "4a": ("ppo-dt-aware",),
    "4b": ("ppo-dt-aware",),
    "5": ("ppo-baseline", "ppo-dt-aware"),
    "6": ("ppo-dt-aware", "ppo-scaled"),
    "7": ("ppo-dt-aware", "ppo-constant"),
    "8": ("sac-baseline",),
    "9": ("sac-baseline", "sac-scaled", "sac-gamma-sweep-winners"),
    "10": ("sac-gamma-sweep", "sac-gamma-sweep-winners"),
    "11": ("sac-baseline", "sac-dt-aware"),
    "12": ("ppo-pendulum",),
    "13a": ("sac-pendulum-baseline", "sac-pendulum-dt-aware"),
    "13b": ("sac-pendulum-baseline",),
    "14": ("ppo-robot-fresh", "ppo-robot-2000-fresh"),
    "15": ("sac-robot-120ms-fresh", "sac-robot-sweep-fresh", "sac-robot-extended-fresh"),
    "headline": _DT_AWARE,
    "most": _DT_AWARE,
}
"""By claim, the studies that it rests on."""
_SWEEP = ("ppo-grid", "ppo-grid-winners")
_GAMMA = ("sac-gamma-sweep", "sac-gamma-sweep-winners")
REFUTING: Mapping[str, tuple[Mapping[str, Change], ...]] = {
    "1a": ({"ppo-baseline": where(6.0, dt="4ms")},),
    "1b": (
        {"ppo-baseline-4ms": where(learning(6.0, 0.1), dt="4ms")},
        {"ppo-baseline-4ms": where(learning(-6.0, 0.1), dt="4ms")},
    ),
    "2": (
        {"ppo-baseline": where(learning(16.0, 0.1), dt="8ms")},
        {"ppo-baseline": where(learning(15.0, 0.05), dt="64ms")},
    ),
    "3": (
        dict.fromkeys(_SWEEP, where(12.5, dt="16ms")),  # as good as the baseline
        dict.fromkeys(_SWEEP, lambda labels, _: 16.0 + 3 * (labels["batch"] == 500)),  # one for all
    ),
    "4a": ({"ppo-dt-aware": lambda labels, before: 30.0 - before if labels["dt"] == "8ms" else before},),
    "4b": ({"ppo-dt-aware": where(12.0, dt="64ms", batch=2000)},),
    "5": ({"ppo-dt-aware": where(6.0, dt="8ms", batch=2000)},),
    "6": ({"ppo-scaled": more(4.0, dt="4ms")},),
    "7": ({"ppo-constant": more(3.0, dt="64ms")},),
    "8": (
        {"sac-baseline": where(learning(14.0, 0.1), dt="4ms")},  # no drop
        {"sac-baseline": lambda labels, before: before - 3 * np.linspace(0, 1, 100) * (labels["dt"] == "8ms")},
        {"sac-baseline": more(4.0, dt="64ms")},
    ),
    "9": (
        {"sac-scaled": more(4.0, dt="4ms")},
        {"sac-scaled": more(-3.0, dt="64ms")},
        dict.fromkeys(_GAMMA, where(5.0, dt="32ms")),
    ),
    "10": (
        dict.fromkeys(_GAMMA, lambda labels, before: before + 20 * (labels["discount"] == 1.0)),
        dict.fromkeys(_GAMMA, lambda labels, before: before + 9 * (labels["discount"] == GAMMAS[6])),
        {"sac-gamma-sweep": where(0.0, dt="64ms", discount=GAMMAS[1])},
    ),
    "11": (
        {"sac-dt-aware": where(5.0, dt="16ms", rule="tuned")},
        {"sac-dt-aware": where(14.5, dt="64ms", rule="tuned-scaled")},
    ),
    "12": (
        {"ppo-pendulum": where(500.0, dt="64ms", rule="dt-aware")},
        {"ppo-pendulum": where(5000.0, dt="4ms", rule="baseline")},
    ),
    "13a": (
        {"sac-pendulum-baseline": where(6200.0, dt="8ms")},
        {"sac-pendulum-dt-aware": more(1500.0, dt="4ms", rule="tuned-scaled")},
        {"sac-pendulum-dt-aware": where(4500.0, dt="4ms", rule="tuned")},
    ),
    "13b": ({"sac-pendulum-baseline": where(3000.0, dt="4ms")},),
    "14": (
        {"ppo-robot-fresh": where(300.0, dt="10ms", rule="baseline")},  # nothing is lost
        {"ppo-robot-fresh": where(60.0, dt="10ms", rule="dt-aware")},  # nothing is won
        {"ppo-robot-fresh": where(180.0, dt="10ms", rule="dt-aware")},  # not all is recovered
        {"ppo-robot-2000-fresh": more(-80.0, dt="10ms")},
    ),
    "15": (
        {"sac-robot-120ms-fresh": where(260.0, discount=0.99)},
        {"sac-robot-120ms-fresh": where(310.0, discount=0.922745)},
        {"sac-robot-120ms-fresh": more(-100.0)},  # in this order, and far from the peak
        {"sac-robot-sweep-fresh": where(190.0, discount=0.99)},  # nothing is lost
        {"sac-robot-sweep-fresh": where(350.0, discount=0.960596)},  # the peak is another
        {"sac-robot-extended-fresh": where(340.0, discount=0.99)},
    ),
    "headline": (
        {"ppo-pendulum": where(500.0, dt="64ms", rule="dt-aware")},
        {"ppo-dt-aware": where(9.0, dt="32ms", batch=2000)},
        {"sac-dt-aware": where(6.0, dt="16ms", rule="tuned")},
    ),
    "most": ({study: more(-20.0) for study in ("sac-dt-aware", "ppo-dt-aware")},),
}
"""By claim, worlds of which each has something that it denies."""


@cache
def noisy_world() -> PaperResults:
    """The same with runs so few and so different that nothing can be said."""
    made = synthetic_data(as_the_paper_says, seeds=3, noise=1.0)
    return PaperResults(made.outcomes, behaviours(seeds=3, spread=2.0))


@pytest.mark.parametrize("number", BY_NUMBER)
def test_a_world_as_the_paper_says_confirms_it(number: str) -> None:
    found = judge(paper_world(), BY_NUMBER[number])
    assert found.verdict == "confirmed", str(found.decisive)
    assert not found.missing


@pytest.mark.parametrize(("number", "changes"), [(number, each) for number in BY_NUMBER for each in REFUTING[number]])
def test_a_world_in_which_it_is_wrong_refutes_it(number: str, changes: Mapping[str, Change]) -> None:
    found = judge(changed(changes), BY_NUMBER[number])
    assert found.verdict == "refuted", str(found.decisive)


@pytest.mark.parametrize("number", BY_NUMBER)
def test_few_runs_that_differ_much_leave_it_undecided(number: str) -> None:
    assert judge(noisy_world(), BY_NUMBER[number]).verdict == "not decided"


@pytest.mark.parametrize("number", ["1a", "12", "13b"])
def test_policies_that_do_well_after_all_refute_a_failure(number: str) -> None:
    data = replace(paper_world(), behaviours=behaviours(away=0.3, upright=0.9))
    found = judge(data, BY_NUMBER[number])
    assert found.verdict == "refuted"
    assert found.decisive is not None
    assert "as a share of" in found.decisive.name


@pytest.mark.parametrize(("number", "study"), [(number, study) for number in BY_NUMBER for study in NEEDS[number]])
def test_without_a_study_it_is_not_run_and_says_which(number: str, study: str) -> None:
    found = judge(without(paper_world(), study), BY_NUMBER[number])
    assert found.verdict == "not run"
    assert found.missing == (study,)
    assert found.decisive is None


@pytest.mark.parametrize("number", BY_NUMBER)
def test_without_anything_it_names_all_that_it_needs(number: str) -> None:
    missing = {name for name in judge(PaperResults({}), BY_NUMBER[number]).missing if "behaviour" not in name}
    assert missing == set(NEEDS[number])


@pytest.mark.parametrize("number", BY_NUMBER)
def test_it_rests_on_no_other_study(number: str) -> None:
    others = paper_world().outcomes.keys() - set(NEEDS[number])
    assert judge(without(paper_world(), *others), BY_NUMBER[number]).verdict == "confirmed"


def test_without_their_behaviour_policies_are_not_known_to_fail() -> None:
    data = replace(paper_world(), behaviours={})
    assert judge(data, BY_NUMBER["1a"]).missing == ("the behaviour of ppo-baseline",)
    assert judge(data, BY_NUMBER["12"]).verdict == "not run"
    assert judge(data, BY_NUMBER["headline"]).verdict == "confirmed"


def test_no_verdict_is_given_before_all_prespecified_seeds_are_there() -> None:
    outcome = paper_world().outcomes["ppo-robot-fresh"]
    some = tuple(
        replace(
            cell, seeds=cell.seeds[:199], scores=cell.scores[:199], plain=cell.plain[:199], curves=cell.curves[:199]
        )
        for cell in outcome.cells
    )
    data = replace(paper_world(), outcomes={**paper_world().outcomes, outcome.name: replace(outcome, cells=some)})
    found = judge(data, BY_NUMBER["14"])
    assert (found.verdict, found.missing) == ("not run", ("ppo-robot-fresh (under way, 199 of 200 seeds)",))


def test_the_headline_can_be_refuted_before_all_was_run() -> None:
    some = ("sac-baseline", "sac-dt-aware", "sac-pendulum-baseline", "sac-pendulum-dt-aware")
    whole, broken = paper_world(), changed(REFUTING["headline"][0])
    undecided, refuted = (judge(without(data, *some), BY_NUMBER["headline"]) for data in (whole, broken))
    assert (undecided.verdict, refuted.verdict) == ("not run", "refuted")
    assert undecided.missing == refuted.missing == some


def test_almost_all_batch_times_may_be_all_but_two() -> None:
    better = {500: 4.0, 1000: 4.0}
    two = {"ppo-scaled": lambda labels, before: before + better.get(labels["batch"], 0.0) * (labels["dt"] == "4ms")}
    assert judge(changed(two), BY_NUMBER["6"]).verdict == "confirmed"
    better[4000] = 4.0
    assert judge(changed(two), BY_NUMBER["6"]).verdict == "refuted"
    better[4000] = 2.0  # as good
    assert judge(changed(two), BY_NUMBER["6"]).verdict == "not decided"


def test_baseline_and_dt_aware_runs_are_not_compared_where_they_are_the_same() -> None:
    for number in ("5", "12", "headline"):
        names = [each.name for each in judge(paper_world(), BY_NUMBER[number]).conditions]
        assert any("at 32ms, dt-aware minus baseline" in name for name in names)
        assert not any("at 16ms, dt-aware minus baseline" in name for name in names)


def astray(count: int, **labels: object) -> Any:  # noqa: ANN401
    """Curves of which some come to no number halfway."""

    def change(told: Mapping[str, Any], curves: Any) -> Any:  # noqa: ANN401
        if all(told[name] == value for name, value in labels.items()):
            curves[:count, 50:] = np.nan
        return curves

    return change


def test_runs_that_went_astray_are_left_out_of_scores_and_counted() -> None:
    made = synthetic_data(as_the_paper_says, only=("ppo-baseline", "ppo-dt-aware"), curves=astray(2, dt="8ms"))
    told = claim_as_json(BY_NUMBER["5"], made)
    counts = {each["name"][9:13].strip(" ,"): (each["n"], each["astray"]) for each in told["conditions"]}
    assert told["verdict"] == "confirmed"
    assert counts == {"4ms": ([30], 0), "8ms": ([28], 2), "32ms": ([30], 0), "64ms": ([30], 0)}


@pytest.mark.parametrize("count", [28, 30])
def test_who_goes_astray_fails(count: int) -> None:
    wild = astray(count, dt="64ms", rule="dt-aware")
    made = synthetic_data(as_the_paper_says, only=("ppo-pendulum",), curves=wild)
    found = judge(PaperResults({**paper_world().outcomes, **made.outcomes}, behaviours()), BY_NUMBER["12"])
    assert found.verdict == "refuted"
    assert found.decisive is not None
    json.dumps(
        claim_as_json(BY_NUMBER["12"], made), allow_nan=False
    )  # a mean of no runs is not a number, nor is it JSON


def with_plain(data: PaperResults, study: str, by: float, **labels: object) -> PaperResults:
    """Data of which some cells have another plain mean over episodes."""
    outcome = data.outcomes[study]
    chosen = outcome.where(**labels)
    cells = tuple(replace(cell, plain=cell.plain + by) if cell in chosen else cell for cell in outcome.cells)
    return replace(data, outcomes={**data.outcomes, study: replace(outcome, cells=cells)})


def test_a_claim_says_what_the_plain_mean_over_episodes_makes_of_it() -> None:
    data = with_plain(paper_world(), "ppo-pendulum", -4000.0, rule="dt-aware")
    told = {each["number"]: each for claim in CLAIMS for each in [claim_as_json(claim, data)]}
    assert (told["12"]["verdict"], told["12"]["with_plain_mean"]) == ("confirmed", "refuted")
    assert [each["with_plain_mean"] for each in told["5"]["elsewhere"][:2]] == ["does not carry over", None]
    assert told["2"]["with_plain_mean"] is None  # it is about curves
    slightly = with_plain(paper_world(), "ppo-dt-aware", -0.01)
    assert claim_as_json(BY_NUMBER["5"], slightly)["with_plain_mean"] == "confirmed"


def test_json_has_the_fields_that_programs_rely_on() -> None:
    told = [claim_as_json(claim, paper_world()) for claim in CLAIMS]
    assert [each["number"] for each in told] == [
        *("1a", "1b", "2", "3", "4a", "4b", "5", "6", "7", "8", "9", "10", "11", "12", "13a", "13b", "14", "15"),
        *("headline", "most"),
    ]
    for each in told:
        assert {"number", "statement", "verdict", "statistic", "interval", "n", "figure"} <= each.keys()
        assert each["verdict"] in ("confirmed", "refuted", "not decided", "not run")
    fifth = told[6]
    assert fifth["statistic"]["name"] == "score at 32ms, dt-aware minus baseline"
    assert fifth["statistic"]["value"] == pytest.approx(3.755, abs=0.001)
    assert fifth["interval"][0] < fifth["statistic"]["value"] < fifth["interval"][1]
    assert (fifth["n"], fifth["scale"], fifth["missing"]) == ([30], 1.0, [])
    unknown = claim_as_json(CLAIMS[16], PaperResults({}))
    assert [unknown[name] for name in ("statistic", "interval", "n", "scale")] == [None] * 4
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_a_scaled_down_study_is_told_of() -> None:
    small = synthetic_data(as_the_paper_says, only=("ppo-dt-aware",), scale=0.01)
    data = PaperResults({**paper_world().outcomes, **small.outcomes})
    scales = [judge(data, BY_NUMBER[number]).scale for number in ("2", "4a", "5")]
    assert scales == [1.0, 0.01, 0.01]


def test_claims_asked_elsewhere_have_verdicts_of_their_own() -> None:
    data = changed({"ppo-released-code": where(1000.0, task="double-pendulum", rule="dt-aware", dt="8ms")})
    verdicts = {each["where"]: each["verdict"] for each in claim_as_json(BY_NUMBER["5"], data)["elsewhere"]}
    assert verdicts == {
        "double-pendulum": "carries over",
        "reacher, learning at episodes' ends": "carries over",
        "reacher, PyTorch's initial weights": "carries over",
        "reacher, both": "carries over",
        "double-pendulum, learning at episodes' ends": "does not carry over",
        "double-pendulum, PyTorch's initial weights": "does not carry over",
        "double-pendulum, both": "does not carry over",
    }


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.elsewhere], ids=lambda claim: claim.number)
def test_the_paper_s_world_says_the_same_elsewhere(claim: Claim) -> None:
    assert {judge(paper_world(), each).verdict for each in claim.elsewhere} == {"confirmed"}
