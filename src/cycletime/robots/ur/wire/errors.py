"""What a peer sends that its protocol does not allow."""

from __future__ import annotations

from cycletime.errors import RunError


class WireError(RunError):
    """Bytes that no peer of this protocol would send: the connection is of no more use."""
