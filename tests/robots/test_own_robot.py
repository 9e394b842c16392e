"""The arm of the page 'your own robot': it is what the page shows, and trains in the real-time loop in virtual time."""

import runpy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent
from cycletime.duration import Duration
from cycletime.robots.real_time_env import RealTimeEnv
from cycletime.robots.real_time_loop import RealTimeLoop
from cycletime.training.journal import EpisodeRecord
from tests.robots.ur.virtual import VirtualClock

pytestmark = pytest.mark.usefixtures("compiled_quickly")

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "toy_arm.py"


@pytest.fixture
def arm() -> Any:  # noqa: ANN401 - a class of a file that is no module here
    gymnasium.registry.pop("ToyArm-v0", None)  # where the page's own test came first
    made = runpy.run_path(str(FILE))["ToyArm"](VirtualClock())
    del gymnasium.registry["ToyArm-v0"]
    return made


def test_it_is_what_the_page_shows_in_sixty_lines() -> None:
    text = FILE.read_text()
    assert '``` { .python }\n--8<-- "examples/toy_arm.py"\n```' in (ROOT / "docs" / "own-robot.md").read_text()
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 60


def test_it_is_an_environment_and_a_robot(arm: Any) -> None:  # noqa: ANN401
    robot: object = arm
    assert isinstance(robot, RealTimeEnv)
    arm.reset(seed=0)
    began_s = arm.clock.now_s()
    observation, reward, terminated, truncated, info = arm.step(np.array([0.5], np.float32))
    assert observation in arm.observation_space
    assert info["observed_s"] - began_s == pytest.approx(arm.dt)
    assert reward == pytest.approx(-abs(float(observation[0])) * arm.dt)
    assert (terminated, truncated) == (False, False)


def test_no_agent_brings_it_beyond_its_limits_and_it_comes_home(arm: Any) -> None:  # noqa: ANN401
    arm.reset(seed=0)
    for _ in range(150):
        arm.send(np.array([7.0]))
        arm.clock.time_s += arm.dt
        arm.receive()
        assert abs(arm.servo.speed) <= 1
    assert 2 < arm.servo.angle < 2.03
    arm.reset(seed=1)
    assert abs(arm.servo.angle) < 0.02
    assert arm.servo.speed == 0


def test_it_trains_at_its_beat_and_stands_in_the_end(arm: Any) -> None:  # noqa: ANN401
    kept: list[EpisodeRecord] = []
    loop = RealTimeLoop(env=arm, agent=ActorCriticAgent(hidden=(2,)), dt=Duration("40ms"), env_steps=200)
    chunks = list(loop.run(0, keep=kept.append))
    assert chunks[-1].env_steps == 200
    assert [episode.agent_steps for episode in kept] == [50, 50]
    assert not any(episode.cycles.overrun.any() for episode in kept)
    np.testing.assert_allclose(np.diff(kept[0].cycles.scheduled_s), 0.04)
    assert arm.servo.speed == 0
