"""Carry reinforcement-learning hyper-parameters from one action-cycle time to another."""

from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError

__all__ = ["Duration", "InputError", "cycle_steps"]
