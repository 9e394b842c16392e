"""A finished episode of a robot: all that learning needs of it, and every cycle. It is what a journal keeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycletime.loops.real_time.cycles import Cycles


@dataclass(frozen=True, eq=False)
class EpisodeRecord:
    """One episode, from the first observation to the last."""

    number: int
    """The run's episodes before it."""
    rows: NDArray[np.float32]
    """[agent steps, numbers of a transition], in the order of `agents.buffer.Transition`."""
    length_steps: NDArray[np.int64]
    """[agent steps] the environment steps that each lasted."""
    rewards: NDArray[np.float64]
    """[agent steps] in full precision, of which the return is the sum."""
    cycles: Cycles
    """[agent steps] how each went."""
    ended_by: str
    """'terminated', 'truncated', or the safety mode that cut it short, such as 'PROTECTIVE_STOP'."""
    run_env_steps: int
    """The run's environment steps at its end."""

    @property
    def undiscounted_return(self) -> float:
        """The sum of its rewards."""
        return float(self.rewards.sum())

    @property
    def env_steps(self) -> int:
        """How many environment steps it lasted."""
        return int(self.length_steps.sum())

    @property
    def agent_steps(self) -> int:
        """How many cycles it lasted."""
        return len(self.rows)
