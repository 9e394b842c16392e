"""The words that driver, simulator and tasks share: the numbers of commands, and what safety modes allow."""

from dataclasses import astuple

import pytest

from cycletime.robots.ur.types import Command, MoveJ, SafetyMode, SpeedJ, StopJ, joints_of, numbers_of

SIX = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


@pytest.mark.parametrize("command", [SpeedJ(SIX, 2.0, 0.008), MoveJ(SIX), StopJ(3.0)])
def test_the_numbers_of_a_command_are_its_fields_one_after_the_other(command: Command) -> None:
    flat = [number for part in astuple(command) for number in (part if isinstance(part, tuple) else (part,))]
    assert numbers_of(command) == flat
    assert joints_of(command) == (() if isinstance(command, StopJ) else SIX)


def test_an_arm_moves_in_two_safety_modes_and_waits_in_three() -> None:
    assert {mode.name for mode in SafetyMode if mode.allows_motion} == {"NORMAL", "REDUCED"}
    waits = {"PROTECTIVE_STOP", "SAFEGUARD_STOP", "AUTOMATIC_MODE_SAFEGUARD_STOP"}
    assert {mode.name for mode in SafetyMode if mode.may_pass} == waits
