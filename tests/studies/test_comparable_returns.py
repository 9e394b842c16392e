"""What is known of worlds, and whether their returns compare: real ones, and one that pays for each action."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.studies import cycle_time_checks
from cycletime.studies.cycle_time_checks import WorldFacts, returns_are_comparable, world_facts
from cycletime.training.worlds import ClosedFormWorld, GymnasiumEnv, World
from tests.studies.virtual import ms

pytestmark = pytest.mark.usefixtures("compiled_quickly")


class Paying(gymnasium.Env[Any, Any]):
    """Pays for each action instead of each environment step, or at random."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def __init__(self, dt: Duration, *, at_random: bool) -> None:
        self.cycle, self.at_random = round(dt / ms(2)), at_random

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        return np.zeros(1), {}

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += self.cycle
        paid = np.random.default_rng().normal() if self.at_random else 1.0
        return np.zeros(1), paid, False, False, {"env_steps": self.steps}


@pytest.mark.parametrize(
    ("world", "facts", "dts"),
    [
        (ClosedFormWorld("reacher"), WorldFacts(ms(2), 9, 2), (ms(16), ms(64))),
        (GymnasiumEnv("Pendulum-v1"), WorldFacts(ms(50), 3, 1), (ms(50), ms(150))),
    ],
)
def test_worlds_that_pay_for_environment_steps_compare(
    world: World, facts: WorldFacts, dts: tuple[Duration, ...]
) -> None:
    assert world_facts(world, dts[0]) == facts
    assert returns_are_comparable(world, facts.env_dt, dts) is True


@pytest.mark.parametrize(("at_random", "answer"), [(False, False), (True, None)])
def test_worlds_that_pay_otherwise_do_not(
    monkeypatch: pytest.MonkeyPatch, at_random: bool, answer: bool | None
) -> None:
    monkeypatch.setattr(cycle_time_checks, "make_env", lambda world, dt, **_: Paying(dt, at_random=at_random))
    assert returns_are_comparable(GymnasiumEnv("Paying-v0"), ms(2), (ms(4), ms(8))) is answer


def test_discrete_actions_are_for_trainers_alone() -> None:
    world = GymnasiumEnv("CartPole-v1", env_dt=ms(20))
    assert world_facts(world, ms(40), discrete=True) == WorldFacts(ms(20), 0, 0)
    assert returns_are_comparable(world, ms(20), (ms(20), ms(80))) is True
    with pytest.raises(InputError, match="the agents need a Box of floating-point numbers"):
        world_facts(world, ms(40))


def test_cycle_times_without_a_common_multiple_that_is_soon_reached_are_not_tried() -> None:
    odd = (ms(2 * 113), ms(2 * 127), ms(2 * 131))
    assert returns_are_comparable(GymnasiumEnv("Never-made-v0"), ms(2), odd) is None


def test_a_cycle_time_that_the_world_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="not a whole multiple"):
        world_facts(GymnasiumEnv("Pendulum-v1"), ms(70))
