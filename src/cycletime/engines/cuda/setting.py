"""The world of a run on the kernel, as its files tell of it."""

from __future__ import annotations

from dataclasses import dataclass

from cycletime.duration import Duration
from cycletime.engines.cuda.describing import reported_every, world_of
from cycletime.loops.action_bounds import ActionBounds
from cycletime.runs.spec import RunSpec


@dataclass(frozen=True)
class CudaSetting:
    """A closed-form task at a cycle time."""

    spec: RunSpec
    card: str | None = None
    """The GPU that computes it."""

    @property
    def where(self) -> str:
        """Where results come from."""
        return "closed form"

    @property
    def simulators(self) -> tuple[str, ...]:
        """None but this package."""
        return ()

    @property
    def env_dt(self) -> Duration:
        """The task's time step."""
        return world_of(self.spec).task.env_dt

    @property
    def cycle_steps(self) -> int:
        """The environment steps of a cycle."""
        return world_of(self.spec).cycle_steps

    @property
    def bounds(self) -> ActionBounds:
        """The paper's tasks take actions as they are."""
        return ActionBounds.raw(world_of(self.spec).task.action_size)

    @property
    def fingerprint(self) -> str:
        """The task is code, and the version of results stands for it."""
        return ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """All of its state is kept."""
        return ()

    @property
    def told_every(self) -> int:
        """From one learning that is told of to the next."""
        return reported_every(self.spec)
