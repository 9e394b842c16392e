"""How one number changes when the cycle time changes by a factor of rho = dt / dt0: laws, each with its source.

A rule is a choice of laws (`cycletime.rules.rule`). A law with a number of its own is made by a function, such as
`power_with_floor(6)`. Files call laws by their names (`cycletime.rules.rule`). 'The paper' is Farrahi & Mahmood,
'Reducing the Cost of Cycle-Time Tuning for Real-World Policy Optimization'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import ceil, exp, expm1, inf, isfinite, log, log1p, nan, sqrt
from typing import TypeAlias

from cycletime.errors import InputError

Number: TypeAlias = int | float | Fraction
RATE, SMOOTHED, DECAY, ENTROPY = "a count or rate", "a smoothing per update", "a decay per step", "an entropy"
"""What a value is."""


@dataclass(frozen=True)
class Law:
    """One way to carry one number to another cycle time. Laws of the same name and formula are equal."""

    name: str
    formula: str
    """As people write it, and as tables show it; ``x0`` is the value before."""
    source: str
    compute: Callable[[Number, Fraction], Number] = field(compare=False, repr=False)
    """The value after, from the value before and rho; a named function, if carried values are to pickle."""
    kinds: Collection[str] = field(default=(), compare=False, repr=False)
    """Of which values it makes sense: of all where none is said."""

    def __call__(self, value: Number, rho: Fraction) -> Number:
        """The value after; infinite or NaN where there is none that a float can hold."""
        try:
            return self.compute(value, rho)
        except ArithmeticError:
            return inf
        except ValueError:
            return nan


def _kept(value: Number, rho: Fraction) -> Number:
    return value


def _proportional(value: Number, rho: Fraction) -> Number:
    return float(value * rho)


def _grown(value: Number, rho: Fraction) -> Number:
    return float(value * nearest_whole(rho))


def _entropy(value: Number, rho: Fraction, action_size: int) -> Number:
    return float(value) - action_size / 2 * log(rho)


def _count(value: Number, rho: Fraction) -> Number:
    return Fraction(value) / rho


def _power(value: Number, rho: Fraction) -> Number:
    return math.pow(value, rho)


def _capped(value: Number, rho: Fraction, compute: Callable[[Number, Fraction], Number]) -> Number:
    return min(float(value), compute(value, rho))


def _power_with_floor(value: Number, rho: Fraction, floor: float) -> Number:
    return max(_power(value, rho), min(float(value), floor))


def _smoothing(value: Number, rho: Fraction) -> Number:
    # 1 - (1 - x0)**rho without the cancellation that costs a small x0 its digits
    return -expm1(float(rho) * log1p(-float(value))) if value < 1 else 1.0


def _grown_smoothing(value: Number, rho: Fraction) -> Number:
    return _smoothing(value, rho / nearest_whole(rho))


def _root(value: Number, rho: Fraction) -> Number:
    return float(value) / sqrt(rho)


def _times_root(value: Number, rho: Fraction) -> Number:
    return float(value) * sqrt(rho)


def _rho_power(value: Number, rho: Fraction, exponent: float) -> Number:
    return float(value) * math.pow(rho, exponent)


_of_rate = partial(Law, kinds=(RATE,))
_of_share = partial(Law, kinds=(RATE, SMOOTHED))
_of_smoothing = partial(Law, kinds=(SMOOTHED,))
_of_decay = partial(Law, kinds=(DECAY,))
KEPT = Law("kept", "kept", "no rule, or the baseline", _kept)
COUNT = _of_rate(
    "per second, of a count", "x0 / rho", "the paper's rule for b and m; the released code's for the replay", _count
)
_DOYA = "Doya 2000; Tallec et al. 2019; the paper's 'scaled' ablation and its gamma_1"
POWER = _of_decay("per second, of a decay", "x0^rho", _DOYA, _power)
CAPPED_POWER = _of_decay(
    "the paper's min", "min(x0, x0^rho)", "the paper's dt-aware gamma and lambda", partial(_capped, compute=_power)
)
_SAME = "the same time constant in seconds"
SMOOTHING = _of_smoothing(
    "per second, of a smoothing", "1 - (1 - x0)^rho", f"{_SAME}, one update per agent step", _smoothing
)
GROWN_SMOOTHING = _of_smoothing(
    "per second, of a smoothing, with grown updates",
    "1 - (1 - x0)^(rho / max(1, round(rho)))",
    f"{_SAME}, with more updates per agent step at longer cycles",
    _grown_smoothing,
)
_AS_OFTEN = "the updates come as often per second as before"
PER_UPDATE = _of_smoothing("kept per update", "kept, per update", _AS_OFTEN, _kept)
PROPORTIONAL = _of_share("proportional", "x0 * rho", "the same number of updates per second", _proportional)
GROWN = _of_rate(
    "proportional, never less",
    "x0 * max(1, round(rho))",
    "as proportional, in whole multiples that fit into every cycle; the max is of our own search, where fewer updates "
    "cost more than they save",
    _grown,
)
ROOT = _of_rate(
    "square root",
    "x0 / sqrt(rho)",
    "white noise of the same integrated variance per second (released code); Adam's rate for a mini-batch of m0 / rho "
    "(Malladi et al. 2022)",
    _root,
)
TIMES_ROOT = _of_rate("square root, growing", "x0 * sqrt(rho)", "a candidate for the clip, untested", _times_root)


def power_with_floor(steps: float) -> Law:
    """Per second, of a decay, with a horizon -1 / ln(x) of at least so many agent steps.

    The floor stops a horizon from falling below it, and raises none that was below it at dt0: such a value is kept at
    longer cycles. At shorter cycles every horizon has more steps, and the floor says nothing.
    """
    if not _is_finite(steps) or steps <= 0:
        raise InputError(f"The floor is {steps!r} steps: it must be a finite number greater than 0.")
    return _of_decay(
        f"{POWER.name}, at least {_digits(steps)} steps",
        f"max(x0^rho, min(x0, e^(-1/{_digits(steps)})))",
        "as per second; the floor is of our own search, and the paper's tuned gammas of SAC stop falling, too",
        partial(_power_with_floor, floor=exp(-1 / steps)),
    )


def capped_power_with_floor(steps: float) -> Law:
    """As `power_with_floor`, but kept at shorter cycles, as the paper's min keeps a value."""
    with_floor = power_with_floor(steps)
    return _of_decay(
        f"{with_floor.name}, with the min",
        f"min(x0, max(x0^rho, e^(-1/{_digits(steps)})))",
        "as with the floor; the min is the paper's, and of SAC our own trial suggests it",
        partial(_capped, compute=with_floor.compute),
    )


def rho_power(exponent: float) -> Law:
    """x0 * rho^exponent: -1/2 is the square root, 0 keeps the value."""
    if not _is_finite(exponent):
        raise InputError(f"exponent is {exponent!r}: it must be a finite number.")
    return _of_share(
        f"a power of rho, {_digits(exponent)}",
        f"x0 * rho^{_digits(exponent)}",
        "a power of one's own; our own search tried it for the learning rate alone, where it did harm",
        partial(_rho_power, exponent=float(exponent)),
    )


def capped_rho_power(exponent: float) -> Law:
    """min(x0, x0 * rho^exponent), which never raises a value, as the paper's min does not."""
    plain = rho_power(exponent)
    capped = partial(_capped, compute=plain.compute)
    return _of_share(f"{plain.name}, with the min", f"min(x0, {plain.formula})", plain.source, capped)


ENTROPY_FORMULA = "x0 - d/2 * ln(rho)"
"""Of the target entropy, with d the number of action dimensions."""


def entropy_shift(action_size: int) -> Law:
    """The entropy of a Gaussian whose standard deviation changes by 1/sqrt(rho) in each of its dimensions."""
    return Law(
        f"the entropy of the square root in {action_size} dimensions",
        ENTROPY_FORMULA.replace("d/2", f"{action_size / 2:g}"),
        "deduced from the noise rule; published nowhere, to be tested on your task",
        partial(_entropy, action_size=action_size),
    )


def nearest_whole(value: Number, at_least: int = 1) -> int:
    """The nearest whole number, halves down: 12.5 is 12, as in the paper's grid."""
    return max(at_least, ceil(Fraction(value) - Fraction(1, 2)))


def _digits(value: float) -> str:
    """All digits that a number needs to be read as itself, since laws of one name are the same law."""
    return repr(float(value)).removesuffix(".0")


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool) and isfinite(value)


HORIZONS = power_with_floor(6)
"""Of the rule 'horizons': discount and trace decay keep their horizons in seconds, in at least so many agent steps. The
floor is the one that won the trial of the investigation 'horizons'."""
