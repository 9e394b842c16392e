"""What is known of each environment: its clock and every term of its reward.

Read from the sources of Gymnasium 1.4 (envs/mujoco/*_v5.py and envs/classic_control/pendulum.py). Weights are written
as their default numbers; they may be changed by keywords and do not matter here. None of these environments pays for
an event, and none has a difference that is not divided by a time step, so the sum of every term grows with the number
of steps. The one that needs care is HumanoidStandup, whose main term is a height divided by the *physics* step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from cycletime.errors import InputError
from cycletime.tasks.retime.clocks import AttributeClock, Clock, MujocoClock
from cycletime.tasks.retime.rewards import Kind, RewardTerm, check_terms


@dataclass(frozen=True)
class Retiming:
    """How to change the time step of one environment."""

    clock: Clock
    """Where its time step is kept."""
    terms: tuple[RewardTerm, ...]
    """The summands of its reward."""


FORWARD = RewardTerm("(x_after - x_before) / env_dt", Kind.VELOCITY, "reward_forward")
ALIVE = RewardTerm("1 while healthy", Kind.RATE, "reward_survive")


def _rate(formula: str, info: str) -> RewardTerm:
    return RewardTerm(formula, Kind.RATE, info)


_MUJOCO_TERMS = {
    "Reacher-v5": (
        _rate("-|fingertip - target|", "reward_dist"),
        _rate("-|action|^2", "reward_ctrl"),
    ),
    "Pusher-v5": (
        _rate("-0.5 |object - fingertip|", "reward_near"),
        _rate("-|object - goal|", "reward_dist"),
        _rate("-0.1 |action|^2", "reward_ctrl"),
    ),
    "InvertedPendulum-v5": (ALIVE,),
    "InvertedDoublePendulum-v5": (
        _rate("10 while the tip is above 1 m", "reward_survive"),
        _rate("-0.01 x^2 - (y - 2)^2 of the tip", "distance_penalty"),
        _rate("-0.001 w1^2 - 0.005 w2^2", "velocity_penalty"),  # joint velocities of the state, not differences
    ),
    "HalfCheetah-v5": (FORWARD, _rate("-0.1 |action|^2", "reward_ctrl")),
    "Hopper-v5": (FORWARD, ALIVE, _rate("-0.001 |action|^2", "reward_ctrl")),
    "Walker2d-v5": (FORWARD, ALIVE, _rate("-0.001 |action|^2", "reward_ctrl")),
    "Swimmer-v5": (FORWARD, _rate("-0.0001 |action|^2", "reward_ctrl")),
    "Ant-v5": (
        FORWARD,
        ALIVE,
        _rate("-0.5 |action|^2", "reward_ctrl"),
        _rate("-0.0005 |contact forces, clipped to +-1|^2", "reward_contact"),
    ),
    "Humanoid-v5": (
        RewardTerm("1.25 (x_after - x_before) / env_dt", Kind.VELOCITY, "reward_forward"),
        _rate("5 while healthy", "reward_survive"),
        _rate("-0.1 |action|^2", "reward_ctrl"),
        _rate("-min(5e-7 |contact forces|^2, 10)", "reward_contact"),
    ),
    "HumanoidStandup-v5": (
        RewardTerm("height / physics_dt", Kind.OVER_PHYSICS_DT, "reward_linup"),
        _rate("-0.1 |action|^2", "reward_quadctrl"),
        _rate("-min(5e-7 |contact forces|^2, 10)", "reward_impact"),
        RewardTerm("1", Kind.RATE),  # the environment does not report this one
    ),
}
_PENDULUM_TERMS = (RewardTerm("-(angle^2 + 0.1 w^2 + 0.001 action^2), before the step", Kind.RATE),)

_RETIMINGS: dict[str, Retiming] = {
    **{env_id: Retiming(MujocoClock(), terms) for env_id, terms in _MUJOCO_TERMS.items()},
    "Pendulum-v1": Retiming(AttributeClock("dt"), _PENDULUM_TERMS),
}

RETIMINGS: Mapping[str, Retiming] = MappingProxyType(_RETIMINGS)
"""What is known, by Gymnasium id; `register_retiming` adds to it."""

BUILT_IN = tuple(RETIMINGS)
"""The ids that are known without being registered."""


def register_retiming(env_id: str, terms: Sequence[RewardTerm], clock: Clock | None = None) -> None:
    """Make one more environment known to `retime`.

    Args:
        env_id: Its Gymnasium id with the version.
        terms: Every summand of its reward. Where their factors differ, ``info`` has to hold all but one sort of them.
        clock: Where its time step is kept: ``MujocoClock()``, which is the default, or ``AttributeClock(name)``.

    Raises:
        InputError: if the id is known already, or if the terms cannot be told apart.
    """
    if env_id in _RETIMINGS:
        raise InputError(f"{env_id!r} is known already: register your own environment under an id of its own.")
    check_terms(terms)
    _RETIMINGS[env_id] = Retiming(clock or MujocoClock(), tuple(terms))


def find_retiming(env_id: str) -> Retiming:
    """What is known of an environment.

    Raises:
        InputError: if nothing is.
    """
    if env_id not in _RETIMINGS:
        raise InputError(
            f"The reward terms of {env_id!r} are not known: describe them with register_retiming({env_id!r}, terms), "
            f"or choose one of {', '.join(sorted(_RETIMINGS))}."
        )
    return _RETIMINGS[env_id]
