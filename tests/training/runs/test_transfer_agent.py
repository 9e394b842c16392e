"""Agents at a cycle time from values tuned at another: the rules' own numbers, and refusals."""

import math
import re
from typing import Any

import pytest

from cycletime import rules
from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.errors import InputError
from cycletime.rules.rule import parse_own_rules
from cycletime.training.external import TrainerSpec
from cycletime.training.make_specs import agent_values, transfer_agent


@pytest.mark.parametrize("rule", rules.PPO.rules)
def test_ppo_has_the_rule_s_values(rule: str) -> None:
    tuned = {"batch": 400, "minibatch": 10, "discount": 0.9, "trace_decay": 0.8}
    agent, origin, _ = transfer_agent("ppo", tuned, dt="80ms", tuned_at="40ms", rule=rule, others={"epochs": 3})
    wanted = rules.PPO(dt="40ms", **tuned).at("80ms", rule)  # type: ignore[arg-type]
    assert isinstance(agent, PPOAgent)
    assert {name: getattr(agent, name) for name in tuned} == {name: getattr(wanted, name) for name in tuned}
    assert agent.epochs == 3
    assert origin == {"rule": rule, "tuned_at": "40ms", "tuned": tuned}


def test_values_of_a_tuning_are_carried_by_horizons_and_the_reason_is_told() -> None:
    for fields, rule in (((), "dt-aware"), (("discount",), "horizons")):
        _, origin, notes = transfer_agent("ppo", {"discount": 0.99}, dt="32ms", tuned_at="16ms", tuned_fields=fields)
        assert origin["rule"] == rule
        assert notes[-1].startswith(f"Rule '{rule}', since none was named: from ")


@pytest.mark.parametrize("trainer", [None, TrainerSpec(name="mine:train"), TrainerSpec(name="stable-baselines3")])
def test_what_a_tuning_chose_decides_with_any_trainer(trainer: TrainerSpec | None) -> None:
    for fields, rule in (((), "dt-aware"), (("discount",), "horizons")):
        agent, origin, notes = transfer_agent(
            "ppo",
            {"discount": 0.99, "trace_decay": 0.95, "batch": 2000, "minibatch": 50},
            dt="32ms",
            tuned_at="16ms",
            tuned_fields=fields,
            trainer=trainer,
        )
        assert origin["rule"] == rule
        assert agent_values(agent, ["discount"])["discount"] == pytest.approx(0.99**2)
        assert notes[-1].startswith(f"Rule '{rule}', since none was named: from ")


@pytest.mark.parametrize(("algorithm", "enough"), [("ppo", 256), ("sac", 2)])
def test_many_environments_are_told_what_transfer_tells_them(algorithm: str, enough: int) -> None:
    more = rules.ALGORITHMS[algorithm].recommended.many
    for num_envs, told in ((enough - 1, False), (enough, True)):
        for trainer in (None, TrainerSpec(name="mine:train", num_envs=num_envs)):
            carried = transfer_agent(algorithm, {}, dt="32ms", tuned_at="16ms", num_envs=num_envs, trainer=trainer)
            assert carried.notes[-1].endswith(more) == told


def test_sac_keeps_its_random_start_in_seconds() -> None:
    agent, origin, _ = transfer_agent("sac", {"discount": 0.97}, dt="32ms", tuned_at="16ms", rule="horizons")
    assert isinstance(agent, SACAgent)
    assert agent.discount == pytest.approx(0.97**2)
    assert agent.warmup_steps == 5000
    assert (agent.gradient_steps, agent.learning_period) == (2, 1)
    assert origin["rule"] == "horizons"


def test_a_learning_rate_and_a_clip_that_are_given_are_carried_where_a_part_says_so() -> None:
    given = {"learning_rate": 1e-3, "clip": 0.1, "epochs": 3}
    agent, origin, _ = transfer_agent(
        "ppo", {}, dt="4ms", tuned_at="16ms", also=["learning-rate", "clip"], others=given
    )
    assert isinstance(agent, PPOAgent)
    assert (agent.learning_rate, agent.clip, agent.epochs) == (2e-3, 0.05, 3)
    assert (origin["tuned"]["learning_rate"], origin["tuned"]["clip"]) == (1e-3, 0.1)
    bare, *_ = transfer_agent("sac", {}, dt="4ms", tuned_at="16ms", also=["learning-rate"])
    assert isinstance(bare, SACAgent)
    assert bare.learning_rate == 6e-4, "the paper's, carried"


def test_without_its_part_nothing_of_a_run_changes() -> None:
    given = {"learning_rate": 1e-3, "clip": 0.1, "noise_std": 0.5}
    for also in ([], ["exploration-noise"]):
        agent, origin, _ = transfer_agent("ppo", {}, dt="4ms", tuned_at="16ms", also=also, others=given)
        assert agent == PPOAgent(batch=8000, minibatch=200, **given)  # type: ignore[arg-type]
        tuned = {"batch": 2000, "minibatch": 50, "discount": 0.99, "trace_decay": 0.95}
        assert origin == {"rule": "dt-aware", "tuned_at": "16ms", "tuned": tuned}


def test_without_a_cycle_time_of_tuning_nothing_is_carried() -> None:
    assert transfer_agent("ppo", {"batch": 100, "minibatch": 10}, dt="4ms") == (
        PPOAgent(batch=100, minibatch=10),
        {},
        (),
    )
    assert transfer_agent("actor-critic", {"discount": 0.9}, dt="4ms") == (ActorCriticAgent(discount=0.9), {}, ())


@pytest.mark.parametrize(
    ("algorithm", "values", "more", "sentence"),
    [
        ("dqn", {}, {}, "'dqn' is not an algorithm: give one of actor-critic, ppo, sac."),
        (
            "sac",
            {"batch": 9},
            {},
            "batch is 9: sac has no such value, but discount, minibatch; did you mean minibatch?",
        ),
        (
            "ppo",
            {},
            {"rule": "scaled"},
            "The rule is 'scaled': it needs tuned_at=..., the cycle time that the values are from ([tuned] dt).",
        ),
        (
            "actor-critic",
            {},
            {"tuned_at": "4ms"},
            "tuned_at is 4ms: no rule carries values of actor-critic to another cycle time.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    algorithm: str, values: dict[str, Any], more: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        transfer_agent(algorithm, values, dt="8ms", **more)


OWN = rules.Rule("mine", {"discount": rules.laws.power_with_floor(6), "learning_rate": rules.laws.rho_power(-0.5)})


def test_a_rule_of_one_s_own_carries_a_learning_rate_that_is_given_beside_the_values() -> None:
    agent, origin, _ = transfer_agent(
        "ppo", {"discount": 0.92}, dt="64ms", tuned_at="16ms", rule=OWN, others={"learning_rate": 1e-3}
    )
    assert isinstance(agent, PPOAgent)
    assert (agent.batch, agent.minibatch, agent.learning_rate) == (2000, 50, 5e-4)
    assert agent.discount == pytest.approx(math.exp(-1 / 6))
    assert parse_own_rules(origin["own_rules"]) == {"mine": OWN}
    assert origin["rule"] == "mine"


def test_the_rule_s_notes_are_kept_but_for_those_on_what_was_not_given() -> None:
    carried = transfer_agent("ppo", {"minibatch": 30}, dt="64ms", tuned_at="16ms", also=["learning-rate"])
    wanted = rules.PPO(dt="16ms", minibatch=30).at("64ms", also=["learning-rate"]).notes
    assert wanted[0] == "learning_rate was not given: the paper's 0.0003 is used."
    assert carried.notes[:-1] == wanted[1:] != ()
