import pytest

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.profile import PROFILES, ProfileName, SimulatorSettings
from cycletime.robots.ur.simulator.text_sessions import DashboardSession
from cycletime.robots.ur.types import SafetyMode


def session(profile: ProfileName = "cb3") -> DashboardSession:
    return DashboardSession(Controller(SimulatorSettings(profile=PROFILES[profile])))


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("robotmode", "Robotmode: RUNNING"),
        ("safetymode", "Safetymode: NORMAL"),
        ("running", "Program running: false"),
        ("programState", "STOPPED <unnamed>"),
        ("stop", "Stopped"),
        ("play", "Failed to execute: play"),
        ("close safety popup", "closing safety popup"),
        ("quit", "Disconnected"),
        ("dance", "could not understand: 'dance'"),
        ("is in remote control", "could not understand: 'is in remote control'"),
        ("unlock protective stop", "Protective stop releasing"),
        ("PolyscopeVersion", "URSoftware 3.15.8.106339 (Oct 25 2022)"),
    ],
)
def test_a_cb3_replies(line: str, reply: str) -> None:
    assert session().receive(line.encode() + b"\n") == reply.encode() + b"\n"


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("is in remote control", "true"),
        ("safetystatus", "Safetystatus: NORMAL"),
        ("get serial number", "20195500001"),
        ("PolyscopeVersion", "URSoftware 5.12.5.1101319 (Jul 06 2022)"),
    ],
)
def test_an_e_series_replies(line: str, reply: str) -> None:
    assert session("e").reply(line) == reply


def test_a_client_is_greeted_and_may_leave() -> None:
    it = session()
    assert it.greeting == b"Connected: Universal Robots Dashboard Server\n"
    assert not it.wants_to_leave
    it.receive(b"quit\n")
    assert it.wants_to_leave


def test_what_runs_is_told_and_can_be_stopped() -> None:
    controller = Controller()
    it = DashboardSession(controller)
    controller.run_line("speedj([0, 0.1, 0, 0, 0, 0], 2, 10)")
    assert it.receive(b"running\nstop\nrunning\n") == b"Program running: true\nStopped\nProgram running: false\n"


def test_power_and_brakes_are_given_and_taken() -> None:
    it = session()
    told = [
        it.reply(line) for line in ("power off", "robotmode", "power on", "robotmode", "brake release", "robotmode")
    ]
    assert told[1::2] == ["Robotmode: POWER_OFF", "Robotmode: IDLE", "Robotmode: RUNNING"]


def test_a_violation_needs_a_restart_of_the_safety_system() -> None:
    controller = Controller()
    it = DashboardSession(controller)
    controller.stop(SafetyMode.VIOLATION, "test")
    it.reply("brake release")
    assert it.reply("robotmode") == "Robotmode: POWER_OFF"
    it.reply("restart safety")
    it.reply("brake release")
    assert it.reply("robotmode") == "Robotmode: RUNNING"


def test_out_of_remote_control_an_e_series_only_answers_questions() -> None:
    controller = Controller(SimulatorSettings(profile=PROFILES["e"]))
    controller.in_remote_control = False
    it = DashboardSession(controller)
    assert it.reply("is in remote control") == "false"
    assert it.reply("robotmode") == "Robotmode: RUNNING"
    assert "remote control" in it.reply("unlock protective stop")
