"""What files tell of the world of a run on a closed-form task, whichever engine computes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cycletime.duration import Duration, cycle_steps
from cycletime.loops.action_bounds import ActionBounds
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import ClosedFormWorld


@dataclass(frozen=True)
class ClosedForm:
    """A task in closed form at a cycle time."""

    spec: RunSpec
    card: Mapping[str, str] | None = None
    """What computes the run beside JAX."""
    told_every: int = 1
    """From one learning that is told of to the next."""
    simulators: tuple[str, ...] = ()
    """None but this package."""
    fingerprint: str = ""
    """The task is code, and the version of results stands for it."""
    remarks: tuple[str, ...] = ()
    """All of its state is kept."""

    @property
    def world(self) -> ClosedFormWorld:
        """The task."""
        assert isinstance(self.spec.world, ClosedFormWorld), "engines for closed forms refuse other worlds"
        return self.spec.world

    @property
    def where(self) -> str:
        """Where results come from, as the task says."""
        return self.world.task.where

    @property
    def env_dt(self) -> Duration:
        """The task's time step."""
        return self.world.env_dt

    @property
    def cycle_steps(self) -> int:
        """The environment steps of a cycle."""
        return cycle_steps(self.spec.dt, self.env_dt)

    @property
    def longest_episode_steps(self) -> int:
        """The task's time limit."""
        return self.world.task.limit_steps

    @property
    def bounds(self) -> ActionBounds:
        """Tasks in closed form take actions as they are."""
        return ActionBounds.raw(self.world.task.action_size)
