"""Goals under CycleTime: what a cycle pays for another goal is the sum over its environment steps."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from cycletime.errors import InputError
from cycletime.tasks import CycleTime


class Line(gym.Env[Any, Any]):
    """Walks along a line, is paid minus the distance to the goal at every step, and uses its arrays again."""

    dt = 0.01
    action_space = spaces.Box(-1, 1, (1,), np.float64)
    observation_space = spaces.Dict(
        {name: spaces.Box(-99, 99, (1,), np.float64) for name in ("observation", "achieved_goal", "desired_goal")}
    )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        self.place, self.goal = np.zeros(1), np.full(1, 5.0)
        return self._seen(), {}

    def step(self, action: Any) -> Any:  # noqa: ANN401
        self.place += action
        paid = float(self.compute_reward(self.place, self.goal, {"weight": 1.0}))
        return self._seen(), paid, False, bool(self.place[0] >= 4.5), {"weight": 1.0}

    def _seen(self) -> dict[str, Any]:
        return {"observation": self.place, "achieved_goal": self.place, "desired_goal": self.goal}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:  # noqa: ANN401
        weight = info["weight"] if isinstance(info, dict) else np.array([each["weight"] for each in info])
        return -np.abs(achieved_goal - desired_goal).sum(axis=-1) * weight


def cycles(env: gym.Env[Any, Any], count: int) -> list[Any]:
    env.reset(seed=0)
    return [env.step(np.ones(1)) for _ in range(count)]


@pytest.mark.parametrize("dt", ["10ms", "20ms", "60ms"])
def test_for_the_goal_that_it_had_a_cycle_pays_what_it_paid(dt: str) -> None:
    env = CycleTime(Line(), dt)
    for observation, reward, *_, info in cycles(env, 1):
        goals = observation["achieved_goal"], observation["desired_goal"]
        assert env.compute_reward(*goals, info) == reward


def test_for_another_goal_a_cycle_pays_the_sum_over_its_steps() -> None:
    env = CycleTime(Line(), "20ms")
    (_, _, *_, first), (seen, _, *_, second) = cycles(env, 2)  # at 1, 2 and then at 3, 4
    assert env.compute_reward(seen["achieved_goal"], np.full(1, 3.0), second) == -(0 + 1)
    goals = np.array([[0.0], [4.0]])
    paid = env.compute_reward(np.array([[2.0], [4.0]]), goals, np.array([first, second]))
    np.testing.assert_array_equal(paid, [-(1 + 2), -(1 + 0)])


def test_a_cycle_that_the_episode_s_end_cuts_short_pays_for_the_steps_there_were() -> None:
    env = CycleTime(Line(), "30ms")
    _, (seen, reward, _, truncated, info) = cycles(env, 2)
    assert (truncated, info["cycle_steps"], reward) == (True, 2, -(1 + 0))
    assert env.compute_reward(seen["achieved_goal"], np.full(1, 4.0), info) == -(0 + 1)


def test_around_another_cycle_the_sum_is_over_the_environment_s_steps() -> None:
    env = CycleTime(CycleTime(Line(), "20ms"), "40ms")
    ((seen, reward, *_, info),) = cycles(env, 1)
    assert reward == -(4 + 3 + 2 + 1)
    assert env.compute_reward(seen["achieved_goal"], np.full(1, 1.0), info) == -(0 + 1 + 2 + 3)


def test_without_the_infos_the_sum_is_refused() -> None:
    env = CycleTime(Line(), "20ms")
    with pytest.raises(InputError, match=r"no 'held_steps'.*HerReplayBuffer\(..., copy_info_dict=True\)"):
        env.compute_reward(np.zeros((1, 1)), np.zeros((1, 1)), [{}])


def test_environments_without_goals_are_left_alone() -> None:
    assert not CycleTime(gym.make("Pendulum-v1"), "100ms").has_wrapper_attr("compute_reward")

    class OwnMeaning(gym.Wrapper[Any, Any, Any, Any]):
        def compute_reward(self) -> str:
            return "something else"

    env = CycleTime(OwnMeaning(gym.make("Pendulum-v1")), "100ms")
    env.reset(seed=0)
    assert "held_steps" not in env.step(np.zeros(1, np.float32))[4]
    assert env.get_wrapper_attr("compute_reward")() == "something else"
