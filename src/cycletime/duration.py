"""Time spans as exact numbers: parse '16ms', '0.016', '62.5Hz'; whole multiples or a clear error.

Cycle times are divided by each other, and floats get such quotients wrong: ``0.12 // 0.04`` is ``2.0``. A span is
therefore an exact fraction of a second, and the environment steps in a cycle are a whole number or an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor, isfinite, ulp
from numbers import Rational, Real
from typing import TypeAlias

from cycletime.errors import InputError

DurationLike: TypeAlias = "Duration | str | float | Fraction | Decimal"
"""What a time span may be given as; a number without a unit is in seconds, and below one."""

_SECONDS_PER_UNIT = {
    "s": Fraction(1),
    "ms": Fraction(1, 1_000),
    "us": Fraction(1, 1_000_000),
    "ns": Fraction(1, 1_000_000_000),
}
_LONG_UNITS = {"min": Fraction(60), "h": Fraction(3600)}
_MICRO_SIGNS = str.maketrans({"\N{MICRO SIGN}": "u", "\N{GREEK SMALL LETTER MU}": "u"})
_HERTZ_PER_UNIT = {"hz": Fraction(1), "khz": Fraction(1_000)}
_NUMBER_THEN_UNIT = re.compile(r"([+-]?[0-9.]+(?:e[+-]?[0-9]+)?(?:/[0-9]+)?) ?([a-z]*)")
_SHORTEST_S, _LONGEST_S = Fraction(1, 10**12), Fraction(10**12)
"""Outside of these a number is a slip of the keyboard, and its exact fraction could fill the memory."""
_MOST_DECIMAL_PLACES = 18
_DIGITS_PEOPLE_TYPE = 15
_EXAMPLES = "a positive time such as '16ms', '0.016s' or '62.5Hz'"


@dataclass(frozen=True, order=True, slots=True, init=False)
class Duration:
    """A positive, exact span of time; equal spans are equal however they were written."""

    exact_s: Fraction
    """The span in seconds."""

    def __init__(self, value: DurationLike) -> None:
        """Read a span from text with a unit, from a number of seconds below 1, or from a Fraction of any size.

        A number of a second or more needs its unit, since 16 may mean milliseconds: see `of_seconds`.
        """
        if isinstance(value, Duration):  # as most are that code hands on
            object.__setattr__(self, "exact_s", value.exact_s)
            return
        exact_s = _parse(value)
        if exact_s is None or not _SHORTEST_S <= exact_s <= _LONGEST_S:
            raise InputError(f"{value!r} is not a time span: give {_EXAMPLES}.")
        number = str(value).strip()
        if exact_s >= 1 and not isinstance(value, Fraction) and not number[-1].isalpha():
            raise InputError(
                f"{str(value)!r} has no unit: write '{number}ms' for milliseconds, '{number}s' for seconds or "
                f"'{number}Hz'."
            )
        object.__setattr__(self, "exact_s", exact_s)

    @classmethod
    def of_seconds(cls, number: float) -> Duration:
        """The span that a number of seconds of any size stands for, such as one that an environment publishes."""
        return cls(_parse(number) or number)

    def __float__(self) -> float:
        """The span in seconds, rounded to the nearest float."""
        return float(self.exact_s)

    def __str__(self) -> str:
        """For people, and exact: '100ms' below a second, '1.5s' from one on, or a frequency where none is ('60Hz')."""
        return _texts(self.exact_s)[0]

    @property
    def shortest(self) -> str:
        """The shortest exact form, such as '0.1s': identities and names of runs have it, and keep it."""
        return _texts(self.exact_s)[1]

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def __mul__(self, factor: int | Fraction) -> Duration:
        return Duration(self.exact_s * factor)

    __rmul__ = __mul__

    def __truediv__(self, other: Duration) -> Fraction:
        """How often the other span fits into this one, exactly. There is no ``//``: see `cycle_steps`."""
        return self.exact_s / other.exact_s


class DurationField:
    """A dataclass field that takes anything `DurationLike` and holds a `Duration`.

    Use it as a descriptor: ``dt: DurationField = DurationField()``.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> Duration:
        if instance is None:  # a dataclass asks so for the default, and there is none
            raise AttributeError(self._name)
        span: Duration = instance.__dict__[self._name]
        return span

    def __set__(self, instance: object, value: DurationLike) -> None:
        instance.__dict__[self._name] = Duration(value)


def cycle_steps(dt: DurationLike, env_dt: DurationLike) -> int:
    """The whole number k of environment steps in one action cycle (Algorithm 1: dt / dt_env).

    Raises:
        InputError: if dt is not a whole multiple of env_dt; the message names the two nearest cycle times that are.
    """
    dt, env_dt = Duration(dt), Duration(env_dt)
    ratio = dt / env_dt
    if ratio.denominator == 1:
        return ratio.numerator
    below = max(1, floor(ratio))
    nearest = f"the nearest cycle times are {env_dt * below} and {env_dt * (below + 1)}"
    raise InputError(f"The cycle time {dt} is not a whole multiple of the environment time step {env_dt}: {nearest}.")


def refuse_longer_than(episode: Duration, dt: Duration) -> None:
    """Refuse a cycle that lasts longer than an episode, in which an agent would act once at most."""
    if dt > episode:
        raise InputError(f"The cycle time {dt} is longer than an episode, {episode}: give at most that.")


def _parse(value: object) -> Fraction | None:
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, Rational):
        return Fraction(value)
    if isinstance(value, float):
        return _simplest_fraction(value) if isfinite(value) else None
    # Decimal, and NumPy's float32, whose str() is its shortest decimal: 0.016 and not 0.01600000075995922.
    return _parse_text(str(value)) if isinstance(value, Decimal | Real) else None


@lru_cache(maxsize=1024)  # since studies read and write the few that they have for each of their runs
def _parse_text(text: str) -> Fraction | None:
    match = _NUMBER_THEN_UNIT.fullmatch(text.strip().lower().translate(_MICRO_SIGNS))
    if not match:
        return None
    number, unit = match.groups()
    amount = _parse_number(number)
    if amount is None or amount <= 0:
        return None
    if unit in _HERTZ_PER_UNIT:
        return 1 / (amount * _HERTZ_PER_UNIT[unit])
    size = (_SECONDS_PER_UNIT | _LONG_UNITS).get(unit or "s")
    return amount * size if size else None


def _parse_number(text: str) -> Fraction | None:
    # Fraction('1e999999999') would compute a number with a thousand million digits.
    if len(text) > 60 or re.search(r"e[+-]?0*[1-9]\d\d", text):
        return None
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _simplest_fraction(seconds: float) -> Fraction:
    """The fraction a float stands for: 0.016 is 2/125, and 0.001 * 9 (0.009000000000000001) is 9/1000.

    Environments publish their step as such products and quotients, so two units in the last place are forgiven; but
    not to a float that prints with few digits, which someone has typed.
    """
    typed = Decimal(repr(float(seconds)))  # NumPy's float64 is a float with a repr of its own
    if len(typed.as_tuple().digits) <= _DIGITS_PEOPLE_TYPE:
        return Fraction(typed)
    simple = Fraction(seconds).limit_denominator(1_000_000)
    return simple if abs(simple - Fraction(seconds)) <= 2 * Fraction(ulp(seconds)) else Fraction(typed)


@lru_cache(maxsize=1024)
def _texts(exact_s: Fraction) -> tuple[str, str]:
    """A span for people, in the largest unit that it reaches, and at its shortest."""
    decimals = {unit: _exact_decimal(exact_s / size) for unit, size in _SECONDS_PER_UNIT.items()}
    texts = {unit: number + unit for unit, number in decimals.items() if number}
    if not texts:
        hertz = _exact_decimal(1 / exact_s)
        return (f"{hertz}Hz" if hertz else f"{exact_s}s",) * 2
    shortest = min(texts.values(), key=lambda text: (len(text), "." in text))
    return next((text for unit, text in texts.items() if exact_s >= _SECONDS_PER_UNIT[unit]), shortest), shortest


def _exact_decimal(number: Fraction) -> str | None:
    """The number written out in decimal, or nothing where that would not end."""
    for places in range(_MOST_DECIMAL_PLACES + 1):
        if 10**places % number.denominator == 0:
            digits = str(number.numerator * (10**places // number.denominator)).rjust(places + 1, "0")
            return f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return None
