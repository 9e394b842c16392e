"""Checks of a driven arm: that it moves when commanded, and that its controller's clock runs at the expected pace.

A controller in local control takes scripts and runs none, and nothing in its stream shows it. Speeds that change their
signs with every cycle would not move an arm by much, so measured speeds are not compared with the commands themselves,
but with the speeds that these lead to by the law of the controller: towards the command, with its acceleration. An arm
that obeys shows these some 24 ms later.
"""

from __future__ import annotations

import numpy as np

from cycletime.errors import InputError, RunError
from cycletime.robots.ur.arm import accelerate_towards
from cycletime.robots.ur.types import JOINTS, STANDING_SPEED, ArmState, Command, Joints, SpeedJ

EXPECTED_SPEED = 0.1
"""rad/s from which an arm should be seen to move: with 2 rad/s^2 it gets there in 50 ms."""
STANDSTILL_TIMEOUT_S = 0.5
"""The controller's time for which it may stand nevertheless: many times what commands take to show."""

STANDSTILL_CAUSES = (
    "whether the controller is in remote control, whether a program runs at its teach pendant, and whether the speed "
    "slider there is at 0"
)
"""Why an arm may not move when commanded, though nothing has stopped it."""
_AT_REST: Joints = (0.0,) * JOINTS


class MotionCheck:
    """Watches an arm from one package to the next, in one episode."""

    def __init__(self, longest_s: float) -> None:
        """After a gap between packages of more than `longest_s` it is unknown what was done."""
        self._longest_s = longest_s
        self._expected = _AT_REST
        self._unmet_s, self._fastest = 0.0, 0.0
        self._time_s: float | None = None

    def see(self, state: ArmState, command: Command | None) -> None:
        """Take in a package, and the command that the arm had since the one before; None if that was replaced."""
        passed_s = 0.0 if self._time_s is None else state.time_s - self._time_s
        self._time_s = state.time_s
        if not state.stands or _fastest(state.target_qd) >= STANDING_SPEED:
            self._expected = state.target_qd
            self._unmet_s = self._fastest = 0.0
        elif isinstance(command, SpeedJ) and passed_s <= self._longest_s and state.safety_mode.allows_motion:
            self._expect(state, command, passed_s)
        else:
            self._expected = _AT_REST

    def _expect(self, state: ArmState, command: SpeedJ, passed_s: float) -> None:
        """An arm that stands should have gone on by the command."""
        speeds = accelerate_towards(np.array(self._expected), np.array(command.qd), command.acceleration * passed_s)
        self._expected = tuple(speeds.tolist())
        self._fastest = max(self._fastest, _fastest(command.qd))
        if _fastest(self._expected) < EXPECTED_SPEED:
            return
        self._unmet_s += passed_s
        if self._unmet_s >= STANDSTILL_TIMEOUT_S:
            raise RunError(
                f"The arm does not obey: it was told to move with up to {self._fastest:.2g} rad/s, and has stood still "
                f"for {STANDSTILL_TIMEOUT_S:g} s in which it should have moved, with the safety mode "
                f"{state.safety_mode.name} "
                f"and its speed scaled to {state.speed_scaling:.0%}. Look {STANDSTILL_CAUSES}."
            )


def _fastest(speeds: Joints) -> float:
    return max(map(abs, speeds))


_PACE_TOLERANCE = 0.2
"""The share by which they may differ."""
_DELAY_TOLERANCE_S = 0.5
"""Of real time, by which a busy machine may delay either side."""


def check_pace(controller_s: float, ours_s: float, pace: float) -> None:
    """Refuse a controller whose clock went on by another time than ours, at `pace` of our seconds in a real one."""
    apart_s = abs(controller_s - ours_s)
    if apart_s > _PACE_TOLERANCE * ours_s and apart_s > _DELAY_TOLERANCE_S * pace:
        raise InputError(
            f"The pace is {pace:g}, and the controller's clock went on by {controller_s:.3g} s in {ours_s:.3g} s: give "
            f"the pace that it is simulated at, here about {pace * controller_s / ours_s:.2g}."
        )
