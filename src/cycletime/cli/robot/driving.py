"""A run on an arm, as `robot run` and `robot resume` do it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cycletime.cli.real_time import RealTimeRun
from cycletime.cli.robot.arm import Arm, ArmOptions
from cycletime.cli.running import Running

if TYPE_CHECKING:
    import gymnasium

    from cycletime.runs.folder import RunFolder
    from cycletime.runs.journal import Entry
    from cycletime.runs.spec import RunSpec


def drive(
    spec: RunSpec,
    arm: Arm,
    options: Running,
    moved_by: ArmOptions,
    open_folder: Callable[[], RunFolder],
    before: tuple[Entry, ...] = (),
) -> int:
    """Train a run on an arm; the exit status.

    Raises:
        InputError: if the run is refused; the arm has not moved.
        LinkError: if the arm cannot be reached.
    """
    return RealTimeRun(
        spec,
        lambda: make_arm_env(spec, arm),
        options,
        open_folder,
        lambda path: f"cycletime robot resume {shlex.quote(str(path))} {moved_by.words()}",
        before,
    ).run()


def make_arm_env(spec: RunSpec, arm: Arm) -> gymnasium.Env[Any, Any]:
    """The environment of a run, connected to the arm.

    Raises:
        LinkError: if it cannot be reached.
    """
    import gymnasium

    import cycletime.tasks  # noqa: F401 - registers the id

    world = spec.world
    made: gymnasium.Env[Any, Any] = gymnasium.make(
        world.name,
        link=arm.make_link,
        dt=spec.dt,
        env_dt=world.env_dt,
        where=arm.where,
        disable_env_checker=True,  # it would move the arm to try it out
    )
    return made
