"""Cycles in virtual time: act, send, then learn; absolute deadlines; what is late is left out, and never in a burst."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError, RunError
from cycletime.robots.episode_run import AgentStep, EpisodeRun, steps_from_record
from cycletime.tasks import CycleTime
from cycletime.tasks.delays import ActionDelay, ObservationDelay, RealTime, send_receive_env_of
from cycletime.training.journal import EpisodeRecord
from cycletime.training.worlds import ActionBounds, observation_size
from tests.robots.toy_robot import ToyRobot


@dataclass
class Scripted:
    """An agent that takes as long as a script says, by the number of its call."""

    robot: ToyRobot
    act_s: Mapping[int, float] = field(default_factory=dict)
    learn_s: Mapping[int, float] = field(default_factory=dict)
    acted: int = 0
    taken: list[AgentStep] = field(default_factory=list)

    def act(self, observation: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
        self.robot.clock.time_s += self.act_s.get(self.acted, 0.0)
        self.robot.log.append(("act", self.robot.clock.time_s))
        self.acted += 1
        return np.full((1, 1), -0.5, np.float32), 7

    def take(self, step: AgentStep) -> None:
        self.robot.clock.time_s += self.learn_s.get(len(self.taken), 0.0)
        self.robot.log.append(("learn", self.robot.clock.time_s))
        self.taken.append(step)


def play(
    robot: ToyRobot,
    agent: Scripted,
    cycle_steps: int = 2,
    env: Any = None,  # noqa: ANN401
) -> EpisodeRecord:
    run = EpisodeRun(
        send_receive_env_of(env or robot),
        agent.act,
        agent.take,
        clock=robot.clock,
        env_dt=Duration("10ms"),
        cycle_steps=cycle_steps,
        bounds=ActionBounds.of(robot),
        observation_size=observation_size(env or robot),
    )
    run.play(seed=1)
    return run.record(number=3, env_steps_before=24)


def times_ms(robot: ToyRobot, what: str) -> list[float]:
    """When something was done, after the reset."""
    return [round(1e3 * (at - robot.log[0][1]), 6) for name, at in robot.log if name == what]


def test_a_cycle_acts_sends_and_only_then_learns() -> None:
    robot = ToyRobot()
    agent = Scripted(robot, act_s=dict.fromkeys(range(9), 0.002), learn_s=dict.fromkeys(range(9), 0.005))
    episode = play(robot, agent)
    assert [name for name, _ in robot.log[:9]] == [
        "reset",
        "act",
        "send",
        "send",
        "act",
        "send",
        "learn",
        "send",
        "act",
    ]
    assert times_ms(robot, "act") == [2, 22, 42, 62], "deadlines are absolute"
    assert times_ms(robot, "learn") == [27, 47, 67]
    cycles = episode.cycles
    np.testing.assert_allclose(cycles.scheduled_s - cycles.scheduled_s[0], [0, 0.02, 0.04, 0.06], atol=1e-12)
    np.testing.assert_allclose(cycles.act_s, 0.002, atol=1e-12)
    np.testing.assert_allclose(cycles.learn_s, [0, 0.005, 0.005, 0.005], atol=1e-12)
    np.testing.assert_allclose(cycles.observation_age_s, [0, 0.002, 0.002, 0.002], atol=1e-12)
    np.testing.assert_allclose(cycles.wake_error_s, 0, atol=1e-12)
    assert not cycles.overrun.any()
    assert cycles.stale_updates.tolist() == [7] * 4
    assert len(agent.taken) == 3, "the last cycle is learned from when the robot stands"


def test_the_action_is_sent_again_with_every_step_of_the_environment() -> None:
    robot = ToyRobot()
    play(robot, Scripted(robot), cycle_steps=4)
    assert times_ms(robot, "send") == [0, 10, 20, 30, 40, 50, 60, 70]
    assert times_ms(robot, "act") == [0, 40]


def test_a_cycle_that_is_late_leaves_out_the_next_and_no_burst_follows() -> None:
    robot = ToyRobot()
    episode = play(robot, Scripted(robot, learn_s={0: 0.025}))  # in the second cycle, from 20 to 45 ms
    assert times_ms(robot, "act") == [0, 20, 60], "what was due at 40 ms is left out"
    assert episode.cycles.overrun.tolist() == [False, True, False]
    assert episode.cycles.missed_steps.tolist() == [0, 2, 0]
    assert episode.length_steps.tolist() == [2, 4, 2], "an episode lasts as long as it should"
    assert episode.run_env_steps == 24 + 8


def test_what_fits_into_the_cycle_but_not_into_a_step_is_no_overrun() -> None:
    robot = ToyRobot()
    episode = play(robot, Scripted(robot, learn_s={0: 0.015}))
    assert times_ms(robot, "act") == [0, 20, 40, 60]
    assert not episode.cycles.overrun.any()
    assert episode.cycles.missed_steps.tolist() == [0, 1, 0, 0]
    assert episode.length_steps.tolist() == [2, 2, 2, 2]


def test_rewards_of_missed_time_are_paid_with_the_next() -> None:
    robot = ToyRobot()
    episode = play(robot, Scripted(robot, learn_s={0: 0.025}))
    start = float(episode.rows[0, 0])
    woke_s, steps = np.array([0.01, 0.02, 0.05, 0.06, 0.07, 0.08]), np.array([1, 1, 3, 1, 1, 1])
    paid = -np.abs(start - 0.5 * woke_s) * steps * 0.01  # it goes on with its speed meanwhile
    np.testing.assert_allclose(episode.rewards, paid.reshape(3, 2).sum(axis=1), rtol=1e-5)


class Oversleeping:
    """A clock that wakes too late, once."""

    def __init__(self, by_s: float, at_wait: int) -> None:
        self.time_s, self._by_s, self._waits = 0.0, by_s, at_wait

    def now_s(self) -> float:
        return self.time_s

    def sleep_until(self, time_s: float) -> None:
        self._waits -= 1
        self.time_s = max(self.time_s, time_s) + (self._by_s if self._waits == 0 else 0.0)


@pytest.mark.parametrize(
    ("by_s", "acts", "errors_ms", "overrun"),
    [
        (0.003, [0, 23, 40, 60], [0, 3, 0, 0], [False] * 4),
        (0.012, [0, 40, 60], [0, 0, 0], [True, False, False]),  # 32 ms is no point of a cycle
        (0.021, [0, 41, 60], [0, 1, 0], [True, False, False]),
    ],
)
def test_a_late_wake_up_is_recorded(
    by_s: float, acts: list[float], errors_ms: list[float], overrun: list[bool]
) -> None:
    robot = ToyRobot(Oversleeping(by_s, at_wait=2))  # type: ignore[arg-type]
    episode = play(robot, Scripted(robot))
    assert times_ms(robot, "act") == acts
    np.testing.assert_allclose(1e3 * episode.cycles.wake_error_s, errors_ms, atol=1e-9)
    assert episode.cycles.overrun.tolist() == overrun


def test_a_protective_stop_ends_the_episode_and_is_recorded() -> None:
    robot = ToyRobot()
    robot.stops_at = (0, 3)
    episode = play(robot, Scripted(robot))
    assert episode.ended_by == "PROTECTIVE_STOP"
    assert episode.length_steps.tolist() == [2, 1]
    assert not episode.cycles.overrun.any()


def test_what_the_robot_raises_is_raised() -> None:
    robot = ToyRobot()
    robot.fails_at = (0, 5)
    with pytest.raises(RunError, match="on fire"):
        play(robot, Scripted(robot))


def test_an_observation_of_another_shape_is_refused() -> None:
    robot = ToyRobot()
    robot._observed = lambda: np.zeros(3)  # type: ignore[method-assign]
    with pytest.raises(InputError, match=r"The observation has the shape \(3,\): its space says \(2,\)"):
        play(robot, Scripted(robot))


def test_a_robot_that_tells_nothing_of_its_packages_is_recorded_so() -> None:
    class Quiet(ToyRobot):
        def reset(self, **options: Any) -> Any:  # noqa: ANN401
            return super().reset(**options)[0], {}

        def receive(self, env_steps: int = 1) -> Any:  # noqa: ANN401
            return (*super().receive(env_steps)[:-1], {})

    robot = Quiet()
    episode = play(robot, Scripted(robot))
    assert np.isnan(episode.cycles.observation_age_s).all()
    assert set(episode.cycles.packages) == set(episode.cycles.missed_packages) == {-1}
    assert episode.ended_by == "truncated"


def test_steps_that_were_kept_are_the_same_to_the_bit() -> None:
    robot = ToyRobot()
    agent = Scripted(robot)
    again = steps_from_record(play(robot, agent), 2, 1)
    for before, after in zip(agent.taken, again, strict=False):
        np.testing.assert_array_equal(before.observation, after.observation)
        np.testing.assert_array_equal(before.actions, after.actions)
        for one, other in zip(before.result, after.result, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
    assert [step.ended for step in again] == [False, False, False, True]


def late(robot: ToyRobot) -> RealTime:
    """With delays both ways, and the actions that are on their way."""
    return RealTime(ObservationDelay(ActionDelay(robot, "20ms"), ("0ms", "10ms")), history="30ms")


def test_delays_are_the_same_as_where_the_world_waits() -> None:
    class Waving(Scripted):
        def act(self, observation: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
            return np.sin(super().act(observation)[0] * self.acted), 0

    robot = ToyRobot()
    episode = play(robot, Waving(robot), env=late(robot))
    waits = CycleTime(late(ToyRobot()), "20ms")
    seen, told = [waits.reset(seed=1)[0]], []
    for number in range(1, 5):
        observation, reward, *_ = waits.step(np.sin(np.full(1, -0.5, np.float32) * number))
        seen.append(observation)
        told.append(reward)
    np.testing.assert_array_equal(episode.rows[:, :5], seen[:-1])
    np.testing.assert_array_equal(episode.rows[:, 7:12], seen[1:])
    assert episode.rewards.tolist() == told


def test_what_was_on_its_way_when_steps_were_missed_has_arrived() -> None:
    env = late(robot := ToyRobot())
    env.reset(seed=0)
    speeds, histories = [], []
    for action, missed in ((0.1, 0), (0.2, 2), (0.3, 0), (0.4, 0), (0.5, 0)):
        env.send(np.array([action], np.float32))
        speeds.append(robot.speed)
        histories.append(env.receive(1 + missed)[0][2:])
    # RealTime gives 0.1 to the delay in the second step, after which two are missed: it has arrived in the next. 0.2
    # is given there, at the fifth point, and arrives at the seventh.
    assert speeds == pytest.approx([0, 0, 0.1, 0.1, 0.2], abs=1e-6)
    np.testing.assert_allclose(histories[1], [0.2, 0.2, 0.2], atol=1e-6)
