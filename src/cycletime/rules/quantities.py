"""What a hyper-parameter is: its symbol, its allowed range, and what it means in seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite, isinf, log, log1p
from numbers import Integral, Real

from cycletime.errors import InputError, quote
from cycletime.rules.laws import DECAY, ENTROPY, RATE, SMOOTHED, Number

_LARGEST_COUNT = 10**18
"""Greater whole numbers are a slip of the keyboard, and floats cannot hold all of them."""
_LARGEST_RHYTHM = 64
"""Agent steps after which several updates come, or updates that come after several steps."""
SecondsFormula = Callable[[float, float], float]
"""Seconds (infinity is 'unlimited') from the value and the cycle time in seconds."""


def steps_in_seconds(steps: float, dt_s: float) -> float:
    """How long it takes to collect this many samples: the paper's batch time, dt * b."""
    return steps * dt_s


def decay_in_seconds(factor: float, dt_s: float) -> float:
    """The horizon -dt / ln(factor), after which a factor per agent step has decayed to 1/e."""
    if factor == 0:
        return 0.0
    return inf if factor == 1 else -dt_s / log(factor)


def smoothing_in_seconds(rate: float, dt_s: float) -> float:
    """The time constant of a target that moves by this rate at each update, with one update per ``dt_s``."""
    return 0.0 if rate == 1 else -dt_s / log1p(-rate)


def updates_in_seconds(updates_per_step: float, dt_s: float) -> float:
    return dt_s / updates_per_step


def update_rhythm(updates_per_step: float) -> Fraction:
    """So many updates after so many steps: the nearest of which one number is small, within a percent."""
    exact = Fraction(updates_per_step)
    if exact < 1:
        return 1 / (1 / exact).limit_denominator(_LARGEST_RHYTHM)
    return exact.limit_denominator(_LARGEST_RHYTHM)


def format_seconds(span_s: float) -> str:
    """A span for people: three digits, and 'unlimited' for a discount of 1."""
    if isinf(span_s):
        return "unlimited"
    return f"{span_s:.3g} s" if span_s < 1000 else f"{span_s:.0f} s"


@dataclass(frozen=True)
class Quantity:
    """One hyper-parameter that depends on the cycle time."""

    field: str
    """The name of the dataclass's field, also the key in JSON."""
    symbol: str
    low: float
    high: float = inf
    """The upper end of the allowed range, always allowed itself."""
    low_allowed: bool = False
    whole: bool = False
    span: str = ""
    """What its meaning in seconds is called; empty if it has none."""
    seconds: SecondsFormula = steps_in_seconds

    @property
    def is_horizon(self) -> bool:
        """Whether its meaning is a horizon: how far the agent looks ahead or back."""
        return self.seconds is decay_in_seconds

    @property
    def kind(self) -> str:
        by_meaning: dict[SecondsFormula, str] = {decay_in_seconds: DECAY, smoothing_in_seconds: SMOOTHED}
        return by_meaning.get(self.seconds, RATE if isfinite(self.low) else ENTROPY)

    def check(self, value: object) -> Number:
        """The value as a plain Python number; refused outside this quantity's range."""
        number = _plain_number(value, self.whole)
        in_range = number is not None and (self.low < number <= self.high or (self.low_allowed and number == self.low))
        if number is None or not in_range:
            most = f", and at most {_LARGEST_COUNT:g}" if isinstance(value, int) and value > _LARGEST_COUNT else ""
            raise InputError(f"{self.field} is {quote(value)}: it must be {self._allowed()}{most}.")
        return number

    def _allowed(self) -> str:
        if self.whole:
            return f"a whole number of at least {self.low:g}"
        if isfinite(self.high):
            return f"a number in {'[' if self.low_allowed else '('}{self.low:g}, {self.high:g}]"
        return f"a number greater than {self.low:g}" if isfinite(self.low) else "a finite number"


def check_count(name: str, value: object) -> int:
    """A count of at least 1 that is not a hyper-parameter itself, such as a number of environments."""
    return int(Quantity(name, "n", low=1, low_allowed=True, whole=True).check(value))


def _plain_number(value: object, whole: bool) -> Number | None:
    """NumPy's scalars and Fractions pass; True, '3', NaN and infinities do not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) <= _LARGEST_COUNT else None
    if whole or not isfinite(value):
        return None
    return float(value)
