import math

import pytest

from cycletime.robots.ur.simulator.simulated_safety import refusal_reason
from cycletime.robots.ur.types import Command, MoveJ, SpeedJ, StopJ

Q = (0.0,) * 6


@pytest.mark.parametrize("command", [SpeedJ(Q), SpeedJ(Q, 40.0, 0.008), MoveJ(Q), MoveJ(Q, time_s=2.0), StopJ()])
def test_what_makes_sense_is_taken(command: Command) -> None:
    assert refusal_reason(command) is None


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (SpeedJ((math.nan, *Q[1:])), "speedj has a number that is not finite"),
        (StopJ(math.inf), "stopj has a number that is not finite"),
        (SpeedJ(Q[1:]), "speedj has 5 joint values, and the arm 6 joints"),
        (SpeedJ(Q, 0.0), "speedj needs an acceleration above 0"),
        (SpeedJ(Q, 1.0, -1.0), "no negative time"),
        (MoveJ(Q, 0.0), "movej needs an acceleration and a speed above 0"),
        (MoveJ(Q, 1.0, 0.0), "movej needs"),
        (StopJ(-1.0), "stopj needs a deceleration above 0"),
    ],
)
def test_what_makes_none_is_refused(command: Command, why: str) -> None:
    assert why in (refusal_reason(command) or "")
