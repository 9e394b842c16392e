from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Space
from gymnasium.wrappers import RescaleAction

from cycletime.errors import InputError
from cycletime.tasks import CycleTime
from cycletime.training.worlds import ActionBounds, observation_size


class Spaces(gymnasium.Env[Any, Any]):
    """Nothing but its spaces."""

    def __init__(self, actions: Space[Any], observations: Space[Any] | None = None) -> None:
        self.action_space, self.observation_space = actions, observations or Box(-1.0, 1.0, (2,))


def reached(actions: Space[Any], wanted: list[float]) -> list[float]:
    numbers: list[float] = ActionBounds.of(Spaces(actions)).reach(np.array(wanted, np.float32)).tolist()
    return numbers


def test_bounded_actions_are_mapped_and_clipped() -> None:
    space = Box(np.array([0.0, -2.0]), np.array([4.0, 2.0]), dtype=np.float64)
    assert reached(space, [-1.0, 1.0]) == [0.0, 2.0]
    assert reached(space, [0.0, 0.5]) == [2.0, 1.0]
    assert reached(space, [-7.0, 1.25]) == [0.0, 2.0]


def test_actions_between_minus_one_and_one_stay_as_they_are() -> None:
    wanted = np.random.default_rng(0).uniform(-1, 1, 100).astype(np.float32)
    np.testing.assert_array_equal(ActionBounds.of(Spaces(Box(-1.0, 1.0, (100,)))).reach(wanted), wanted)


def test_unbounded_actions_are_raw_and_one_sided_ones_only_clipped() -> None:
    low = np.array([-np.inf, 0.0, -np.inf, -10.0], np.float32)
    high = np.array([np.inf, np.inf, 0.5, 10.0], np.float32)
    assert reached(Box(low, high), [7.0, -3.0, 2.0, 0.5]) == [7.0, 0.0, 0.5, 5.0]
    assert reached(Box(low, high), [-7.0, 3.0, 0.25, 0.0]) == [-7.0, 3.0, 0.25, 0.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: gymnasium.make("cycletime/Reacher-v0"),
        lambda: CycleTime(gymnasium.make("cycletime/BulletReacher-v0"), "32ms"),
        lambda: gymnasium.make_vec("cycletime/Reacher-v0", num_envs=2),
        lambda: gymnasium.make_vec("cycletime/BulletReacher-v0", num_envs=2, vectorization_mode="sync"),
    ],
    ids=["closed-form", "bullet", "vector", "sync"],
)
def test_the_papers_tasks_see_what_the_agent_wanted(make: Any) -> None:  # noqa: ANN401
    env = make()
    wanted = np.array([-3.0, 1.5], np.float32)
    np.testing.assert_array_equal(ActionBounds.of(env).reach(wanted), wanted)
    env.close()


def test_a_rescaled_task_gets_rescaled_actions() -> None:
    env = RescaleAction(gymnasium.make("cycletime/Reacher-v0"), np.float32(0.0), np.float32(1.0))
    np.testing.assert_allclose(ActionBounds.of(env).reach(np.array([-1.0, 3.0], np.float32)), [0.0, 2.0])


def test_others_are_clipped() -> None:
    env = gymnasium.make("Reacher-v5")
    np.testing.assert_array_equal(ActionBounds.of(env).reach(np.array([-3.0, 0.5], np.float32)), [-1.0, 0.5])
    env.close()


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Discrete(3), r"The actions are Discrete\(3\): the agents need a Box"),
        (Box(0, 5, (2,), np.int32), "floating-point"),
        (Box(-1.0, 1.0, (2, 3)), r"shape \(2, 3\): it must be \(n,\)"),
        (Box(-1.0, 1.0, ()), r"shape \(\)"),
    ],
)
def test_actions_that_agents_cannot_take_are_refused(space: Space[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ActionBounds.of(Spaces(space))


@pytest.mark.parametrize(
    "space", [Dict({"a": Box(-1.0, 1.0, (2,))}), Box(0, 255, (8, 8, 3), np.uint8), Discrete(4)], ids=str
)
def test_observations_that_are_not_flat_are_refused_with_the_remedy(space: Space[Any]) -> None:
    with pytest.raises(InputError, match="FlattenObservation"):
        observation_size(Spaces(Box(-1.0, 1.0, (1,)), space))


def test_observations_of_whole_numbers_are_fine() -> None:
    assert observation_size(Spaces(Box(-1.0, 1.0, (1,)), Box(0, 255, (7,), np.uint8))) == 7
