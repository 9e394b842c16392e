"""What is recorded of every cycle: when it began, how old its observation was, and what its parts took.

All times are in seconds of the environment's clock. In lock-step that clock stands still while the agent computes, so
that its cycles take no time, and records are the same twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray


class Cycle(NamedTuple):
    """One cycle of the agent: wake up, observe, act, send, learn."""

    scheduled_s: float
    """When it was due."""
    wake_error_s: float
    """How much later than that it began."""
    observation_age_s: float
    """How old the observation was when the agent began to act; NaN where the environment does not tell."""
    act_s: float
    """What choosing the action took."""
    send_s: float
    """What sending it took."""
    learn_s: float
    """What storing and learning took afterwards; in the background, what waiting for it took."""
    stale_learnings: int
    """Learnings that had fallen due, and were not yet part of the policy that acted."""
    missed_steps: int
    """Points of the environment's grid that were over before they were looked at; rewards of those were paid later."""
    packages: int
    """States that came from the robot since the cycle before; -1 where the environment does not tell."""
    missed_packages: int
    """States that got lost since then; -1 where the environment does not tell."""
    overrun: bool
    """Whether its work was not done when the next one was due, which was therefore left out."""


@dataclass(frozen=True, eq=False)
class Cycles:
    """Cycles in order, as columns; each field is named as `Cycle` has it."""

    scheduled_s: NDArray[np.float64]
    wake_error_s: NDArray[np.float64]
    observation_age_s: NDArray[np.float64]
    act_s: NDArray[np.float64]
    send_s: NDArray[np.float64]
    learn_s: NDArray[np.float64]
    stale_learnings: NDArray[np.int64]
    missed_steps: NDArray[np.int64]
    packages: NDArray[np.int64]
    missed_packages: NDArray[np.int64]
    overrun: NDArray[np.bool_]

    @classmethod
    def of(cls, cycles: Sequence[Cycle]) -> Cycles:
        """Columns of cycles."""
        return cls.from_table(np.array(cycles, np.float64).reshape(len(cycles), len(Cycle._fields)))

    @classmethod
    def from_table(cls, table: NDArray[np.float64]) -> Cycles:
        """What `table` gave."""
        kinds = get_type_hints(Cycle).values()
        return cls(*(column.astype(kind) for column, kind in zip(table.T, kinds, strict=True)))

    def table(self) -> NDArray[np.float64]:
        """[cycles, fields] all of it in one array, which has room for whole numbers as well."""
        return np.stack([np.asarray(column, np.float64) for column in self.columns().values()], axis=1)

    @classmethod
    def joined(cls, parts: Iterable[Cycles]) -> Cycles:
        """Those of several episodes, one after the other."""
        parts = [cls.of(()), *parts]
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    def columns(self) -> dict[str, NDArray[Any]]:
        """By name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __len__(self) -> int:
        """How many there are."""
        return len(self.overrun)
