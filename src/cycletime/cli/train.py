"""`cycletime train` and `cycletime resume`: train runs from options, or go on with runs that were stopped or killed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from cycletime.cli.options import Whole
from cycletime.cli.output import print_status, result_line
from cycletime.cli.run_options import CARRIED_VALUES, AgentOptions, RunOptions, TaskOptions, train_all
from cycletime.errors import InputError
from cycletime.processes import owning_children
from cycletime.training.observers import TrainingObserver

if TYPE_CHECKING:
    import gymnasium

    from cycletime.training.engine import EnvInfo
    from cycletime.training.run_folder import RunFolder
    from cycletime.training.spec import RunSpec
    from cycletime.training.trainer import TrainingOutcome


def describe_run(spec: RunSpec, env_info: EnvInfo) -> str:
    """The values that training uses, and what a user may not expect of them."""
    values = ", ".join(f"{name} {getattr(spec.agent, name):g}" for name in CARRIED_VALUES if hasattr(spec.agent, name))
    updates: float = getattr(spec.own_agent, "updates_per_step", 1)
    values += "" if updates == 1 else f", {updates:g} updates per step"
    carried = f" ({spec.origin['rule']} from {spec.origin['tuned_at']})" if spec.origin else ""
    lines = [
        f"{spec.algorithm} at {spec.dt}: {values}{carried}",
        *_environments(spec),
        *(f"note: {note}" for note in spec.notes),
    ]
    random, learning = (steps * env_info.cycle_steps for steps in (spec.agent.random_steps, spec.agent.period))
    if random >= spec.env_steps:
        lines.append(f"note: the random start lasts {random:,} environment steps, so that the policy never acts.")
    elif learning > spec.env_steps:
        until = f"the run goes on until then, and returns count up to {spec.env_steps:,}"
        if spec.engine.name == "real-time":  # whose budget is also how long the arm moves
            until = f"this run ends at {spec.env_steps:,}, without any"
        lines.append(f"note: the first learning comes at {learning:,} environment steps: {until}.")
    longest = None if env_info.longest_episode_steps is None else env_info.longest_episode_steps * spec.num_envs
    if longest is not None and longest > spec.env_steps:
        which = "an episode" if spec.num_envs == 1 else "one of each environment"
        lines.append(f"note: {which} can last {longest:,} environment steps, so that perhaps none ends in this run.")
    return "\n".join(lines)


def _environments(spec: RunSpec) -> list[str]:
    """Of several environments, how long a rollout of theirs lasts, and how often the agent learns."""
    if spec.num_envs == 1:
        return []
    from cycletime.agents.agent import cycles_between_updates

    agent, num_envs = spec.own_agent, spec.num_envs
    steps, updates = cycles_between_updates(agent, num_envs), max(1, num_envs // agent.period)
    rollout_s = steps * float(spec.dt)
    slices: tuple[int, int, int] = getattr(agent, "slice_sizes", (1, 0, 0))
    gradients = getattr(agent, "epochs", 1) * (slices[0] + bool(slices[2])) * getattr(agent, "gradient_steps", 1)
    rollouts = f"rollouts of {steps:,} step{'' if steps == 1 else 's'}, {rollout_s:.4g} s"
    per_update = f"{gradients:,} gradient step{'' if gradients == 1 else 's'}"
    return [
        f"{num_envs} environments: {rollouts}; {updates / rollout_s:.4g} updates per simulated second, of {per_update}"
    ]


class RemarkPrinter(TrainingObserver):
    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        if resumed_from is not None:
            self.remark(f"goes on from {resumed_from:,} environment steps")

    def remark(self, sentence: str) -> None:
        print_status(f"note: {sentence}")


def train_on_robot(
    folder: RunFolder, make_env: Callable[[], gymnasium.Env[Any, Any]], options: RunOptions, to_go_on: str
) -> int:
    """Train a run, whose folder need not be there: it is made once nothing is left that may be refused."""
    from cycletime.training.process import stopping_at_once

    with stopping_at_once() as stopper:
        env = make_env()
        try:
            ended = _trained(folder, env, options)
        finally:
            env.close()
    if isinstance(ended, InputError):
        raise ended
    if ended == "finished":
        print(result_line(folder.result(), folder.path), flush=True)
        return 0
    print_status("Stopped, and the robot stands." if ended == "stopped" else f"cycletime: {ended}")
    if folder.path.exists():  # else it was stopped before anything was there to go on with
        print_status(f"To go on: {to_go_on}")
    return stopper.status if ended == "stopped" else 1


def _trained(folder: RunFolder, env: gymnasium.Env[Any, Any], options: RunOptions) -> TrainingOutcome | Exception:
    from cycletime.robots.engine import RealTimeBatch
    from cycletime.training.run_recorder import TrainingJob
    from cycletime.training.trainer import train_batch

    batch = RealTimeBatch(folder.spec, env, print_status)
    print_status(describe_run(folder.spec, batch.env_infos[0]))
    try:
        _ = batch.calibration  # which may refuse the run
        folder.make()
        job = TrainingJob(folder, options.beside(RemarkPrinter()))
        (ended,) = train_batch([job], checkpoint_s=options.checkpoint_s, batch=batch)
    except KeyboardInterrupt:  # at once, and not at the episode's end: somebody wants the robot to stand
        return "stopped"
    return ended


def train_robots_by_id(folders: Sequence[RunFolder], options: RunOptions) -> int:
    """Train runs on robots that are made by their ids alone, in folders that need not be there; the exit status."""
    from cycletime.training.worlds import make_env

    for folder in folders:
        if folder.is_finished:
            print(f"finished before: {result_line(folder.result(), folder.path)}", flush=True)
            continue
        make, to_go_on = partial(make_env, folder.spec.world, folder.spec.dt), shlex.quote(str(folder.path))
        if status := train_on_robot(folder, make, options, f"cycletime resume {to_go_on}"):
            return status
    return 0


@dataclass(frozen=True, kw_only=True)
class Train(AgentOptions, TaskOptions):
    """Train an agent on a task or an environment at a cycle time, and keep the run in a folder.

    For example: cycletime train --task reacher --algorithm ppo --dt 16ms --env-steps 1e6 --out runs
    """

    seeds: Whole = 1
    """How many runs to train, with seeds from --seed on."""
    device: Annotated[str, arg(metavar="DEVICE")] = "cpu"
    """Where JAX computes: cpu or gpu. A run alone is faster on a CPU."""
    engine: Annotated[str, arg(metavar="ENGINE")] = "auto"
    """compiled; cuda, for all seeds together on a GPU; auto, the fastest for a --task; real-time, for a robot."""
    resume: bool = False
    """Continue runs of this spec that were stopped or killed."""

    def run(self) -> int:
        with owning_children() if self.env is not None else nullcontext():
            return self._train(self.specs())

    def _train(self, specs: list[RunSpec]) -> int:
        from cycletime.training.engine import engine_for, make_batch, runs_on_robot
        from cycletime.training.machine import use_device
        from cycletime.training.run_folder import RunFolder

        use_device(engine_for(specs[0]).jax_device(specs[0]))
        self.check()  # before there is a folder
        folders = [RunFolder(self.out / spec.name, spec) for spec in specs]
        if not self.resume:
            _refuse_begun(folders)
        if runs_on_robot(specs[0]):
            return train_robots_by_id(folders, self)
        batch = make_batch(specs[: engine_for(specs[0]).max_batch_size(specs[0])])
        for folder in folders:
            folder.make()
        if self.resume and not any(folder.has_begun or folder.is_finished for folder in folders):
            print_status("No checkpoint found; starting a new run.")
        print_status(describe_run(specs[0], batch.env_infos[0]))
        return train_all(folders, self, batch)

    def specs(self) -> list[RunSpec]:
        from cycletime.training.make_specs import make_specs

        asked = self.asked()
        if self.seeds < 1:
            raise InputError(f"--seeds is {self.seeds}: it must be at least 1.")
        return make_specs(
            task=self.task,
            env=self.env,
            env_dt=self.env_dt,
            num_envs=1 if self.num_envs is None else self.num_envs,
            seeds=range(self.seed, self.seed + self.seeds),
            device="gpu" if self.engine == "cuda" else self.device,
            engine=self.engine,
            **asked,
        )


def _refuse_begun(folders: list[RunFolder]) -> None:
    for folder in folders:
        if folder.has_begun and not folder.is_finished:
            with folder.locked():  # says so where somebody trains it at this moment
                pass
            remedy = "add --resume to go on with it, or delete the folder to begin anew"
            raise InputError(f"{folder.path} has a run of this spec that was stopped: {remedy}.")


@dataclass(frozen=True, kw_only=True)
class Resume(RunOptions):
    """Continue runs that were stopped or killed: cycletime resume runs/reacher-ppo-16ms-seed0-..."""

    folders: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN ...", help_behavior_hint="(required)")]
    """The runs' folders."""

    @owning_children()
    def run(self) -> int:
        from cycletime.studies.study_folder import StudyFolder
        from cycletime.training.engine import engine_for, runs_on_robot
        from cycletime.training.machine import use_device
        from cycletime.training.run_folder import RunFolder

        if not self.folders:
            raise InputError("There is nothing to resume: give the folder of a run.")
        for path in self.folders:
            if (study := StudyFolder.of_run(path)) is not None:
                raise InputError(
                    f"{path.name} is a run of the study in {study}: 'cycletime study run' with its file and --out goes "
                    "on with it."
                )
        opened = [RunFolder.open(path) for path in self.folders]
        engines = {(engine_for(folder.spec).name, folder.spec.engine.device) for folder in opened}
        if len(engines) != 1:
            words = ", ".join(sorted(" on the ".join(each) for each in engines))
            raise InputError(f"The runs are for different engines or devices ({words}): resume them apart.")
        use_device(engine_for(opened[0].spec).jax_device(opened[0].spec))
        if runs_on_robot(opened[0].spec):
            return train_robots_by_id(opened, self)
        return train_all(opened, self)
