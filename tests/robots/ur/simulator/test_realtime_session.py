import struct

import pytest

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.profile import PROFILES, ProfileName, SimulatorSettings
from cycletime.robots.ur.simulator.text_sessions import RealtimeSession, encode_packet
from cycletime.robots.ur.types import ArmState, RobotMode, RuntimeState, SafetyMode

STATE = ArmState(
    time_s=12.5,
    q=(1.5, 2.5, 3.5, 4.5, 5.5, 6.5),
    qd=(-0.1, -0.2, -0.3, -0.4, -0.5, -0.6),
    target_q=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    target_qd=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
    robot_mode=RobotMode.RUNNING,
    safety_mode=SafetyMode.PROTECTIVE_STOP,
    runtime_state=RuntimeState.PLAYING,
    speed_scaling=0.5,
)


def test_values_stand_at_the_published_offsets() -> None:
    data = encode_packet(STATE, 1220)
    assert len(data) == 1220
    assert struct.unpack_from(">i", data, 0) == (1220,)
    expected = {4: 12.5, 12: 1.0, 60: 0.1, 252: 1.5, 300: -0.1, 756: 7.0, 812: 3.0, 940: 0.5, 1052: 2.0}
    assert {offset: struct.unpack_from(">d", data, offset)[0] for offset in expected} == expected


@pytest.mark.parametrize(("profile", "length"), [("cb3", 1140), ("e", 1220)])
def test_packets_tell_the_state_in_the_length_of_their_version(profile: ProfileName, length: int) -> None:
    controller = Controller(SimulatorSettings(profile=PROFILES[profile]))
    session = RealtimeSession(controller)
    session.receive(b"speedj([0, 0.1, 0, 0, 0, 0], 2, 1)\n")
    for _ in range(5):
        controller.advance()
    data, state = session.stream(), controller.state
    assert len(data) == length
    assert struct.unpack_from(">13d", data, 4) == (state.time_s, *state.target_q, *state.target_qd)
    assert struct.unpack_from(">12d", data, 252) == (*state.q, *state.qd)
    told = [struct.unpack_from(">d", data, offset)[0] for offset in (756, 812, 1052)]
    assert told == [7, 1, RuntimeState.PLAYING]


def test_lines_are_run_however_they_arrive() -> None:
    controller = Controller()
    session = RealtimeSession(controller)
    for part in (b"stopj(2)\nspee", b"dj([0, 0.1, 0, 0, 0, 0],", b" 2, 1)\nnonsense\n"):
        assert session.receive(part) == b""
    for _ in range(10):
        controller.advance()
    assert controller.state.target_qd[1] == pytest.approx(0.1)
    assert "'nonsense' is no call" in controller.log[-1][1]
