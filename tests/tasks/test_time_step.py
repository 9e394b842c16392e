"""How long a step lasts: published by a layer or given, and never two things at once."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium import spaces, wrappers

from cycletime.errors import InputError
from cycletime.tasks import ActionDelay, CycleTime, ObservationDelay, RealTime
from cycletime.tasks.retime import retime
from cycletime.tasks.time_step import step_duration


class World(gym.Env[Any, Any]):
    """Publishes a time step, or none."""

    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Box(-1, 1, (1,))

    def __init__(self, dt: object = None) -> None:
        if dt is not None:
            self.dt = dt


class Silent(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper of which nobody knows whether it repeats steps."""


class Publishing(Silent):
    """One that says how long its step lasts."""

    dt = 0.006


def refusal(env: gym.Env[Any, Any], env_dt: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        step_duration(env, env_dt)
    return str(caught.value)


def test_frame_skips_below_lengthen_the_step() -> None:
    assert str(step_duration(wrappers.RepeatAction(World(0.002), 4))) == "8ms"
    assert str(step_duration(wrappers.RepeatAction(CycleTime(World(0.002), "6ms"), 3))) == "18ms"
    assert str(step_duration(wrappers.RepeatAction(World(1.5), 4))) == "6s"  # a number that is published is in seconds
    assert str(step_duration(wrappers.MaxAndSkipObservation(World(0.002), 2))) == "4ms"
    assert str(step_duration(CycleTime(wrappers.RepeatAction(World(0.002), 4), "16ms"))) == "16ms"


def test_the_outermost_layer_that_publishes_a_step_counts() -> None:
    assert str(step_duration(Publishing(World(0.002)))) == "6ms"
    assert str(step_duration(wrappers.RepeatAction(Publishing(World(0.002)), 2))) == "12ms"
    assert str(step_duration(Publishing(CycleTime(World(0.001), "2ms")))) == "6ms"


@pytest.mark.parametrize("inside", [World(0.004), CycleTime(World(0.004), "8ms"), World(0.05)])
def test_a_layer_s_step_is_a_whole_multiple_of_what_it_wraps(inside: gym.Env[Any, Any]) -> None:
    told = refusal(Silent(Publishing(inside)))
    assert "publishes dt = 6ms, but a step of what it wraps lasts " in told


@pytest.mark.parametrize(
    ("env", "lasts"),
    [
        (World(0.002), "2ms"),
        (wrappers.RepeatAction(World(0.002), 3), "6ms"),
        (CycleTime(Silent(World(0.001)), "2ms"), "2ms"),
        (Publishing(World(0.002)), "6ms"),
        (ActionDelay(World(), "2ms", env_dt="1ms"), "1ms"),
        (ObservationDelay(CycleTime(World(0.001), "3ms"), "3ms"), "3ms"),
        (RealTime(World(), "2ms", env_dt="1ms"), "1ms"),
        (RealTime(World(), env_dt="1ms"), "1ms"),
        (RealTime(World(0.001)), "1ms"),
    ],
)
def test_a_time_step_that_contradicts_what_is_published_is_refused(env: gym.Env[Any, Any], lasts: str) -> None:
    assert f"env_dt is 4ms, but a step of {env} lasts {lasts}: leave env_dt out" in refusal(env, "4ms")
    assert step_duration(env, lasts) == step_duration(env)


def test_a_time_step_that_contradicts_a_task_s_own_cycle_time_is_refused() -> None:
    for env in (retime("Pendulum-v1", "2ms"), gym.make("cycletime.tasks:cycletime/Reacher-v0", dt="2ms")):
        assert "lasts 2ms: leave env_dt out" in refusal(env, "4ms")
        assert CycleTime(env, "16ms", env_dt=0.002).dt == 0.016


def test_what_is_no_time_step_is_not_published() -> None:
    assert "publishes dt = 0.0, no time step: give it" in refusal(World(0.0))
    assert "publishes no time step (env.unwrapped.dt): give it" in refusal(World())
    assert str(step_duration(World(0.0), "4ms")) == "4ms"
    assert "publishes no time step" in refusal(RealTime(World()))


def test_delays_of_one_step_and_a_cycle_of_another_are_refused() -> None:
    delayed = ActionDelay(World(), "100ms", env_dt="50ms")
    assert CycleTime(delayed, "100ms").cycle_steps == 2  # it need not be told twice
    with pytest.raises(InputError, match=r"env_dt is 20ms, but a step of .* lasts 50ms"):
        CycleTime(delayed, "100ms", env_dt="20ms")
    with pytest.raises(InputError, match=r"env_dt is 20ms, but a step of .* lasts 50ms"):
        ObservationDelay(delayed, "100ms", env_dt="20ms")
