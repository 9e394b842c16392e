"""Actions as environments are given them."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError

Action: TypeAlias = NDArray[np.floating[Any]]


def read_action(action: Action, size: int) -> list[float]:
    """The numbers of an action; anything else but finite numbers of the right count is refused.

    Raises:
        InputError: if it is something else.
    """
    try:
        values = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    # A few plain numbers are looked at faster than an array of them, and this happens at every step.
    numbers: list[float] = values.tolist() if values.shape == (size,) else [nan]
    if not all(map(isfinite, numbers)):
        raise InputError(f"{action!r} is not an action: give an array of {size} finite number{'s' * (size > 1)}.")
    return numbers
