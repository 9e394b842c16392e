"""Which rule is recommended for what, and that its reasons are those of the committed trials."""

from pathlib import Path
from typing import Any

import pytest

from cycletime.libraries import LIBRARIES
from cycletime.rules import A2C, ALGORITHMS, DDPG, PPO, SAC, TD3, TQC, Hyperparameters, recommend
from cycletime.rules.hyperparameters import closing_line


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (PPO(dt="16ms"), "dt-aware"),
        (PPO(dt="16ms", batch=4096, discount=0.99, trace_decay=0.95), "dt-aware"),
        (PPO(dt="16ms", discount=0.97), "horizons"),
        (PPO(dt="16ms", trace_decay=0.9), "horizons"),
        (PPO(dt="16ms", discount=0.99, tuned_fields=["discount"]), "horizons"),
        (PPO(dt="16ms", batch=50, tuned_fields=["batch"]), "dt-aware"),
        (PPO.from_("rllib", dt="16ms"), "dt-aware"),  # whose lambda is 1
        (PPO.from_("rllib", dt="16ms", lambda_=1.0, gamma=0.99), "dt-aware"),
        (PPO.from_("rllib", dt="16ms", lambda_=0.9), "horizons"),
        (PPO.from_("mujoco-playground", dt="20ms", discounting=0.97, num_envs=8192), "horizons"),
        (PPO.from_("isaac-lab", dt="20ms", num_steps_per_env=24, n_envs=4096), "dt-aware"),
        (A2C(dt="16ms"), "dt-aware"),
        *((kind(dt="16ms", discount=gamma), "tuned") for kind in (SAC, TQC, TD3, DDPG) for gamma in (0.99, 0.9)),
    ],
)
def test_what_is_given_decides(values: Hyperparameters, rule: str) -> None:
    assert recommend(values).rule == rule
    assert values.at("32ms").origin is not None
    assert values.at("32ms").origin.rule == rule  # type: ignore[union-attr]  # told above
    assert closing_line(values.at("32ms")).startswith("Use these values: ")


@pytest.mark.parametrize(
    "library", [name for name, table in LIBRARIES.items() if "ppo" in table and name != "rl-games"]
)
def test_no_library_s_defaults_are_taken_for_tuned(library: str) -> None:
    given = {"num_steps_per_env": 24} if library in ("rsl-rl", "isaac-lab") else {}
    assert recommend(PPO.from_(library, dt="16ms", **given)).rule == "dt-aware"


def test_the_evidence_is_not_said_to_be_for_defaults_that_no_trial_began_from() -> None:
    says = "discount 0.9 is the library's default, which no trial began from; from gamma .99 and lambda .95 the paper's"
    assert recommend(PPO.from_("brax", dt="20ms")).why.startswith(says)
    assert recommend(PPO.from_("sb3", dt="20ms")).why.startswith("from gamma .99 and lambda .95 the paper's")


@pytest.mark.parametrize(("gamma", "whose"), [(None, "default"), (0.99, "default"), (0.98, "tuned")])
def test_a_discount_in_a_library_s_words_is_tuned_where_it_is_not_its_default(gamma: float | None, whose: str) -> None:
    given: dict[str, Any] = {} if gamma is None else {"gamma": gamma}
    assert closing_line(SAC.from_("sb3", dt="16ms", **given).at("8ms")).startswith(f"Use these values: from {whose} ")


def test_another_rule_is_answered_with_the_recommended_one_and_what_was_found() -> None:
    assert closing_line(SAC(dt="16ms", discount=0.9).at("32ms", "tuned-scaled")) == (
        "Use --rule tuned instead of tuned-scaled: from tuned values a kept discount with one update per step scored "
        "99 % of retuning SAC on three small tasks, a scaled one 94 %, horizons 100 % (no decided gain, for up "
        "to 8 times the updates)."
    )
    assert closing_line(PPO(dt="16ms", discount=0.9).at("8ms", "scaled")).startswith("Use --rule horizons instead of")
    assert closing_line(SAC(dt="16ms").at("8ms", "baseline")).startswith("Use these values: "), "by another name"
    assert closing_line(PPO(dt="16ms").at("16ms")) == "Nothing changes with the cycle time: both are 16ms."


def test_with_many_environments_it_is_said_what_these_showed() -> None:
    few, many = (PPO.from_("isaac-lab", dt="20ms", num_steps_per_env=24, n_envs=number) for number in (255, 256))
    more = PPO.recommended.many
    assert (recommend(few).rule, recommend(few).why + more) == recommend(many)
    assert closing_line(many.at("10ms", "baseline")).startswith("Use --rule dt-aware instead of baseline: ")
    for carried in (many.at("10ms"), many.at("10ms", also="clip"), many.at("10ms", "baseline")):
        assert closing_line(carried).endswith(more)
    assert closing_line(PPO(dt="20ms").at("10ms"), 4096).endswith(more)
    one, two = (SAC.from_("sb3", dt="20ms", n_envs=number) for number in (1, 2))
    assert recommend(one).why == SAC.recommended.untuned.why
    assert recommend(two).why == f"{SAC.recommended.untuned.why} Those trials had one environment."


def test_what_is_said_of_many_environments_is_what_their_trial_found() -> None:
    assert "carrying learned faster than --rule baseline at longer cycle times and slower" in PPO.recommended.many
    text = (Path(__file__).parents[2] / "results" / "parallel" / "README.md").read_text()
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    table = {line[0]: line for line in lines}
    for carried in ("tuned horizons - tuned baseline", "untuned dt-aware - untuned baseline"):
        for where, sign in (("shorter", -1), ("longer", 1)):
            _, over_seeds, _, verdict, *_ = table[f"{carried}, {where}"]
            low, high = (float(end) for end in over_seeds.partition("[")[2].rstrip("]").split(","))
            assert (low * sign > 0, high * sign > 0, verdict) == (True, True, "not decided")


@pytest.mark.parametrize("kind", ALGORITHMS.values())
def test_reasons_have_at_most_two_sentences_and_rules_that_there_are(kind: type[Hyperparameters]) -> None:
    for advice in kind.recommended[:2]:
        assert advice.rule in kind.rules
        assert advice.why.count(". ") <= 1
