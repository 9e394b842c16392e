"""What must fit into a cycle, by arithmetic and with a clock that is told what calls take."""

from dataclasses import replace
from itertools import count

import pytest

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.agents.agent import Agent
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.robots import calibration
from cycletime.robots.calibration import Calibration, calibrate
from cycletime.training.latency import CallTimes

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def times(p99_s: float, mean_s: float | None = None) -> CallTimes:
    return CallTimes(1.0, p99_s, p99_s if mean_s is None else mean_s, p99_s, p99_s, 100)


def made(dt: str, act: CallTimes, learn: CallTimes, way: str = "inline", period: int = 1) -> Calibration:
    return Calibration(Duration(dt), Duration("10ms"), period, way, act, learn)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("way", "period", "act", "learn", "shortest"),
    [
        ("inline", 1, times(0.0004), times(0.0149), "20ms"),  # 15.3 ms are 80 % of 19.1
        ("inline", 1, times(0.001), times(0.007), "10ms"),  # exactly 80 %
        ("inline", 1, times(0.001), times(0.0071), "20ms"),
        ("between_episodes", 400, times(0.0004), times(5.0), "10ms"),
        ("between_episodes", 400, times(0.0085), times(5.0), "20ms"),
        ("background", 1, times(0.0004), times(0.03, mean_s=0.013), "20ms"),
        ("background", 2, times(0.0004), times(0.03, mean_s=0.013), "10ms"),
    ],
)
def test_the_shortest_cycle_time_with_room(
    way: str, period: int, act: CallTimes, learn: CallTimes, shortest: str
) -> None:
    for dt in ("10ms", "20ms", "30ms"):
        calibration = made(dt, act, learn, way, period)
        assert calibration.shortest_dt == Duration(shortest)
        assert calibration.fits == (Duration(dt) >= Duration(shortest))
    made(shortest, act, learn, way, period).check()


def test_a_cycle_time_without_room_is_refused_with_one_that_has() -> None:
    with pytest.raises(InputError) as error:
        made("10ms", times(0.0004), times(0.0149)).check()
    assert str(error.value) == (
        "The cycle time is 10ms, which is too short: here act takes 0.4 ms and learn 14.9 ms, inline, and 80% "
        "of a cycle may be used. Give at least 20ms, or learn at another time: learner='background' with SAC, "
        "learn_when='episode_end' with PPO."
    )
    with pytest.raises(InputError, match=r"between episodes, and 80% of a cycle may be used. Give at least 20ms\.$"):
        made("10ms", times(0.009), times(1.0), "between_episodes").check()


def test_a_robot_that_would_stop_while_the_agent_learns_is_not_driven() -> None:
    learns = times(0.17)
    held = replace(made("400ms", times(0.001), learns), holds_s=0.22)
    held.check()
    assert held.fits
    with pytest.raises(InputError) as error:
        replace(held, holds_s=0.2).check()
    assert str(error.value) == (
        "The robot stops when it is told nothing for 0.2 s, of which 80% may be used: here act takes 1 ms and learn "
        "170 ms, inline. Take a smaller network, or learn at another time: learner='background' with SAC, "
        "learn_when='episode_end' with PPO."
    )
    replace(made("400ms", times(0.001), learns, "between_episodes"), holds_s=0.2).check()


@pytest.mark.parametrize(
    ("agent", "learner", "way"),
    [
        (SACAgent(), "inline", "inline"),
        (SACAgent(), "background", "background"),
        (PPOAgent(), "inline", "inline"),
        (PPOAgent(learn_when="episode_end"), "inline", "between_episodes"),
    ],
)
def test_calls_are_timed_by_the_robot_s_clock(
    agent: Agent, learner: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    calls = {"act": count(), "learn": count()}
    shapes = []

    def call_of(name: str, first_s: float, then_s: float) -> object:
        def call() -> None:
            nonlocal now_s
            now_s += then_s if next(calls[name]) else first_s

        def make(agent: Agent, *sizes: int) -> object:
            shapes.append(sizes)
            return call

        return make

    monkeypatch.setattr(calibration, "act_call", call_of("act", 1.0, 0.001))
    monkeypatch.setattr(calibration, "learn_call", call_of("learn", 9.0, 0.1))
    told = calibrate(
        agent,
        (8, 2),
        dt=Duration("1s"),
        env_dt=Duration("10ms"),
        learner=learner,  # type: ignore[arg-type]
        capacity=50,
        clock=lambda: now_s,
    )
    assert shapes == [(8, 2), (8, 2, 50)]
    assert told.way == way
    assert [told.act.first_s, told.learn.first_s] == pytest.approx([1.0, 9.0])
    assert [told.act.p99_s, told.learn.p99_s] == pytest.approx([0.001, 0.1])
    assert told.share == pytest.approx(0.101 if way == "inline" else 0.001)
    assert told.act.count > 1000
    assert told.learn.count == (1 if way == "between_episodes" else pytest.approx(20, abs=1)), "2 s of each"


def test_where_the_clock_stands_still_nothing_takes_time() -> None:
    agent = ActorCriticAgent(hidden=(2,))
    options = {"dt": Duration("10ms"), "env_dt": Duration("10ms"), "learner": "inline", "capacity": 1}
    told = calibrate(agent, (2, 1), **options, clock=lambda: 5.0)  # type: ignore[arg-type]
    assert (told.act.count, told.learn.count, told.share, told.fits) == (0, 0, 0.0, True)


@pytest.mark.parametrize(
    ("took_s", "says"),
    [
        (0.0, "the robot waits for the agent, whose work takes none of its time"),
        (0.001, "99 of 100 cycles need 2.00 ms for their work, 20% of 10ms"),
    ],
)
def test_the_work_of_a_cycle_is_told(took_s: float, says: str) -> None:
    assert str(made("10ms", times(took_s), times(took_s))) == says
