"""Algorithm 1 in real time: act, send, then learn, at absolute deadlines, around a robot that does not wait."""

from typing import Literal, TypeAlias

LearnerName: TypeAlias = Literal["inline", "background"]
"""Who learns while the robot moves: the loop, within the cycle, or a thread beside it."""
