"""`cycletime robot`: an arm of Universal Robots, or the simulated controller of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from cycletime.cli.robot.check import CheckRobot
from cycletime.cli.robot.fault import RobotFault
from cycletime.cli.robot.replay import ReplayRobot
from cycletime.cli.robot.resume import ResumeRobot
from cycletime.cli.robot.run import RunRobot
from cycletime.cli.robot.simulate import SimulateRobot


@dataclass(frozen=True)
class RobotCommand:
    """Train on an arm in real time; check its controller, or simulate one."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[CheckRobot, subcommand("check")]
            | Annotated[RunRobot, subcommand("run")]
            | Annotated[ResumeRobot, subcommand("resume")]
            | Annotated[ReplayRobot, subcommand("replay")]
            | Annotated[SimulateRobot, subcommand("simulate")]
            | Annotated[RobotFault, subcommand("fault")]
        ]
    ]
