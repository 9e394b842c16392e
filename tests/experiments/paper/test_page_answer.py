"""The first sentences of the paper's page, of made-up runs."""

from dataclasses import replace
from typing import Any

import numpy as np

from cycletime.experiments.outcome import OutcomeCell
from cycletime.experiments.paper.claims import CLAIMS
from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.report import summary_sentences
from tests.experiments.paper.synthetic import synthetic_data


def answer(data: PaperResults) -> list[str]:
    return list(summary_sentences(data, {}))


def better(rule: str, *only: str) -> PaperResults:
    """Runs of a rule score 7 and others 5, with ten seeds each."""
    return synthetic_data(lambda labels: 7.0 if labels["rule"] == rule else 5.0, seeds=10, only=only)


def test_the_answer_is_what_the_rule_is_worth() -> None:
    first, last = answer(better("dt-aware", "ppo-baseline", "ppo-dt-aware"))
    assert first.startswith(
        "On Reacher, PPO's values for 16 ms do better at each of the four other cycle times when the"
    )
    assert "by 2 to 2 in mean return over learning" in first
    assert last.startswith(f"Of the paper's {len(CLAIMS)} claims")


def test_the_answer_tells_what_became_of_values_on_the_simulated_robot() -> None:
    data = better("dt-aware", "ppo-robot")
    study = data.outcomes["ppo-robot"]
    places = (("baseline", "40ms"), ("baseline", "10ms"), ("dt-aware", "10ms"))
    ends = [f"{study.cell(rule=rule, dt=dt).curves[:, 90:].mean():.3g}" for rule, dt in places]
    returns = f"{ends[0]}, {ends[1]} and {ends[2]}"
    told = f"On a simulated robot PPO's values for 40 ms end at returns of {returns} (n = 10)"
    where = ": there, when they are kept at 10 ms, and when the rule carries them."
    assert answer(data)[0] == told + where
    fewer = replace(study, name="ppo-robot-fresh")
    assert answer(PaperResults({**data.outcomes, fewer.name: fewer}))[0] == told + where, "while seeds are to come"
    more = replace(fewer, cells=tuple(_twenty_times(cell) for cell in fewer.cells))
    assert answer(PaperResults({**data.outcomes, more.name: more}))[0] == f"{told}, or {returns} (n = 200){where}"


def _twenty_times(cell: OutcomeCell) -> OutcomeCell:
    again: dict[str, Any] = {name: np.concatenate([getattr(cell, name)] * 20) for name in ("scores", "plain", "curves")}
    return replace(cell, seeds=tuple(range(200)), **again)


def test_the_answer_tells_what_a_tuned_gamma_is_worth_where_it_is_better() -> None:
    on_reacher = better("tuned-scaled", "sac-baseline", "sac-dt-aware")
    names = ("sac-pendulum-baseline", "sac-pendulum-dt-aware")
    at_short = synthetic_data(
        lambda labels: 7e3 if labels["rule"] == "tuned-scaled" and labels["dt"] in ("4ms", "8ms") else 5e3,
        seeds=10,
        only=names,
    )
    told = answer(PaperResults({**on_reacher.outcomes, **at_short.outcomes}))[0]
    assert told == (
        "SAC's gamma, tuned at 16 ms and scaled from there, does better than .99 at all five cycle times on Reacher, "
        "by 2 to 2, and at 4 ms and 8 ms on the Double Pendulum, by 2,000 to 2,000."
    )


def test_of_a_gamma_that_is_better_nowhere_and_of_half_a_comparison_nothing_is_said() -> None:
    for data in (better("tuned", "sac-baseline", "sac-dt-aware"), better("tuned-scaled", "sac-dt-aware")):
        assert len(answer(data)) == 1
