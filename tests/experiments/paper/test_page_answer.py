"""The first sentences of the paper's page, of made-up runs."""

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
    kept, aware = (data.outcomes["ppo-robot"].cell(rule=rule, dt="10ms") for rule in ("baseline", "dt-aware"))
    ends = [f"{cell.curves[:, 90:].mean():.3g}" for cell in (kept, aware)]
    told = answer(data)[0]
    assert told.startswith("On a simulated robot PPO's values for 40 ms end at a return of")
    assert told.endswith(
        f"at {ends[0]} when they are kept at 10 ms, and at {ends[1]} when the rule carries them (n = 10)."
    )


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
