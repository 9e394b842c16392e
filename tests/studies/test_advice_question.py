"""Questions: which cycle times are candidates, the study that is made of them, and what is refused."""

from typing import Any

import pytest

from cycletime.agents import PPOAgent, SACAgent
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.rules import PPO, SAC
from cycletime.studies.advice import Question
from cycletime.training.worlds import GymnasiumEnv
from tests.studies.virtual import asked, ms


def test_by_default_candidates_are_around_the_present_one() -> None:
    assert asked(dts=()).candidates(ms(2)) == (tuple(map(ms, (4, 8, 16, 32, 64))), {})
    found, none = asked(dts=()).candidates(ms(8))
    assert found == tuple(map(ms, (8, 16, 32, 64)))
    assert none == {"4ms": "no multiple of the environment's step, 8ms"}


def test_cycles_longer_than_an_episode_are_no_candidates() -> None:
    question = Question(world=asked().world, algorithm="ppo", present=Duration("1.2s"))
    found, none = question.candidates(ms(2))
    assert found[-1] == Duration("2.4s")
    assert none == {"4.8s": "longer than an episode, 2.4s"}


def test_agents_are_those_that_the_rule_carries() -> None:
    agents = asked(values={"batch": 400, "discount": 0.9}, others={"hidden": (8,)}).own_agents([ms(8), ms(32)])
    tuned = PPO(dt="16ms", batch=400, discount=0.9)
    for dt, agent in agents.items():
        assert isinstance(agent, PPOAgent)
        values = tuned.at(dt)
        assert (agent.batch, agent.discount, agent.hidden) == (values.batch, values.discount, (8,))
    sac = Question(world=GymnasiumEnv("Pendulum-v1"), algorithm="sac", present=ms(50), values={"discount": 0.9})
    carried = sac.cell(ms(100)).agent
    assert isinstance(carried, SACAgent)
    assert carried.discount == SAC(dt="50ms", discount=0.9).at("100ms").discount


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "actor-critic"}, "No rule carries the values of actor-critic"),
        ({"algorithm": "dqn"}, "'dqn' is not an algorithm: give one of ppo, sac"),
        ({"enough": -1.0}, "enough is -1.0"),
        ({"first_seeds": 1}, "first_seeds is 1"),
        ({"confidence": 95.0}, "confidence of 95.0 is not between 0 and 1"),
        ({"present": Duration("16s")}, "give at most that"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    given = {"world": asked().world, "algorithm": "ppo", "present": ms(16), **options}
    with pytest.raises(InputError) as caught:
        Question(**given)
    assert words in str(caught.value)
