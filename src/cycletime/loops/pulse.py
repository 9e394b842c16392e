"""A count that grows whenever a training gets further, for who watches whether it does.

With each step of an environment, and with each chunk of a compiled program.
"""

from __future__ import annotations


class Pulse:
    """The count of a process."""

    def __init__(self) -> None:
        """Begin."""
        self.count = 0

    def tick(self) -> None:
        """It got further."""
        self.count += 1


PULSE = Pulse()
