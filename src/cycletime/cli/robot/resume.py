"""`cycletime robot resume`: go on with a run on an arm."""

from __future__ import annotations

from dataclasses import dataclass

from cycletime.cli.of_one_run import OfOneRun
from cycletime.cli.robot.arm import ArmOptions
from cycletime.cli.robot.driving import drive
from cycletime.cli.running import Running, result_line
from cycletime.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ResumeRobot(Running, ArmOptions, OfOneRun):
    """Continue a run on an arm that was stopped or killed.

    For example: cycletime robot resume runs/cycletime-URReacher2-v0-ppo-10ms-seed0-1f0c7c38a2 --simulate
    """

    def run(self) -> int:
        """Train it to its end."""
        from cycletime.engines.devices import use_device
        from cycletime.runs.folder import RunFolder
        from cycletime.runs.worlds import RobotEnv

        self.check()
        folder = RunFolder.open(self.folder)
        world = folder.spec.world
        if not isinstance(world, RobotEnv):
            raise InputError(f"{folder.path} is no run on an arm: go on with 'cycletime resume {folder.path}'.")
        if folder.is_finished:
            print(f"finished before: {result_line(folder.result(), folder.path)}")
            return 0
        use_device(folder.spec.engine.device)
        with self.arm() as arm:
            if arm.kind != world.robot:
                raise InputError(
                    f"{folder.path} is a run on a robot of the kind {world.robot!r}, and this one is {arm.kind!r}: "
                    "a run goes on where it began."
                )
            return drive(folder, arm, self, self)
