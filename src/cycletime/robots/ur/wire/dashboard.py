"""The dashboard (port 29999): a line of text for each command, and one for each reply."""

from __future__ import annotations

from cycletime.robots.ur.types import WireError

GREETING = "Connected: Universal Robots Dashboard Server"
UNLOCK = "unlock protective stop"
UNLOCKED = "Protective stop releasing"
UNLOCK_REFUSED = "Cannot unlock protective stop until 5s after occurrence"
"""How the reply begins that refuses to unlock so early."""
_MAX_LINE_BYTES = 65536


class LineParser:
    """Cuts a byte stream into lines, however TCP has torn or merged them."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[str]:
        """All lines that are complete now, without their ends."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > _MAX_LINE_BYTES:
            raise WireError(f"A line has not ended after {_MAX_LINE_BYTES} bytes.")
        return [line.rstrip(b"\r").decode("utf-8", "replace") for line in lines]


def encode_line(text: str) -> bytes:
    return text.encode() + b"\n"
