"""How one number changes when the cycle time changes by a factor of rho = dt / dt0, each formula with its source.

'The paper' is Farrahi & Mahmood, 'Reducing the Cost of Cycle-Time Tuning for Real-World Policy Optimization'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, expm1, log, log1p, sqrt
from typing import TypeAlias

Number: TypeAlias = int | float | Fraction


@dataclass(frozen=True)
class Formula:
    """One way to carry one number to another cycle time."""

    text: str
    """As people write it; ``x0`` is the value before."""
    source: str
    """Where it comes from."""
    compute: Callable[[Number, Fraction], Number]
    """The value after, from the value before and rho; a named function, since carried values must pickle."""


def _kept(value: Number, rho: Fraction) -> Number:
    return value


def _proportional(value: Number, rho: Fraction) -> Number:
    return float(value * rho)


def _entropy(value: Number, rho: Fraction, action_size: int) -> Number:
    return float(value) - action_size / 2 * log(rho)


def _count(value: Number, rho: Fraction) -> Number:
    return Fraction(value) / rho


def _power(value: Number, rho: Fraction) -> Number:
    return math.pow(value, rho)


def _capped_power(value: Number, rho: Fraction) -> Number:
    return min(float(value), _power(value, rho))


def _smoothing(value: Number, rho: Fraction) -> Number:
    # 1 - (1 - x0)**rho without the cancellation that costs a small x0 its digits
    return -expm1(float(rho) * log1p(-float(value))) if value < 1 else 1.0


def _root(value: Number, rho: Fraction) -> Number:
    return float(value) / sqrt(rho)


KEPT = Formula("kept", "no rule, or the baseline", _kept)
COUNT = Formula("x0 / rho", "the paper's rule for b and m; the released code's for the replay", _count)
POWER = Formula("x0^rho", "Doya 2000; Tallec et al. 2019; the paper's 'scaled' ablation and its gamma_1", _power)
CAPPED_POWER = Formula("min(x0, x0^rho)", "the paper's dt-aware gamma and lambda", _capped_power)
SMOOTHING = Formula("1 - (1 - x0)^rho", "the same time constant in seconds, one update per agent step", _smoothing)
PER_UPDATE = Formula("kept, per update", "the updates come as often per second as before", _kept)
PROPORTIONAL = Formula("x0 * rho", "the same number of updates per second", _proportional)
ROOT = Formula("x0 / sqrt(rho)", "white noise of the same integrated variance per second (released code)", _root)


def entropy_shift(action_size: int) -> Formula:
    """The entropy of a Gaussian whose standard deviation changes by 1/sqrt(rho) in each of its dimensions."""
    return Formula(
        f"x0 - {action_size / 2:g} * ln(rho)",
        "deduced from the noise rule; published nowhere, to be tested on your task",
        partial(_entropy, action_size=action_size),
    )


def nearest_whole(value: Number, at_least: int = 1) -> int:
    """The nearest whole number, halves down: 12.5 is 12, as in the paper's grid."""
    return max(at_least, ceil(Fraction(value) - Fraction(1, 2)))
