import pytest

from cycletime.robots.ur.types import RobotMode, SafetyMode, WireError, robot_status_bits, safety_status_bits
from cycletime.robots.ur.wire.dashboard import LineParser, encode_line


def test_lines_are_found_however_tcp_tears_and_merges_them() -> None:
    parser = LineParser()
    assert parser.feed(b"robotm") == []
    assert parser.feed(b"ode\nsafety") == ["robotmode"]
    assert parser.feed(b"mode\r\nquit\n") == ["safetymode", "quit"]
    assert encode_line("quit") == b"quit\n"


def test_a_line_without_end_is_an_error() -> None:
    with pytest.raises(WireError, match="not ended"):
        LineParser().feed(bytes(70000))


def test_status_bits_are_as_rtde_counts_them() -> None:
    assert safety_status_bits(SafetyMode.NORMAL) == 1
    assert safety_status_bits(SafetyMode.PROTECTIVE_STOP) == 1 << 2 | 1 << 10
    assert safety_status_bits(SafetyMode.ROBOT_EMERGENCY_STOP) == 1 << 6 | 1 << 7 | 1 << 10
    assert safety_status_bits(SafetyMode.AUTOMATIC_MODE_SAFEGUARD_STOP) == 1 << 10
    assert robot_status_bits(RobotMode.RUNNING, program_running=True) == 3
    assert robot_status_bits(RobotMode.POWER_OFF, program_running=False) == 0
