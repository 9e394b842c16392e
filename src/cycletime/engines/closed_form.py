"""What files tell of the world of a run on a closed-form task, whichever engine computes it."""

from __future__ import annotations

from dataclasses import dataclass

from cycletime.duration import Duration, cycle_steps
from cycletime.loops.action_bounds import ActionBounds
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import PaperTask


@dataclass(frozen=True)
class ClosedForm:
    """One of the paper's tasks at a cycle time."""

    spec: RunSpec

    @property
    def where(self) -> str:
        """Where results come from."""
        return "closed form"

    @property
    def simulators(self) -> tuple[str, ...]:
        """None but this package."""
        return ()

    @property
    def world(self) -> PaperTask:
        """The task."""
        assert isinstance(self.spec.world, PaperTask), "the spec refuses other worlds for these engines"
        return self.spec.world

    @property
    def env_dt(self) -> Duration:
        """The task's time step."""
        return self.world.task.env_dt

    @property
    def cycle_steps(self) -> int:
        """The environment steps of a cycle."""
        return cycle_steps(self.spec.dt, self.env_dt)

    @property
    def bounds(self) -> ActionBounds:
        """The paper's tasks take actions as they are."""
        return ActionBounds.raw(self.world.task.action_size)

    @property
    def fingerprint(self) -> str:
        """The task is code, and the version of results stands for it."""
        return ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """All of its state is kept."""
        return ()
