import pytest

from cycletime import rules
from cycletime.agents import PPOAgent, SACAgent, agent_for
from cycletime.errors import InputError


def test_the_papers_values_are_the_defaults_of_both() -> None:
    assert agent_for(rules.PPO(dt="16ms")) == PPOAgent()
    assert agent_for(rules.SAC(dt="16ms")) == SACAgent()


def test_carried_values_arrive() -> None:
    agent = agent_for(rules.PPO(dt="16ms").at("32ms"), learn_when="episode_end")
    assert (agent.batch, agent.minibatch, agent.period, agent.learn_when) == (1000, 25, 1000, "episode_end")
    assert agent.discount == pytest.approx(0.99**2)
    assert agent.trace_decay == pytest.approx(0.95**2)


def test_parts_of_sac_that_are_counted_in_steps_arrive() -> None:
    values = rules.SAC(dt="16ms", discount=0.8515).at(
        "4ms", rule="scaled", also=["warm-up", "replay-capacity", "updates-per-second"]
    )
    agent = agent_for(values)
    assert (agent.warmup_steps, agent.replay_capacity) == (40_000, 4_000_000)
    assert (agent.gradient_steps, agent.learning_period) == (1, 4)
    assert agent.discount == pytest.approx(0.8515**0.25)


@pytest.mark.parametrize(("dt", "steps"), [("4ms", 40_000), ("64ms", 2_500), ("30ms", 5_334)])
def test_random_actions_fill_160_s_at_every_cycle_time(dt: str, steps: int) -> None:
    assert agent_for(rules.SAC(dt="16ms").at(dt)).warmup_steps == steps
    assert agent_for(rules.SAC(dt="16ms", warmup_steps=7)).warmup_steps == 7


def test_a_learning_rate_and_a_clip_arrive() -> None:
    ppo = agent_for(rules.PPO(dt="16ms", clip=0.1).at("4ms", also=["learning-rate"]))
    assert (ppo.learning_rate, ppo.clip) == (6e-4, 0.1)
    assert agent_for(rules.SAC(dt="16ms", learning_rate=1e-3)).learning_rate == 1e-3


def test_a_field_that_there_is_not_is_named() -> None:
    with pytest.raises(InputError, match="'hiden' is not a field of PPOAgent: give some of activation, advantages, "):
        agent_for(rules.PPO(dt="16ms"), hiden=(3,))


@pytest.mark.parametrize(
    ("updates_per_step", "gradient_steps", "learning_period"),
    [
        (1, 1, 1),
        (4, 4, 1),
        (0.125, 1, 8),
        (2.0625, 33, 16),
        (1.332, 4, 3),
        (1.001, 1, 1),
        (0.03, 3, 100),
        (1e-4, 1, 10_000),
    ],
)
def test_updates_come_in_a_rhythm_of_small_numbers(
    updates_per_step: float, gradient_steps: int, learning_period: int
) -> None:
    agent = agent_for(rules.SAC(dt="16ms", updates_per_step=updates_per_step))
    assert (agent.gradient_steps, agent.learning_period) == (gradient_steps, learning_period)


def test_noise_beside_that_of_the_policy_is_refused() -> None:
    with pytest.raises(InputError, match=r"noise_std is 0\.1: SAC here adds none"):
        agent_for(rules.SAC(dt="16ms", noise_std=0.1))


@pytest.mark.parametrize("algorithm", ["a2c", "tqc", "td3", "ddpg"])
def test_algorithms_that_have_rules_but_no_agent_are_refused(algorithm: str) -> None:
    with pytest.raises(
        InputError, match=rf"^No agent here learns by {algorithm.upper()}: give values of PPO or SAC\.$"
    ):
        agent_for(rules.ALGORITHMS[algorithm](dt="16ms"))  # type: ignore[call-overload]
