"""Whether an arm does what it is told: one that stands still for long while its commands should move it does not.

A controller in local control takes scripts and runs none, and nothing in its stream tells so. Speeds that change their
signs with every cycle would not move an arm by much, so commands are not compared with what is seen themselves, but the
speeds that they lead to by the law of the controller: towards the command, with its acceleration. An arm that obeys
shows these some 24 ms later.
"""

from __future__ import annotations

import numpy as np

from cycletime.errors import RunError
from cycletime.robots.ur.arm import towards
from cycletime.robots.ur.types import JOINTS, STANDING, ArmState, Command, Joints, SpeedJ

EXPECTED = 0.1
"""rad/s from which an arm should be seen to move: with 2 rad/s^2 it gets there in 50 ms."""
PATIENCE_S = 0.5
"""The controller's time for which it may stand nevertheless: many times what commands take to show."""

LOOK_AT = (
    "whether the controller is in remote control, whether a program runs at its teach pendant, and whether the speed "
    "slider there is at 0"
)
"""Why an arm may not do what it is told, though nothing has stopped it."""
_STILL: Joints = (0.0,) * JOINTS


class Obedience:
    """Watches an arm from one package to the next, in one episode."""

    def __init__(self, longest_s: float) -> None:
        """Begin.

        Args:
            longest_s: Between two packages, for which a command works: after a longer gap nobody knows what was done.
        """
        self._longest_s = longest_s
        self._expected = _STILL
        self._unmet_s, self._fastest = 0.0, 0.0
        self._time_s: float | None = None

    def see(self, state: ArmState, command: Command | None) -> None:
        """Take in a package, and the command that the arm had since the one before; None if that was replaced.

        Raises:
            RunError: if the arm does not obey.
        """
        passed_s = 0.0 if self._time_s is None else state.time_s - self._time_s
        self._time_s = state.time_s
        if not state.stands or _fastest(state.target_qd) >= STANDING:
            self._expected = state.target_qd
            self._unmet_s = self._fastest = 0.0
        elif isinstance(command, SpeedJ) and passed_s <= self._longest_s and state.safety_mode.allows_motion:
            self._expect(state, command, passed_s)
        else:
            self._expected = _STILL

    def _expect(self, state: ArmState, command: SpeedJ, passed_s: float) -> None:
        """An arm that stands should have gone on by the command."""
        speeds = towards(np.array(self._expected), np.array(command.qd), command.acceleration * passed_s)
        self._expected = tuple(speeds.tolist())
        self._fastest = max(self._fastest, _fastest(command.qd))
        if _fastest(self._expected) < EXPECTED:
            return
        self._unmet_s += passed_s
        if self._unmet_s >= PATIENCE_S:
            raise RunError(
                f"The arm does not obey: it was told to move with up to {self._fastest:.2g} rad/s, and has stood still "
                f"for {PATIENCE_S:g} s in which it should have moved, with the safety mode {state.safety_mode.name} "
                f"and its speed scaled to {state.speed_scaling:.0%}. Look {LOOK_AT}."
            )


def _fastest(speeds: Joints) -> float:
    return max(map(abs, speeds))
