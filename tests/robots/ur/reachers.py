"""UR-Reacher-2 on an arm without a robot."""

from typing import Any

import gymnasium

import cycletime.tasks  # noqa: F401 - registers the id
from tests.robots.ur.virtual import VirtualArm, VirtualClock

ID = "cycletime/URReacher2-v0"


def an_arm(**state: Any) -> VirtualArm:  # noqa: ANN401 - whatever a virtual arm takes
    """An arm with a clock of its own."""
    return VirtualArm(VirtualClock(), **state)


def make(arm: VirtualArm, **options: Any) -> gymnasium.Env[Any, Any]:  # noqa: ANN401 - whatever the task takes
    """The task, as registered, on an arm."""
    env: gymnasium.Env[Any, Any] = gymnasium.make(ID, link=lambda: arm, disable_env_checker=True, **options)
    return env


def sent(arm: VirtualArm) -> list[Any]:
    """The commands that reached an arm, without their times."""
    return [command for _, command in arm.commands]
