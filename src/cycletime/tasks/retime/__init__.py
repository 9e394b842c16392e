"""Gymnasium's MuJoCo environments, and Pendulum, with another time step: `retime`.

``retime("Hopper-v5", "2ms")`` steps by 2 ms instead of 8 ms. Rewards are multiplied so that returns stay comparable per
second, and the time limit stays the same in seconds. What is known of each environment's reward stands in `table`.
"""

from cycletime.tasks.retime.env import WorldComparison, compare_worlds, own_time_limit, own_time_step, retime
from cycletime.tasks.retime.reward_terms import (
    BUILT_IN,
    RETIMINGS,
    AttributeClock,
    Clock,
    Kind,
    MujocoClock,
    Retiming,
    RewardTerm,
    TimeStep,
    register_retiming,
)

__all__ = [
    "BUILT_IN",
    "RETIMINGS",
    "AttributeClock",
    "Clock",
    "Kind",
    "MujocoClock",
    "Retiming",
    "RewardTerm",
    "TimeStep",
    "WorldComparison",
    "compare_worlds",
    "own_time_limit",
    "own_time_step",
    "register_retiming",
    "retime",
]
