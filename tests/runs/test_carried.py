"""Agents at a cycle time from values tuned at another: the rules' own numbers, and refusals."""

import re
from typing import Any

import pytest

from cycletime import rules
from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.errors import InputError
from cycletime.runs.carried import carried_agent


@pytest.mark.parametrize("rule", rules.PPO.rules)
def test_ppo_has_the_rule_s_values(rule: str) -> None:
    tuned = {"batch": 400, "minibatch": 10, "discount": 0.9, "trace_decay": 0.8}
    agent, origin = carried_agent("ppo", tuned, dt="80ms", tuned_at="40ms", rule=rule, others={"epochs": 3})
    wanted = rules.PPO(dt="40ms", **tuned).at("80ms", rule)  # type: ignore[arg-type]
    assert isinstance(agent, PPOAgent)
    assert {name: getattr(agent, name) for name in tuned} == {name: getattr(wanted, name) for name in tuned}
    assert agent.epochs == 3
    assert origin == {"rule": rule, "tuned_at": "40ms", "tuned": tuned}


def test_sac_keeps_its_random_start_in_seconds() -> None:
    agent, origin = carried_agent("sac", {"discount": 0.851}, dt="32ms", tuned_at="16ms")
    assert isinstance(agent, SACAgent)
    assert agent.discount == pytest.approx(0.851**2)
    assert agent.warmup_steps == 5000
    assert origin["rule"] == "tuned-scaled"


def test_without_a_cycle_time_of_tuning_nothing_is_carried() -> None:
    assert carried_agent("ppo", {"batch": 100, "minibatch": 10}, dt="4ms") == (PPOAgent(batch=100, minibatch=10), {})
    assert carried_agent("actor-critic", {"discount": 0.9}, dt="4ms") == (ActorCriticAgent(discount=0.9), {})


@pytest.mark.parametrize(
    ("algorithm", "values", "more", "sentence"),
    [
        ("dqn", {}, {}, "'dqn' is no algorithm: give one of actor-critic, ppo, sac."),
        ("sac", {"batch": 9}, {}, "batch is 9: sac has no such value, but discount, minibatch."),
        (
            "ppo",
            {},
            {"rule": "scaled"},
            "The rule is 'scaled': it needs tuned_at, the cycle time that the values are from.",
        ),
        (
            "actor-critic",
            {},
            {"tuned_at": "4ms"},
            "tuned_at is 4ms: no rule carries the values of actor-critic to another cycle time.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    algorithm: str, values: dict[str, Any], more: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        carried_agent(algorithm, values, dt="8ms", **more)
