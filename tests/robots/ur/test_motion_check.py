"""Whether an arm obeys: one that stands while it should move is noticed, one that does as it is told never is."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from cycletime.errors import RunError
from cycletime.robots.ur.motion_check import MotionCheck
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.types import ArmState, Command, MoveJ, SafetyMode, SpeedJ, StopJ
from cycletime.ur5 import Q_REF
from tests.robots.ur.virtual import Supervising, VirtualArm, VirtualClock, elbow

STILL = (0.0,) * 6


def seen(time_s: float, qd: tuple[float, ...] = STILL, target_qd: tuple[float, ...] = STILL, **state: Any) -> ArmState:  # noqa: ANN401
    return ArmState(time_s, Q_REF, qd, Q_REF, target_qd, **state)


def noticed_s(commands: list[float], period_s: float = 0.008, **state: Any) -> float | None:  # noqa: ANN401
    """When it is noticed that the elbow stands, which is given these speeds in turn."""
    watch = MotionCheck(0.2)
    watch.see(seen(0.0), None)
    for count, speed in enumerate(commands, 1):
        try:
            watch.see(seen(count * period_s, **state), SpeedJ(elbow(speed), 2.0))
        except RunError:
            return count * period_s
    return None


@pytest.mark.parametrize("period_s", [0.002, 0.008, 0.04])
@pytest.mark.parametrize("speed", [0.2, -1.0])
def test_an_arm_that_stands_is_noticed_half_a_second_after_it_should_have_moved(period_s: float, speed: float) -> None:
    count = round(2 / period_s)
    assert noticed_s([speed] * count, period_s) == pytest.approx(0.05 + 0.5, abs=2 * period_s)
    assert noticed_s([speed / 11] * count, period_s) is None, "too slow to tell"
    for mode in (SafetyMode.PROTECTIVE_STOP, SafetyMode.SAFEGUARD_STOP):
        assert noticed_s([speed] * count, period_s, safety_mode=mode) is None


def test_speeds_that_change_their_sign_at_once_are_not_expected_to_show() -> None:
    assert noticed_s([1.0, -1.0] * 1000) is None
    assert noticed_s([1.0] * 25 + [-1.0] * 25 + [1.0] * 100) == pytest.approx(0.65, abs=0.1)


def test_the_sentence_says_what_was_sent_what_was_seen_and_what_to_look_at() -> None:
    watch = MotionCheck(10.0)
    command = SpeedJ(elbow(-0.75), 2.0)
    watch.see(seen(0.0), command)
    watch.see(seen(0.4), command)
    with pytest.raises(RunError) as error:
        watch.see(seen(0.8, speed_scaling=0.0), command)
    assert str(error.value) == (
        "The arm does not obey: it was told to move with up to 0.75 rad/s, and has stood still for 0.5 s in which it "
        "should have moved, with the safety mode NORMAL and its speed scaled to 0%. Look whether the controller is in "
        "remote control, whether a program runs at its teach pendant, and whether the speed slider there is at 0."
    )


@pytest.mark.parametrize("moves", [{"qd": elbow(0.02)}, {"target_qd": elbow(-0.02)}])
def test_a_sign_of_motion_is_enough_to_begin_anew(moves: dict[str, Any]) -> None:
    watch = MotionCheck(0.2)
    for count in range(500):
        watch.see(seen(0.008 * count, **(moves if count % 60 == 59 else {})), SpeedJ(elbow(1.0), 2.0))


def test_what_somebody_else_replaced_and_what_nobody_saw_does_not_count() -> None:
    watch = MotionCheck(0.2)
    for count in range(500):
        watch.see(seen(0.008 * count), None)
        watch.see(seen(100 + 0.3 * count), SpeedJ(elbow(1.0), 2.0))
        watch.see(seen(0.008 * count), StopJ())


class Deaf(VirtualArm):
    """Which takes its commands, and runs none of them."""

    def send(self, command: Command) -> None:
        self.commands.append((self.clock.time_s, command))


def test_behind_a_driver_it_is_noticed_as_well() -> None:
    link = Supervising(Deaf(VirtualClock()))
    env = URReacher2Env(link, "40ms")
    env.reset(seed=0)
    for _ in range(13):
        link.step(env, np.array([0.3, 0.0]))
    with pytest.raises(RunError, match=r"it was told to move with up to 0\.3 rad/s"):
        link.step(env, np.array([0.3, 0.0]))


def play(arm: VirtualArm, env_dt: str, seed: int, kind: str, supervised: bool = False) -> float:
    """An episode of random actions; the time that it lasted."""
    link = Supervising(arm)
    rng, env = np.random.default_rng(seed), URReacher2Env(link if supervised else arm, env_dt)
    env.reset(seed=seed)
    began_s, truncated, action = arm.clock.time_s, False, rng.uniform(-1, 1, 2)
    while not truncated:
        action = {"normal": rng.normal(0, 1, 2), "held": action, "turned": action * rng.choice([1, 1, 1, -1])}[kind]
        truncated = link.step(env, action) if supervised else env.step(action)[3]
    return arm.clock.time_s - began_s


@pytest.mark.parametrize("kind", ["normal", "held", "turned"])
@pytest.mark.parametrize("supervised", [False, True])
def test_an_arm_that_obeys_is_never_taken_for_one_that_does_not(supervised: bool, kind: str) -> None:
    """Also where it stands at the edge of the box, since a supervisor holds it there."""
    for seed, env_dt in enumerate(("8ms", "40ms", "40ms", "80ms", "160ms")):
        arm = VirtualArm(VirtualClock())
        assert play(arm, env_dt, seed, kind, supervised) == pytest.approx(4.0, abs=0.02)


@pytest.mark.parametrize("env_dt", ["10ms", "40ms"])
@pytest.mark.parametrize("seed", range(5))
def test_random_actions_find_out_an_arm_that_does_not(env_dt: str, seed: int) -> None:
    arm = Deaf(VirtualClock())
    with pytest.raises(RunError, match="The arm does not obey"):
        play(arm, env_dt, seed, "normal")
    assert arm.clock.time_s - arm.commands[0][0] < 2.2 + 4.0, "in the first episode"
    assert [type(command) for _, command in arm.commands[:3]] == [StopJ, MoveJ, SpeedJ]
    assert arm.commands[-1][1] == StopJ(2.0), "also one that begins to obey then"


def test_the_episode_is_over() -> None:
    env = URReacher2Env(Deaf(VirtualClock()), "40ms")
    env.reset(seed=0)
    for _ in range(13):
        env.step(np.ones(2))
    with pytest.raises(RunError, match="does not obey"):
        env.step(np.ones(2))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.ones(2))
