"""What follows when the controller's own safety system stops the arm.

A protective stop is released after a while, so many times and no more. Whatever a person did, or has to see to (an
emergency stop, a violation, a fault, an arm without power), ends the run: nothing is ever released there by a program.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum

from cycletime.robots.ur.types import ArmState, RobotMode, SafetyMode


class Wish(IntEnum):
    """What is to be done now."""

    GO_ON = 0
    """The arm may be moved."""
    WAIT = 1
    """It may not, yet."""
    UNLOCK = 2
    """Ask the dashboard to release the protective stop, and tell its reply by `unlock_replied`."""
    ABORT = 3
    """End the run, for the reason given."""


@dataclass(frozen=True)
class StopRules:
    """How protective stops are met."""

    wait_s: float = 5.5
    """Before the release is asked for: a controller refuses it for 5 s."""
    retry_s: float = 1.0
    """Between requests."""
    requests: int = 5
    """Requests without success after which the run ends."""
    most: int = 10
    """Protective stops that are released, in any window; one more ends the run."""
    window_s: float = 600.0
    """The length of that window."""


class Stops:
    """Sees each package of the controller and says what to do; its times are the controller's own."""

    def __init__(self, rules: StopRules = StopRules()) -> None:  # noqa: B008 - it is frozen
        """Begin with an arm that has not been stopped."""
        self._rules = rules
        self._stopped_at: deque[float] = deque()
        self._stopped = False
        self._next_request_s = 0.0
        self._requests = 0
        self._last_reply = ""
        self.count = 0
        """Protective stops so far."""
        self.reason = ""
        """Why the run must end, in a sentence, once it must."""

    def see(self, state: ArmState, now_s: float) -> Wish:
        """What to do after a package that came at this time."""
        if not self.reason:
            self.reason = self._fatal(state)
        if self.reason:
            return Wish.ABORT
        if state.safety_mode is SafetyMode.PROTECTIVE_STOP:
            return self._protective_stop(now_s)
        self._stopped = False
        return Wish.GO_ON if state.safety_mode.allows_motion else Wish.WAIT

    def unlock_replied(self, reply: str) -> None:
        """The dashboard's reply to a request; whether it helped shows in the packages that follow."""
        self._last_reply = reply

    def _protective_stop(self, now_s: float) -> Wish:
        if not self._stopped:
            self._begin(now_s)
        elif now_s >= self._next_request_s:
            if self._requests == self._rules.requests:
                self.reason = (
                    f"The controller did not release its protective stop, though asked {self._requests} times; "
                    f"it said {self._last_reply!r}: see to it at the teach pendant."
                )
            else:
                self._requests += 1
                self._next_request_s = now_s + self._rules.retry_s
                return Wish.UNLOCK
        return Wish.ABORT if self.reason else Wish.WAIT

    def _begin(self, now_s: float) -> None:
        self._stopped, self._requests, self._last_reply = True, 0, ""
        self._next_request_s = now_s + self._rules.wait_s
        self.count += 1
        self._stopped_at.append(now_s)
        while self._stopped_at[0] <= now_s - self._rules.window_s:
            self._stopped_at.popleft()
        if len(self._stopped_at) > self._rules.most:
            self.reason = (
                f"The controller made {len(self._stopped_at)} protective stops within {self._rules.window_s:g} s, "
                f"and no more than {self._rules.most} are released: look for what the arm runs into."
            )

    def _fatal(self, state: ArmState) -> str:
        mode = state.safety_mode
        if not (mode.allows_motion or mode.may_pass):
            return f"The controller's safety mode is {mode.name}: see to it at the teach pendant, then start again."
        if state.robot_mode is not RobotMode.RUNNING:
            return (
                f"The robot's mode is {state.robot_mode.name}, and must be RUNNING: power it on at the teach pendant."
            )
        return ""
