"""What a policy's files say of its loop: names that belong to their numbers, delays that are those measured."""

from math import cos, sin
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces, wrappers

import cycletime.tasks as tasks
from cycletime.duration import Duration
from cycletime.tasks import CycleTime
from cycletime.tasks.delays import ActionDelay, ObservationDelay, RealTime
from cycletime.tasks.timing_contract import timing_contract
from cycletime.training.worlds import ClosedFormWorld, make_env

STEP = Duration("10ms")
STATES: dict[str, tuple[float, ...]] = {
    "pendulum": (0.5, 1.5),
    "mountain-car": (-0.4, 0.02),
    "cart-pole": (0.3, 0.5, 1.2, 0.7),
    "acrobot": (0.3, -0.4, 1.0, 2.0),
    "reacher": (0.3, 0.6, 1.0, 2.0, 0.1, -0.2),
    "double-pendulum": (0.2, 0.1, 0.3, 1.0, 2.0, 3.0),
}
OTHER_NAMES = {
    "reacher": {
        "target_x": 0.1,
        "target_y": -0.2,
        "tip_x_from_target": 0.1 * cos(0.3) + 0.11 * cos(0.9) - 0.1,
        "tip_y_from_target": 0.1 * sin(0.3) + 0.11 * sin(0.9) + 0.2,
        "w1 / 10": 0.1,
        "q2 / 3": 0.2,
        "w2 / 10": 0.2,
    },
    "double-pendulum": {"upper_pole_x": 0.2 + 0.6 * sin(0.1) + 0.3 * sin(0.4)},
}


@pytest.mark.parametrize("name", STATES)
def test_names_of_the_own_tasks_belong_to_their_numbers(name: str) -> None:
    """A name is a number of the state, its sine or cosine, or written out above."""
    world = ClosedFormWorld(name)
    env = make_env(world, world.task.baseline_dt)
    state = dict(zip(world.task.state_limits, STATES[name], strict=True))
    expected = {**state, **OTHER_NAMES.get(name, {})}
    expected |= {f"{f.__name__}_{key}": f(number) for f in (sin, cos) for key, number in state.items()}
    seen, _ = env.reset(options={"state": STATES[name]})
    named = timing_contract(env, world.env_dt)["observation"]
    np.testing.assert_allclose(seen, [expected[each] for each in named], rtol=2e-3)
    assert timing_contract(env, world.env_dt)["timing"] == []


def test_the_arm_observes_what_its_names_say() -> None:
    task = tasks.URReacher()
    names = list(task.observation_limits)
    seen = task.observe(task.start(0.1, 0.2, -0.6, 0.9, 0.3, 0.4))
    here = dict(zip(names, np.asarray(seen).tolist(), strict=True))
    assert here["q_shoulder"] == pytest.approx(0.1)
    assert here["q_elbow"] == pytest.approx(0.2)
    assert (here["qd_shoulder"], here["qd_elbow"]) == (0, 0)
    assert here["action_shoulder 1 step ago"] == pytest.approx(0.3)
    assert here["action_elbow 1 step ago"] == pytest.approx(0.4)


class Echo(gymnasium.Env[Any, Any]):
    """Observes how many steps it has done, and the action that reached it last."""

    dt = 0.01
    action_space: Any = spaces.Box(-1e6, 1e6, (1,), np.float64)
    observation_space: Any = spaces.Box(-1e6, 1e6, (2,), np.float64)
    observation_names = ("step", "applied")

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
        super().reset(seed=seed)
        self.now = 0
        return np.array([0.0, 0.0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        self.now += 1
        return np.array([self.now, action[0]], np.float64), 0.0, False, False, {}


def played(env: gymnasium.Env[Any, Any], steps: int) -> list[dict[str, float]]:
    """The observations by name; the n-th action is n."""
    names = timing_contract(env, STEP)["observation"]
    env.reset(seed=1)
    seen = [env.step(np.array([float(number)]))[0] for number in range(1, steps + 1)]
    return [dict(zip(names, np.ravel(each).tolist(), strict=True)) for each in seen]


@pytest.mark.parametrize(
    ("delay", "seconds", "steps"), [("30ms", [0.03] * 2, [3, 3]), (("0s", "20ms"), [0, 0.02], [0, 2])]
)
def test_an_action_delay_is_the_one_that_can_be_measured(delay: Any, seconds: list[float], steps: list[int]) -> None:  # noqa: ANN401
    env = ActionDelay(Echo(), delay)
    (entry,) = timing_contract(env, STEP)["timing"]
    assert (entry["kind"], entry["seconds"], entry["steps"], entry["step_s"]) == ("action delay", seconds, steps, 0.01)
    assert entry.get("drawn") == (None if steps[0] == steps[1] else "each step")
    ages = {each["step"] - each["applied"] for each in played(env, 200)[10:]}
    assert ages == set(range(steps[0], steps[1] + 1))


def test_an_observation_delay_is_the_one_that_can_be_measured() -> None:
    for env in (ObservationDelay(Echo(), "20ms"), wrappers.DelayObservation(Echo(), 2)):
        (entry,) = timing_contract(env, STEP)["timing"]
        assert (entry["kind"], entry["seconds"], entry["steps"]) == ("observation delay", [0.02] * 2, [2, 2])
        assert played(env, 10)[-1]["step"] == 10 - 2


def test_observed_actions_and_frames_are_as_old_as_their_names_say() -> None:
    seen = played(RealTime(Echo(), history="30ms"), 8)[-1]
    assert seen == {
        "step": 8,
        "applied": 7,
        "action[0] 3 steps ago": 6,
        "action[0] 2 steps ago": 7,
        "action[0] 1 step ago": 8,
    }
    stacked = wrappers.FlattenObservation(wrappers.FrameStackObservation(Echo(), 2))
    assert played(stacked, 8)[-1] == {"step 1 step ago": 7, "applied 1 step ago": 7, "step": 8, "applied": 8}
    (entry,) = timing_contract(stacked, STEP)["timing"]
    assert (entry["kind"], entry["steps"], entry["seconds"]) == ("observation history", [2, 2], [0.02, 0.02])


def test_steps_around_a_cycle_time_are_cycles_and_inside_the_environment_s() -> None:
    inside = CycleTime(ActionDelay(Echo(), "20ms"), "40ms")
    around = RealTime(CycleTime(Echo(), "40ms"), history="80ms")
    assert [each["step_s"] for each in timing_contract(inside, STEP)["timing"]] == [0.01]
    delay, history = timing_contract(around, STEP)["timing"]
    assert (delay["kind"], delay["seconds"], delay["steps"], delay["step_s"]) == (
        "action delay",
        [0.04] * 2,
        [1, 1],
        0.04,
    )
    assert (history["kind"], history["seconds"], history["steps"]) == ("action history", [0.08] * 2, [2, 2])


def test_an_environment_that_publishes_no_step_has_the_one_that_was_given() -> None:
    class Silent(Echo):
        dt = None  # type: ignore[assignment]

    (entry,) = timing_contract(wrappers.DelayObservation(Silent(), 3), Duration("5ms"))["timing"]
    assert entry["seconds"] == [0.015, 0.015]


def test_named_parts_are_in_gymnasium_s_order() -> None:
    parts = spaces.Dict(
        {"speed": spaces.Box(-9, 9, (2,)), "angle": spaces.Box(-9, 9, (1,)), "gripper": spaces.Discrete(2)}
    )
    values = {"speed": np.array([1, 2], np.float32), "angle": np.array([3], np.float32), "gripper": 1}

    class Parts(Echo):
        observation_space = parts
        observation_names = None  # type: ignore[assignment]

    names = timing_contract(wrappers.FlattenObservation(Parts()), STEP)["observation"]
    flat = dict(zip(names, np.asarray(spaces.flatten(parts, values), float).tolist(), strict=True))
    assert flat == {"angle[0]": 3, "gripper[0]": 0, "gripper[1]": 1, "speed[0]": 1, "speed[1]": 2}


def test_mujoco_s_observations_are_named_by_its_state() -> None:
    env = gymnasium.make("Hopper-v5")
    seen, _ = env.reset(seed=0)
    data: Any = env.unwrapped.data  # type: ignore[attr-defined]
    expected = {f"qpos[{index}]": data.qpos[1 + index] for index in range(5)}
    expected |= {f"qvel[{index}]": data.qvel[index] for index in range(6)}
    assert (
        dict(zip(timing_contract(env, Duration("8ms"))["observation"], np.asarray(seen).tolist(), strict=True))
        == expected
    )
    env.close()


def test_a_wrapper_that_is_not_known_is_listed_and_names_nothing() -> None:
    turned = wrappers.TransformObservation(Echo(), lambda seen: seen[::-1], Echo.observation_space)
    contract = timing_contract(wrappers.StickyAction(turned, 0.25), STEP)
    assert contract["unknown_wrappers"] == ["StickyAction", "TransformObservation"]
    assert contract["observation"] == ["observation[0]", "observation[1]"]


@pytest.mark.parametrize("names", [("one",), 7, ("a", 3), lambda: ("a", "b")])
def test_names_that_do_not_fit_are_replaced_by_indices(names: Any) -> None:  # noqa: ANN401
    env = Echo()
    env.observation_names = names
    assert timing_contract(env, STEP)["observation"] == ["observation[0]", "observation[1]"]
