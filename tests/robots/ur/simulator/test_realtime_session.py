import pytest

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.profile import PROFILES, ProfileName, SimulatorSettings
from cycletime.robots.ur.simulator.text_sessions import RealtimeSession
from cycletime.robots.ur.types import RuntimeState
from cycletime.robots.ur.wire.stream import PacketParser


@pytest.mark.parametrize(("profile", "length"), [("cb3", 1140), ("e", 1220)])
def test_packets_tell_the_state_in_the_length_of_their_version(profile: ProfileName, length: int) -> None:
    controller = Controller(SimulatorSettings(profile=PROFILES[profile]))
    session = RealtimeSession(controller)
    session.receive(b"speedj([0, 0.1, 0, 0, 0, 0], 2, 1)\n")
    for _ in range(5):
        controller.advance()
    data = session.stream()
    assert len(data) == length
    (packet,) = PacketParser().feed(data)
    state = controller.state
    assert (packet.time_s, packet.actual_q, packet.actual_qd) == (state.time_s, state.q, state.qd)
    assert (packet.target_q, packet.target_qd) == (state.target_q, state.target_qd)
    assert (packet.robot_mode, packet.safety_mode, packet.program_state) == (7, 1, RuntimeState.PLAYING)


@pytest.mark.parametrize(("version", "length"), [("3.1", 1044), ("3.3.4.310", 1060), ("3.9.1.2", 1108)])
def test_older_software_sends_shorter_packets(version: str, length: int) -> None:
    controller = Controller(SimulatorSettings(profile=PROFILES["cb3"].with_version(version)))
    data = RealtimeSession(controller).stream()
    assert len(data) == length
    assert PacketParser().feed(data)[0].safety_mode == 1


def test_lines_are_run_however_they_arrive() -> None:
    controller = Controller()
    session = RealtimeSession(controller)
    for part in (b"stopj(2)\nspee", b"dj([0, 0.1, 0, 0, 0, 0],", b" 2, 1)\nnonsense\n"):
        assert session.receive(part) == b""
    for _ in range(10):
        controller.advance()
    assert controller.state.target_qd[1] == pytest.approx(0.1)
    assert "'nonsense' is no call" in controller.log[-1][1].message
