"""Which states are believed: what a proxy spoils never leads the arm far, and an arm that obeys is always believed."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest

from cycletime.errors import RunError
from cycletime.robots.ur.driver.driver import DriverTimeouts
from cycletime.robots.ur.freshness import ANGLE_TOLERANCE, LATE_S, REACTION_S, Freshness
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.safety import ArmLimits
from cycletime.robots.ur.simulator.profile import PROFILES, ProfileName
from cycletime.robots.ur.types import ArmState, Command, MoveJ, SafetyMode, SpeedJ, StopJ
from cycletime.ur5 import Q_REF
from tests.robots.ur import proxied
from tests.robots.ur.proxied import Fault, ProxiedController, drive_to_the_edge
from tests.robots.ur.virtual import Supervising, VirtualArm, VirtualClock, elbow

STILL = (0.0,) * 6
PROMISED_M = {0.3: 0.02, 1.0: 0.03}
"""By speed, rad/s: how far the tip may pass the box, as docs/robot-driver.md promises."""
FAULTS: dict[str, Fault] = {
    "repeat": proxied.repeat,
    "freeze": proxied.freeze,
    "freeze angles": proxied.freeze_angles,
    "freeze what is measured": proxied.freeze_measured,
    "later and later": proxied.slow(10),
    "creep": proxied.slow(100),
    "reorder 2": proxied.reorder(2),
    "reorder 5": proxied.reorder(5),
    "duplicate": proxied.duplicate(3),
    "drop half": proxied.drop(1, 2),
    "drop most": proxied.drop(1, 10),
    "drop all": proxied.drop(0, 1),
}
DELAYS_S = (0.02, 0.06, 0.1, 0.12, 0.13, 0.2, 0.5)


def spoil(fault: str, profile: ProfileName) -> Fault:
    if fault in FAULTS:
        return FAULTS[fault]
    return proxied.delay(round(float(fault.removeprefix("delay ")) / PROFILES[profile].period_s))


def outside_m(fault: str, speed: float, profile: ProfileName, from_s: float, order: tuple[float, ...]) -> float:
    """How far the tip passes the box."""
    *directions, acceleration = order
    link = ProxiedController(spoil(fault, profile), from_s, profile)
    speeds = (0.0, speed * directions[0], speed * directions[1], 0.0, 0.0, 0.0)
    drive_to_the_edge(link, SpeedJ(speeds, acceleration), 4.0)
    return link.outside_m


@pytest.mark.parametrize("speed", PROMISED_M)
@pytest.mark.parametrize("fault", ["repeat", "freeze", "freeze angles", "delay 0.12", "delay 0.2", "later and later"])
def test_the_tip_passes_the_box_by_no_more_than_promised(fault: str, speed: float) -> None:
    for from_s in (0.0, 0.9):
        assert outside_m(fault, speed, "cb3", from_s, (0.0, 1.0, 2.0)) <= PROMISED_M[speed]


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["cb3", "e"])
@pytest.mark.parametrize("speed", PROMISED_M)
@pytest.mark.parametrize("fault", [*FAULTS, *(f"delay {time_s:g}" for time_s in DELAYS_S)])
def test_whatever_is_spoiled_whenever_and_wherever_the_arm_goes(fault: str, speed: float, profile: ProfileName) -> None:
    far = {
        (from_s, order): outside_m(fault, speed, profile, from_s, order)
        for from_s in (0.0, 0.3, 0.9)
        for order in ((-0.4, 1.0, 2.0), (-0.4, 1.0, 5.0), (0.0, 1.0, 2.0), (-1.0, 1.0, 5.0), (1.0, -1.0, 2.0))
    }
    print(f"{profile} {fault} {speed:g} rad/s: {1000 * max(far.values()):.1f} mm outside at most")
    assert max(far.values()) <= PROMISED_M[speed]


def test_the_driver_and_its_supervisor_count_on_the_same_times() -> None:
    assert ArmLimits(STILL, (1.0,) * 6, (0, 0, 0), (1, 1, 1)).reaction_s == REACTION_S
    assert DriverTimeouts().late_s == LATE_S


def seen(time_s: float, **parts: Any) -> ArmState:  # noqa: ANN401
    return replace(ArmState(time_s, Q_REF, STILL, Q_REF, STILL), **parts)


def test_an_offset_is_learned_and_follows_a_clock_that_drifts_and_no_more() -> None:
    for rate, late_after_s in ((1.0, math.inf), (0.999, math.inf), (0.95, 1.0)):
        fresh = Freshness()
        late = [
            time_s for time_s in np.arange(0, 60, 0.008) if fresh.check(1000 + time_s, seen(1 + rate * float(time_s)))
        ]
        assert (min(late) if late else math.inf) == pytest.approx(late_after_s, abs=0.05)


def test_a_state_that_is_late_is_said_to_be_and_the_next_in_time_is_believed() -> None:
    fresh = Freshness()
    assert not fresh.check(10.0, seen(1.0))
    assert not fresh.check(10.047, seen(1.008)), "0.039 s"
    assert fresh.check(10.2, seen(1.016)) == "The controller's state came 0.182 s late."
    assert not fresh.check(10.208, seen(1.208))
    assert fresh.check(10.216, seen(1.208)) == "The controller sent a state of 1.208 s after one of 1.208 s."
    fresh.restart()
    assert not fresh.check(10.3, seen(0.0)), "another connection"


@pytest.mark.parametrize("part", ["q", "qd", "target_q", "target_qd", "time_s"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
def test_what_is_no_number_of_an_arm_is_no_state(part: str, value: float) -> None:
    fresh = Freshness()
    if part == "time_s":
        assert (fresh.check(0.0, seen(value)) == f"The controller's clock is at {value:g} s.") is (value != 1e300)
    else:
        wrong = fresh.check(0.0, seen(0.0, **{part: (0.0, value, 0.0, 0.0, 0.0, 0.0)}))
        assert f"have the value {value:g}, which no arm has." in wrong


@pytest.mark.parametrize(
    ("part", "value", "told"),
    [
        ("target_q", 1e300, "target angles have the value 1e+300, which no arm has."),
        ("target_qd", math.nan, "target speeds have the value nan, which no arm has."),
        ("time_s", math.inf, "clock is at inf s."),
    ],
)
def test_numbers_that_are_none_stop_the_arm_and_end_the_run_with_a_sentence(part: str, value: float, told: str) -> None:
    def spoiled(states: list[ArmState]) -> list[ArmState]:
        wrong: dict[str, Any] = {part: value if part == "time_s" else (value,) * 6}
        return [replace(states[-1], **wrong)]

    link = ProxiedController(spoiled, 0.5)
    ended = drive_to_the_edge(link, SpeedJ(elbow(0.3)), 60.0)
    assert ended.text == f"The controller was lost and not found again in 10 s: The controller's {told}"
    assert np.abs(link.controller.arm.qd).max() < 1e-9


def disbelieved(state: Callable[[float], ArmState]) -> tuple[float, str]:
    """When a state is not believed of an arm that was ordered nothing, or a move, and why."""
    fresh = Freshness()
    for time_s in map(float, np.arange(0, 2, 0.008)):
        if why := fresh.check(time_s, state(time_s)):
            return time_s, why
        fresh.sent(MoveJ(Q_REF))  # where that leads to is not computed
    return math.inf, ""


def test_angles_must_go_on_by_their_speeds() -> None:
    standing = disbelieved(lambda time_s: seen(time_s, target_qd=elbow(0.5)))
    assert standing[0] == pytest.approx(ANGLE_TOLERANCE / 0.5, abs=0.008)
    assert standing[1] == "The controller's angles do not move as its speeds say: they are 0.012 rad apart."

    def moving(time_s: float) -> ArmState:
        angles = tuple(np.add(Q_REF, elbow(0.5 * time_s)).tolist())
        return seen(time_s, q=angles, target_q=angles, target_qd=elbow(0.5))

    assert disbelieved(moving) == (math.inf, "")


def test_measured_angles_must_follow_their_targets() -> None:
    def stuck(time_s: float) -> ArmState:
        angles = tuple(np.add(Q_REF, elbow(0.6 * time_s)).tolist())
        return seen(time_s, target_q=angles, target_qd=elbow(0.6))

    time_s, why = disbelieved(stuck)
    assert time_s == pytest.approx(0.1 / 0.6, abs=0.008)
    assert why == "The controller's measured angles are 0.101 rad from their targets."


class Deaf(VirtualArm):
    """Which takes its commands, and runs none of them."""

    def send(self, command: Command) -> None:
        self.commands.append((self.clock.time_s, command))


def noticed_s(speed: float, scaling: float = 1.0, mode: SafetyMode = SafetyMode.NORMAL) -> float | None:
    """After which time of an order an arm that stands is found out."""
    fresh = Freshness()
    for time_s in np.arange(0, 5, 0.008):
        try:
            fresh.check(float(time_s), seen(float(time_s), speed_scaling=scaling, safety_mode=mode))
        except RunError:
            return float(time_s)
        fresh.sent(SpeedJ(elbow(speed), 2.0, 0.016))
    return None


def test_an_arm_that_stands_is_found_out_when_it_should_have_moved_by_the_tolerance() -> None:
    slowest_s = REACTION_S + LATE_S
    assert noticed_s(1.0) == pytest.approx(slowest_s + math.sqrt(2 * ANGLE_TOLERANCE / 2.0), abs=0.03)
    assert noticed_s(0.05) == pytest.approx(slowest_s + 0.0125 + ANGLE_TOLERANCE / 0.05, abs=0.05)
    assert noticed_s(1.0, scaling=0.0) is None, "the slider tells that it stands"
    assert noticed_s(1.0, mode=SafetyMode.PROTECTIVE_STOP) is None


def test_the_sentence_says_what_was_sent_what_was_seen_and_what_to_look_at() -> None:
    env = URReacher2Env(Deaf(VirtualClock()), "40ms")
    env.reset(seed=0)
    for _ in range(4):
        env.step(np.array([0.0, 0.5]))
    with pytest.raises(RunError) as error:
        env.step(np.array([0.0, 0.5]))
    assert str(error.value) == (
        "The arm does not obey, or what it shows is old: it was told to move with up to 0.32 rad/s, and shows angles "
        "that are 0.010 rad from where that leads to within 0.08 s, with the safety mode NORMAL and its speed scaled "
        "to 100%. Look whether the controller is in remote control, whether a program runs at its teach pendant, and "
        "whether the speed slider there is at 0."
    )
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.ones(2))


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


@pytest.mark.parametrize("profile", ["cb3", "e"])
def test_nor_by_the_driver_with_latency_jitter_and_noise(profile: ProfileName) -> None:
    """Orders at random, of which none is the same for longer than 40 ms."""
    rng = np.random.default_rng(0)
    link = ProxiedController(lambda states: states[-1:], profile=profile, noise=True, jitter_ticks=1)
    order = lambda: SpeedJ((0.0, *rng.uniform(-1, 1, 2), 0.0, 0.0, 0.0), 2.0)  # noqa: E731
    ended = drive_to_the_edge(link, order, 3.0)
    assert (ended.text, ended.connections) == ("", 1)
    assert ended.packages == pytest.approx(3.0 / link.period_s, abs=300)


@pytest.mark.parametrize("env_dt", ["10ms", "40ms"])
def test_random_actions_find_out_an_arm_that_does_not_obey(env_dt: str) -> None:
    arm = Deaf(VirtualClock())
    with pytest.raises(RunError, match="The arm does not obey"):
        play(arm, env_dt, 0, "normal")
    assert [type(command) for _, command in arm.commands[:3]] == [StopJ, MoveJ, SpeedJ]
    assert arm.commands[-1][1] == StopJ(2.0), "also one that begins to obey then"
