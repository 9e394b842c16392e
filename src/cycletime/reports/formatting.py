"""Numbers, cycle times and settings as text for people."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from cycletime.duration import Duration
from cycletime.statistics import Estimate

_MOST_DECIMALS = 6


def dt_text(dt: Duration) -> str:
    """A cycle time, with a space before its unit: '16 ms'."""
    text = str(dt)
    return next(f"{text.removesuffix(unit)} {unit}" for unit in ("ms", "us", "ns", "Hz", "s") if text.endswith(unit))


def join_words(items: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1]))) if items else ""


def rough_number(amount: float) -> str:
    """A return in three digits, or all that stand before the point."""
    return f"{amount:,.0f}" if abs(amount) >= 99.95 else f"{amount:.3g}"


def hours_text(amount: float | None) -> str:
    return "an unknown time" if amount is None else f"{amount:,.3g} h" if abs(amount) < 100 else f"{amount:,.0f} h"


def estimate_text(estimate: Estimate | None) -> str:
    """'-16.52 ± 0.31', '-16.52 [-17.2, -15.9]', the value alone, or '-' without one."""
    if estimate is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.4g}"
    half = (estimate.high - estimate.low) / 2
    form = f"z.{_decimals(half, estimate.value)}f"
    if estimate.interval == "standard error":
        return f"{estimate.value:{form}} ± {half:{form}}"
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


def range_text(numbers: Collection[int]) -> str:
    """'3 to 5', or '3' where all numbers are the same."""
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def difference_text(estimate: Estimate) -> str:
    """'+1.2 (-0.4 to +2.8, 95 % Welch t, n = 3 + 3)', with signs."""
    rests_on = f"{estimate.interval}, n = {estimate.runs}"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:+.4g} ({rests_on})"
    # An end that is near zero must not lose its sign, which is what matters.
    near = max((-floor(log10(abs(end))) for end in (estimate.low, estimate.high) if end), default=0)
    half = (estimate.high - estimate.low) / 2
    if half <= 1e-9 * abs(estimate.value):  # but for rounding all pairs have one difference
        return f"{estimate.value:+.4g} ({estimate.value:+.4g} to {estimate.value:+.4g}, {rests_on})"
    form = f"+z.{max(_decimals(half, estimate.value), min(_MOST_DECIMALS, near))}f"
    return f"{estimate.value:{form}} ({estimate.low:{form}} to {estimate.high:{form}}, {rests_on})"


def sign_text(
    low: float | None, high: float | None, words: tuple[str, str, str] = ("more", "less", "undecided")
) -> str:
    """The first word if an interval is above zero, the second if it is below, or else the third."""
    if low is None or high is None or low <= 0 <= high:
        return words[2]
    return words[0] if low > 0 else words[1]


def estimate_as_json(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "interval", "n")}


@dataclass(frozen=True)
class TextTable:
    """A table of text, which Markdown, the terminal and the page show alike."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    notes: Sequence[str] = ()
    last: Sequence[str] | None = None
    """A row that sums up the others."""

    def markdown(self, *, is_aligned: bool = False) -> list[str]:
        """The lines of the table alone; aligned, it can be read as plain text."""
        rows = [self.header, *self.rows, *([] if self.last is None else [self.last])]
        widths = [max(map(len, column)) if is_aligned else 3 for column in zip(*rows, strict=True)]
        padded = [
            [cell.ljust(width if is_aligned else 0) for cell, width in zip(row, widths, strict=True)] for row in rows
        ]
        padded.insert(1, ["-" * width for width in widths])
        return [f"| {' | '.join(row)} |" for row in padded]


def _decimals(half: float, value: float) -> int:
    """Decimals with which both numbers show two significant digits, but none of what is rounding beside the other."""
    sizes = [size for size in (abs(half), abs(value)) if size > 1e-9 * max(abs(half), abs(value))]
    return max([0, *(min(_MOST_DECIMALS, 1 - floor(log10(size))) for size in sizes)])
