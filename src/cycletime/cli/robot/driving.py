"""A run on an arm, as `robot run` and `robot resume` do it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from cycletime.cli.real_time import RealTimeRun
from cycletime.cli.robot.arm import ArmOptions, ChosenArm
from cycletime.cli.running import Running

if TYPE_CHECKING:
    import gymnasium

    from cycletime.runs.folder import RunFolder
    from cycletime.runs.spec import RunSpec


def drive(folder: RunFolder, arm: ChosenArm, options: Running, moved_by: ArmOptions) -> int:
    """Train a run on an arm; the exit status.

    Raises:
        InputError: if the run is refused; the arm has not moved, and there is no new folder.
        LinkError: if the arm cannot be reached.
    """
    return RealTimeRun(
        folder,
        lambda: make_arm_env(folder.spec, arm),
        options,
        f"cycletime robot resume {shlex.quote(str(folder.path))} {moved_by.words()}",
    ).run()


def make_arm_env(spec: RunSpec, arm: ChosenArm) -> gymnasium.Env[Any, Any]:
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
