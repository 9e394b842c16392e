"""The driver's loop in virtual time: re-sending, the dead-man chain, and every fault of the link."""

import math
from itertools import pairwise

import pytest

from cycletime.robots.ur.driver.channel import DriverReport, Phase
from cycletime.robots.ur.driver.driver import DriverTimeouts
from cycletime.robots.ur.freshness import Freshness
from cycletime.robots.ur.reacher_env import MOVE_TO_START
from cycletime.robots.ur.safety import Override
from cycletime.robots.ur.types import Command, MoveJ, RobotMode, SafetyMode, SpeedJ, StopJ
from cycletime.ur5 import Q_REF
from tests.robots.ur.virtual import VirtualAgent, VirtualArm, VirtualClock, elbow, make_driver

FORWARD = SpeedJ(elbow(-0.3), 2.0)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def arm(clock: VirtualClock) -> VirtualArm:
    return VirtualArm(clock)


def drive(arm: VirtualArm, packages: int, command: Command | None = FORWARD, every: int = 5) -> VirtualAgent:
    """An agent that orders the same anew with every fifth package, and leaves after so many."""

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        if command is not None and report.packages % every == 1:
            agent.wants(command)
        return report.packages >= packages

    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    return agent


def test_the_newest_order_is_sent_anew_with_each_package_as_a_line_that_ends_soon(arm: VirtualArm) -> None:
    drive(arm, 50)
    speeds = [command for _, command in arm.commands if isinstance(command, SpeedJ)]
    assert len(speeds) == 50
    assert set(speeds) == {SpeedJ(elbow(-0.3), 2.0, 0.016)}
    times = [time_s for time_s, command in arm.commands if isinstance(command, SpeedJ)]
    assert [after - before for before, after in pairwise(times)] == pytest.approx([0.008] * 49)


def test_nothing_is_sent_before_the_first_order(arm: VirtualArm) -> None:
    drive(arm, 20, command=None)
    assert [command for _, command in arm.commands] == [StopJ(3.0)]  # at the end


def test_in_the_end_the_arm_was_stopped_and_stands(arm: VirtualArm) -> None:
    agent = drive(arm, 100)
    assert arm.commands[-1][1] == StopJ(3.0)
    assert arm.speed < 0.01
    assert (agent.reports[-1].phase, agent.reports[-1].text) == (Phase.ENDED, "")
    assert not arm.connected


@pytest.mark.parametrize(("speed", "within_s"), [(0.3, 0.5), (1.0, 0.7)])
def test_an_agent_that_falls_silent_leaves_a_standing_arm(arm: VirtualArm, speed: float, within_s: float) -> None:
    """Its process hangs, or was killed and nobody noticed: the orders grow old."""
    command, moved_s, silent_from = SpeedJ(elbow(-speed), 5.0), 0.0, 120

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        nonlocal moved_s
        if report.packages <= silent_from:
            agent.wants(command)
        if arm.speed >= 0.01:
            moved_s = agent.clock.time_s
        return report.packages >= silent_from + 150

    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    assert agent.newest is not None
    assert 0.2 < moved_s - agent.newest.sent_s <= within_s
    first_stop = next(place for place, (_, command) in enumerate(arm.commands) if isinstance(command, StopJ))
    assert arm.commands[first_stop][0] - agent.newest.sent_s == pytest.approx(0.2, abs=0.0081)
    assert [command for _, command in arm.commands[first_stop:]] == [StopJ(3.0)] * 2  # then, and when the agent is gone


@pytest.mark.parametrize(("speed", "within_s"), [(0.3, 0.2), (1.0, 0.3)])
def test_without_a_driver_the_arm_stops_by_itself(arm: VirtualArm, speed: float, within_s: float) -> None:
    """SIGKILL leaves no time to send anything: the last line ends."""

    class Killed(BaseException):
        pass

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        agent.wants(SpeedJ(elbow(-speed), 5.0))
        if report.packages > 120:
            arm.send = arm.receive = None  # type: ignore[assignment,method-assign]  # no code of the driver runs any more
            raise Killed
        return False

    agent = VirtualAgent(arm.clock, script)
    with pytest.raises((Killed, TypeError)):
        make_driver(arm, agent).run()
    assert arm.speed > 0.9 * speed
    assert arm.standstill_s() <= within_s


def test_a_move_is_sent_once_and_lasts_while_the_agent_gives_signs_of_life(arm: VirtualArm) -> None:
    goal = (*Q_REF[:2], Q_REF[2] - 0.4, *Q_REF[3:])

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        agent.wants(MoveJ(goal, time_s=2.0) if report.packages == 1 else None)
        return report.packages >= 300

    make_driver(arm, VirtualAgent(arm.clock, script)).run()
    assert [type(command) for _, command in arm.commands] == [MoveJ, StopJ]
    assert arm.arm.q == pytest.approx(goal, abs=1e-6)


def test_a_move_of_a_silent_agent_is_stopped(arm: VirtualArm) -> None:
    goal = (*Q_REF[:2], Q_REF[2] - 0.4, *Q_REF[3:])

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        if report.packages == 1:
            agent.wants(MoveJ(goal, time_s=2.0))
        return report.packages >= 300

    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    assert [type(command) for _, command in arm.commands] == [MoveJ, StopJ, StopJ]
    assert arm.commands[1][0] - arm.commands[0][0] == pytest.approx(1.0, abs=0.009)
    assert abs(arm.arm.q[2] - goal[2]) > 0.1
    assert agent.reports[-1].override is Override.TOO_OLD


def test_an_order_that_is_no_number_stops_the_arm_and_is_told(arm: VirtualArm) -> None:
    agent = drive(arm, 20, SpeedJ(elbow(math.nan)))
    assert {command for _, command in arm.commands} == {StopJ(3.0)}
    assert agent.reports[-1].override is Override.NOT_A_NUMBER
    assert agent.reports[-1].overridden == 20


def test_a_frozen_stream_stops_the_arm_and_voids_what_was_ordered(arm: VirtualArm) -> None:
    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        if report.packages <= 100 and report.phase is Phase.DRIVING:
            agent.wants(FORWARD)
        arm.frozen = report.packages == 100 and report.phase is not Phase.SILENT
        return report.packages >= 150

    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    silent = next(report for report in agent.reports if report.phase is Phase.SILENT)
    assert silent.text == "No state came."
    thawed = agent.reports[agent.reports.index(silent) + 1]
    assert thawed.phase is Phase.DRIVING
    assert thawed.missed == 12  # of the 0.1 s
    *_, last, stop, at_the_end = arm.commands
    assert [type(command) for _, command in (last, stop, at_the_end)] == [SpeedJ, StopJ, StopJ]
    assert stop[0] - last[0] == pytest.approx(0.1, abs=0.009)


def test_a_move_goes_on_through_a_short_silence(arm: VirtualArm) -> None:
    goal = (*Q_REF[:2], Q_REF[2] - 0.4, *Q_REF[3:])

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        agent.wants(MoveJ(goal, time_s=2.0) if report.packages == 1 and agent.newest is None else None)
        arm.frozen = report.packages == 50 and report.phase is not Phase.SILENT
        return report.packages >= 300

    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    assert Phase.SILENT in {report.phase for report in agent.reports}
    assert [type(command) for _, command in arm.commands] == [MoveJ, StopJ]
    assert arm.arm.q == pytest.approx(goal, abs=1e-6)


def test_a_move_that_was_ordered_in_silence_is_not_begun_and_its_agent_is_told() -> None:
    class Arm(VirtualArm):
        def pass_time(self, time_s: float) -> None:
            super().pass_time(time_s)
            if self.frozen:
                agent.wants(MOVE_TO_START)

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        arm.frozen = report.packages == 50 and report.phase is not Phase.SILENT
        return report.packages >= 60

    arm = Arm(VirtualClock())
    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    assert {type(command) for _, command in arm.commands} == {StopJ}
    assert agent.newest is not None
    assert (agent.reports[-1].override, agent.reports[-1].order) == (Override.UNSEEN, agent.newest.number)


def test_a_stream_that_stays_frozen_is_begun_anew(arm: VirtualArm) -> None:
    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        if report.phase is Phase.RECONNECTING:
            arm.frozen = False
        elif report.packages == 10:
            arm.frozen = True
        return report.packages >= 20

    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    phases = list(dict.fromkeys(report.phase for report in agent.reports))
    assert phases == [Phase.DRIVING, Phase.SILENT, Phase.RECONNECTING, Phase.ENDED]
    assert arm.attempts == 2
    assert agent.reports[-1].missed == pytest.approx(125, abs=13)  # a second


def test_a_dropped_connection_is_made_again_and_old_orders_are_void(arm: VirtualArm) -> None:
    lost_s = math.inf

    class LateClock(VirtualClock):
        def sleep_until(self, time_s: float) -> None:
            arm.pass_time(time_s - self.time_s)  # the arm moves on meanwhile
            arm.reachable = self.time_s > lost_s + 1.9

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        nonlocal lost_s
        if report.packages <= 100 and report.phase is Phase.DRIVING:
            agent.wants(FORWARD)
            if report.packages == 100:
                arm.reachable, lost_s = False, arm.clock.time_s
        return report.packages >= 140

    arm.clock = LateClock()
    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    assert arm.attempts == 6  # one at first, and one each half second after the loss until it works
    assert Phase.RECONNECTING in {report.phase for report in agent.reports}
    assert agent.reports[-1].text == ""
    after = [command for time_s, command in arm.commands if time_s > lost_s]
    assert after == [StopJ(3.0)]  # at the end; the order before the loss is not sent again


def test_a_controller_that_stays_away_ends_the_run(arm: VirtualArm) -> None:
    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        arm.reachable = report.packages < 10
        return False

    agent = VirtualAgent(arm.clock, script)
    start_s = arm.clock.time_s
    ended = make_driver(arm, agent).run()
    assert ended.text == "The controller was lost and not found again in 10 s: The controller does not answer."
    assert arm.clock.time_s - start_s == pytest.approx(10.1, abs=0.5)


def test_a_controller_that_answers_and_sends_no_more_states_ends_the_run(arm: VirtualArm) -> None:
    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        arm.frozen = report.packages >= 10
        return arm.clock.time_s > start_s + 60

    start_s = arm.clock.time_s
    ended = make_driver(arm, VirtualAgent(arm.clock, script)).run()
    assert ended.text == "The controller was lost and not found again in 10 s: No state came."
    assert arm.clock.time_s - start_s == pytest.approx(10.2, abs=0.5)
    assert arm.attempts == pytest.approx(10, abs=1)  # each second one


def test_a_controller_whose_time_stands_still_ends_the_run(clock: VirtualClock) -> None:
    """In lock-step it sends its state to everybody who connects, and waits."""

    class Waiting(VirtualArm):
        def connect(self) -> None:
            super().connect()
            self.frozen = False

        def pass_time(self, time_s: float) -> None:
            self.clock.time_s += time_s
            self.frozen = True

    start_s = clock.time_s
    agent = VirtualAgent(clock, lambda agent, report: clock.time_s > start_s + 60)
    ended = make_driver(Waiting(clock), agent).run()
    assert ended.text == "The controller was lost and not found again in 10 s: No state came."
    assert ended.packages == pytest.approx(10, abs=2)


def test_a_controller_that_is_not_there_ends_the_run_at_once(arm: VirtualArm) -> None:
    arm.reachable = False
    ended = make_driver(arm, VirtualAgent(arm.clock)).run()
    assert (ended.phase, ended.text, arm.attempts) == (Phase.ENDED, "The controller does not answer.", 1)


def test_after_a_protective_stop_the_arm_is_released_and_waits_for_new_orders(arm: VirtualArm) -> None:
    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        if report.packages < 50 or report.phase is Phase.HELD:
            agent.wants(FORWARD)  # an agent that does not look, and goes on
        if report.packages == 50 and not report.protective_stops:
            arm.stop_protectively()
        return report.packages >= 1000

    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    asked = [(time_s - arm.stopped_s, line) for time_s, line in arm.questions]
    assert [line for _, line in asked] == ["close safety popup", "unlock protective stop"]
    assert asked[1][0] == pytest.approx(5.5, abs=0.05)
    assert agent.reports[-1].protective_stops == 1
    stopped = [command for time_s, command in arm.commands if time_s > arm.stopped_s + 0.02]
    assert stopped == [StopJ(3.0)]  # at the end: nothing during the stop, and no old order after it


def test_a_release_is_asked_for_by_the_controller_s_clock_which_may_be_slower() -> None:
    class SlowArm(VirtualArm):
        def pass_time(self, time_s: float) -> None:
            super().pass_time(time_s)
            self.clock.time_s += 2 * time_s

    arm = SlowArm(VirtualClock())

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        if report.packages == 10:
            arm.stop_protectively()
        return report.packages >= 1000

    make_driver(arm, VirtualAgent(arm.clock, script), freshness=Freshness(late_s=100.0)).run()
    asked = [time_s - arm.stopped_s for time_s, line in arm.questions if line == "unlock protective stop"]
    assert asked == [pytest.approx(3 * 5.5, abs=0.1)]


def test_a_release_that_is_refused_ends_the_run_and_quotes_the_controller(arm: VirtualArm) -> None:
    arm.refuses_release = True

    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        if report.packages == 10:
            arm.stop_protectively()
        return False

    ended = make_driver(arm, VirtualAgent(arm.clock, script)).run()
    assert "did not release its protective stop, though asked 5 times; it said 'Cannot unlock" in ended.text
    assert arm.clock.time_s - arm.stopped_s == pytest.approx(5.5 + 5, abs=0.1)


def test_the_eleventh_protective_stop_in_ten_minutes_ends_the_run(arm: VirtualArm) -> None:
    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        if report.phase is Phase.DRIVING and report.packages % 10 == 0:
            arm.stop_protectively()
        return False

    ended = make_driver(arm, VirtualAgent(arm.clock, script)).run()
    assert ended.protective_stops == 11
    assert "made 11 protective stops within 600 s, and no more than 10 are released" in ended.text
    assert [line for _, line in arm.questions].count("unlock protective stop") == 10


@pytest.mark.parametrize(
    "mode",
    [SafetyMode.ROBOT_EMERGENCY_STOP, SafetyMode.SYSTEM_EMERGENCY_STOP, SafetyMode.VIOLATION, SafetyMode.FAULT],
)
def test_an_emergency_stop_ends_the_run_at_once_and_nothing_is_released(arm: VirtualArm, mode: SafetyMode) -> None:
    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        agent.wants(FORWARD)
        if report.packages == 50:
            arm.safety_mode = mode
        return False

    agent = VirtualAgent(arm.clock, script)
    ended = make_driver(arm, agent).run()
    assert f"safety mode is {mode.name}: see to it at the teach pendant" in ended.text
    assert arm.questions == []
    assert [type(command) for _, command in arm.commands[50:]] == [StopJ]


def test_an_arm_without_power_is_not_driven(arm: VirtualArm) -> None:
    arm.robot_mode = RobotMode.POWER_OFF
    ended = make_driver(arm, VirtualAgent(arm.clock)).run()
    assert ended.text == "The robot's mode is POWER_OFF, and must be RUNNING: power it on at the teach pendant."


def test_a_closed_gate_lets_the_arm_go_on(arm: VirtualArm) -> None:
    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        agent.wants(FORWARD)
        arm.safety_mode = SafetyMode.SAFEGUARD_STOP if 50 <= report.packages < 100 else SafetyMode.NORMAL
        return report.packages >= 150

    agent = VirtualAgent(arm.clock, script)
    make_driver(arm, agent).run()
    held = [report.packages for report in agent.reports if report.phase is Phase.HELD]
    assert held == list(range(51, 101))
    assert arm.questions == []
    assert sum(isinstance(command, SpeedJ) for _, command in arm.commands) == 100


def test_an_agent_that_leaves_during_a_reconnection_is_not_waited_for(arm: VirtualArm) -> None:
    def script(agent: VirtualAgent, report: DriverReport) -> bool:
        arm.reachable = report.packages < 10
        return report.phase is Phase.RECONNECTING

    ended = make_driver(arm, VirtualAgent(arm.clock, script), DriverTimeouts(give_up_s=1e9)).run()
    assert ended.phase is Phase.ENDED
    assert arm.attempts == 1


def test_the_reset_of_the_task_is_within_its_own_limits(arm: VirtualArm) -> None:
    agent = drive(arm, 2, MOVE_TO_START)
    assert agent.reports[-1].override is Override.NONE
    assert arm.commands[0][1] == MOVE_TO_START
