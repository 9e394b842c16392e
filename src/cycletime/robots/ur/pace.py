"""Whether a controller's clock is as fast as ours: one may be simulated at a pace that nobody told us."""

from __future__ import annotations

from cycletime.errors import InputError

_DIFFERENCE = 0.2
"""The share by which they may differ."""
_HICCUP_S = 0.5
"""Of real time, by which a busy machine may delay either side."""


def check_pace(controller_s: float, ours_s: float, pace: float) -> None:
    """Refuse a controller whose time passes at another pace.

    Args:
        controller_s: What passed by its clock.
        ours_s: What passed by ours meanwhile.
        pace: How many of our seconds pass in a real one.

    Raises:
        InputError: if so.
    """
    apart_s = abs(controller_s - ours_s)
    if apart_s > _DIFFERENCE * ours_s and apart_s > _HICCUP_S * pace:
        raise InputError(
            f"The pace is {pace:g}, and the controller's clock went on by {controller_s:.3g} s in {ours_s:.3g} s: give "
            f"the pace that it is simulated at, here about {pace * controller_s / ours_s:.2g}."
        )
