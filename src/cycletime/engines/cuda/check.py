"""One thing that was looked at on a card."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    found: float
    most: float
    """What may be found."""
    unit: str = ""
    """What it is counted in."""

    @property
    def passed(self) -> bool:
        """Whether that is fine; what is not a number is not."""
        return self.found <= self.most
