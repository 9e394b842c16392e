"""Actions as environments are given them."""

from __future__ import annotations

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
    if values.shape != (size,) or not np.isfinite(values).all():
        raise InputError(f"{action!r} is not an action: give an array of {size} finite number{'s' * (size > 1)}.")
    numbers: list[float] = values.tolist()
    return numbers
