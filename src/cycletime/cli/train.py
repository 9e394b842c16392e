"""`cycletime train`: specs of runs from options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from cycletime.cli.agent_options import AgentOptions
from cycletime.cli.announcing import announced
from cycletime.cli.options import Count, Text
from cycletime.cli.running import say, train_all
from cycletime.errors import InputError

if TYPE_CHECKING:
    from cycletime.runs.folder import RunFolder
    from cycletime.runs.spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class WorldOptions:
    """What to train on."""

    task: Annotated[Text, arg(metavar="TASK", help_behavior_hint="(such as reacher or pendulum)")] = None
    """A task in closed form, trained in one compiled program: reacher and double-pendulum, the paper's; pendulum,
    cart-pole, mountain-car, acrobot; ur-reacher, the paper's robot."""
    env: Annotated[Text, arg(metavar="ID", help_behavior_hint="(instead of --task)")] = None
    """A Gymnasium environment, such as Hopper-v5; for module:Name-v0 the module is imported, which runs its code."""
    env_dt: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: its own)")] = None
    """The time step: tasks other than the paper's simulate with it, MuJoCo's environments are retimed to it, and for
    others it says what they do not publish."""


@dataclass(frozen=True, kw_only=True)
class Train(AgentOptions, WorldOptions):
    """Train an agent on a task or an environment at a cycle time, and keep the run in a folder.

    For example: cycletime train --task reacher --algorithm ppo --dt 16ms --env-steps 1e6 --out runs
    """

    seeds: Annotated[Count, arg(help_behavior_hint="(default: 1)")] = None
    """How many runs to train, with seeds from --seed on."""
    device: Annotated[str, arg(metavar="DEVICE")] = "cpu"
    """Where JAX computes: cpu or gpu. A run alone is faster on a CPU."""
    engine: Annotated[str, arg(metavar="ENGINE")] = "auto"
    """What computes a --task: compiled; native, which is faster for ppo on a CPU where it is built; or cuda, a kernel
    that trains all seeds of ppo together on an NVIDIA GPU. auto is compiled or cuda, the fastest that takes the run on
    --device. An --env that is a robot needs real-time."""
    resume: bool = False
    """Continue runs of this spec that were stopped or killed."""

    def run(self) -> int:
        """Train all seeds."""
        specs = self.specs()
        from cycletime.engines.devices import use_device
        from cycletime.engines.registry import engine_of, group_for, is_on_a_robot
        from cycletime.runs.folder import RunFolder

        use_device(engine_of(specs[0]).jax_device(specs[0]))
        self.check()  # before there is a folder
        if is_on_a_robot(specs[0]):
            return self._train_on_robots(specs)
        group = group_for(specs[: engine_of(specs[0]).together(specs[0])])
        folders = [RunFolder.create(self.out, spec) for spec in specs]
        if not self.resume:
            _refuse_begun(folders)
        elif not any(folder.has_begun or folder.is_finished for folder in folders):
            say("There is nothing to resume of this spec, so it begins anew.")
        say(announced(specs[0], group.settings[0]))
        return train_all(folders, self, group)

    def _train_on_robots(self, specs: list[RunSpec]) -> int:
        """One after another, each with its cycles shown."""
        from cycletime.cli.real_time import run_by_id
        from cycletime.runs.folder import RunFolder

        for spec in specs:
            folder = RunFolder(self.out / spec.name, spec)
            if not self.resume:
                _refuse_begun([folder])
            if status := run_by_id(folder, self):
                return status
        return 0

    def specs(self) -> list[RunSpec]:
        """What was asked for."""
        from cycletime.engines.asking import specs_of

        asked = self.asked()
        first, count = self.seed or 0, 1 if self.seeds is None else self.seeds
        if count < 1:
            raise InputError(f"--seeds is {count}: it must be at least 1.")
        return specs_of(
            task=self.task,
            env=self.env,
            env_dt=self.env_dt,
            seeds=range(first, first + count),
            device="gpu" if self.engine == "cuda" else self.device,
            engine=self.engine,
            **asked,
        )


def _refuse_begun(folders: list[RunFolder]) -> None:
    for folder in folders:
        if folder.has_begun and not folder.is_finished:
            with folder.locked():  # says so where somebody trains it at this moment
                pass
            raise InputError(
                f"{folder.path} has a run of this spec that was stopped: add --resume to go on with it, or delete the "
                "folder to begin anew."
            )
