"""The numbers of a UR controller: its ports, and the bits by which RTDE tells its modes a second time."""

from __future__ import annotations

from cycletime.robots.ur.types import RobotMode, SafetyMode

DASHBOARD_PORT, REALTIME_PORT, RTDE_PORT = 29999, 30003, 30004
LARGEST_PORT = 65535
"""That any computer has."""

_SAFETY_BITS = {
    SafetyMode.NORMAL: (0,),
    SafetyMode.REDUCED: (1,),
    SafetyMode.PROTECTIVE_STOP: (2, 10),
    SafetyMode.RECOVERY: (3,),
    SafetyMode.SAFEGUARD_STOP: (4, 10),
    SafetyMode.SYSTEM_EMERGENCY_STOP: (5, 7, 10),
    SafetyMode.ROBOT_EMERGENCY_STOP: (6, 7, 10),
    SafetyMode.VIOLATION: (8, 10),
    SafetyMode.FAULT: (9, 10),
}


def safety_status_bits(mode: SafetyMode) -> int:
    """RTDE's `safety_status_bits` in a safety mode; bit 10, 'stopped due to safety', may stand alone."""
    return sum(1 << bit for bit in _SAFETY_BITS.get(mode, (10,)))


def robot_status_bits(mode: RobotMode, *, program_running: bool) -> int:
    """RTDE's `robot_status_bits`: bit 0 is 'power is on', bit 1 'program is running'."""
    return int(mode >= RobotMode.POWER_ON) | int(program_running) << 1
