"""Hyper-parameters as a library said them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cycletime.duration import Duration


@dataclass(frozen=True)
class LibrarySource:
    """How a library said values that were read from it, for what `export` gives back to it."""

    library: str
    """Whose words these are."""
    dt: Duration
    """The cycle time that they are for."""
    n_envs: int
    """The number of parallel environments."""
    values: Mapping[str, object]
    """All that was said, also what does not depend on the cycle time."""
    layout: Mapping[str, int] = field(default_factory=dict)
    """What the library leaves a choice of, as it was chosen."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """By our fields, why they cannot be carried, where what was said is no number."""
    left_alone: Mapping[str, str] = field(default_factory=dict)
    """By our fields, why rules leave them alone: what was said of them does not depend on the cycle time."""
    notes: tuple[str, ...] = ()
    """What the reader should know of how it was understood."""
