"""`cycletime robot run`: train on an arm in real time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from cycletime.cli.agent_options import AgentOptions
from cycletime.cli.robot.arm import ArmOptions, ChosenArm
from cycletime.cli.robot.driving import drive
from cycletime.errors import InputError

if TYPE_CHECKING:
    from cycletime.runs.folder import RunFolder
    from cycletime.runs.spec import RunSpec

_TASK = "cycletime/URReacher2-v0"


@dataclass(frozen=True, kw_only=True)
class RunRobot(AgentOptions, ArmOptions):
    """Train on UR-Reacher-2 in real time, on an arm or on a simulated one, and keep the run in a folder.

    Ctrl-C stops the arm at once; the run can go on later, without the episode in progress. For example:
    cycletime robot run --simulate --algorithm ppo --dt 40ms --batch 400 --minibatch 10 --env-steps 6000
    """

    env_dt: Annotated[str, arg(metavar="TIME")] = "10ms"
    """The environment's time step, after which rewards are paid; the authors' runs of SAC had 40ms."""

    def run(self) -> int:
        """Train."""
        from cycletime.engines.devices import use_device
        from cycletime.runs.folder import RunFolder

        self.check()
        use_device("cpu")
        with self.arm() as arm:
            spec = self.spec(arm)
            folder = RunFolder(self.out / spec.name, spec)
            _refuse_begun(folder, self.words())
            return drive(folder, arm, self, self)

    def spec(self, arm: ChosenArm) -> RunSpec:
        """What was asked for."""
        from cycletime.engines.asking import specs_of

        asked: dict[str, Any] = self.asked()
        if self.algorithm == "ppo":
            asked["others"] = {"learn_when": "episode_end", **asked["others"]}
        (spec,) = specs_of(
            task=None,
            env=_TASK,
            env_dt=self.env_dt,
            seeds=[self.seed or 0],
            engine="real-time",
            robot=arm.kind,
            **asked,
        )
        return spec


def _refuse_begun(folder: RunFolder, words: str) -> None:
    if folder.is_finished:
        raise InputError(f"{folder.path} has this run already, and it is finished: give another --seed.")
    if folder.has_begun:
        raise InputError(
            f"{folder.path} has a run of this spec that was stopped: go on with 'cycletime robot resume {folder.path} "
            f"{words}', or delete the folder to begin anew."
        )
