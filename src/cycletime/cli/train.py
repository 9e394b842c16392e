"""`cycletime train` and `cycletime resume`: run specs from options, trained one after another."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from cycletime.cli.options import NONE, Count, Parts, Rate, Text, default_of_the_paper
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.rules import PPO

if TYPE_CHECKING:
    from cycletime.agents import Agent
    from cycletime.agents.exploration import Exploration
    from cycletime.cli.progress import ProgressBar
    from cycletime.engines.training import Listener
    from cycletime.runs.folder import RunFolder
    from cycletime.runs.spec import RunSpec
    from cycletime.runs.worlds import World

_NOISES = "white, ornstein-uhlenbeck, autoregressive, pink"


@dataclass(frozen=True, kw_only=True)
class Running:
    """What training and resuming share."""

    checkpoint_every: Annotated[str, arg(metavar="TIME")] = "30s"
    """The time between two checkpoints, at least."""
    track: Annotated[Parts, arg(metavar="TRACKER ...")] = NONE
    """Log to these as well: tensorboard, wandb, mlflow, trackio."""

    @property
    def checkpoint_s(self) -> float:
        """The seconds between two checkpoints."""
        return float(Duration(self.checkpoint_every))

    def listeners(self, bar: ProgressBar) -> list[Listener]:
        """Who is told of a run."""
        if not self.track:
            return [bar]
        from cycletime.engines.tracking import tracked
        from cycletime.runs.trackers import trackers_for

        return [bar, *tracked(trackers_for(self.track), bar.remark)]


@dataclass(frozen=True, kw_only=True)
class Train(Running):
    """Train an agent on a task or an environment at a cycle time, and keep the run in a folder.

    For example: cycletime train --task reacher --algorithm ppo --dt 16ms --env-steps 1e6 --out runs
    """

    task: Annotated[Text, arg(metavar="TASK", help_behavior_hint="(reacher or double-pendulum)")] = None
    """One of the paper's tasks, trained in one compiled program."""
    env: Annotated[Text, arg(metavar="ID", help_behavior_hint="(instead of --task)")] = None
    """A Gymnasium environment, such as Hopper-v5."""
    env_dt: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: the environment's own)")] = None
    """The environment's time step: MuJoCo's are retimed to it, for others it says what they do not publish."""
    algorithm: Annotated[str, arg(metavar="ALGORITHM")] = "ppo"
    """ppo, sac or actor-critic."""
    dt: Annotated[str, arg(metavar="TIME")]
    """The action-cycle time: 16ms, 0.016, 62.5Hz."""
    env_steps: Annotated[Count, arg(help_behavior_hint="(required)")] = None
    """How long to train, in environment steps."""
    seed: Annotated[Count, arg(help_behavior_hint="(default: 0)")] = None
    """The run's seed."""
    seeds: Annotated[Count, arg(help_behavior_hint="(default: 1)")] = None
    """Train so many runs, with the seeds from --seed on."""
    batch: Annotated[Count, default_of_the_paper(PPO.batch)] = None
    """b of PPO, the agent steps from one learning to the next."""
    minibatch: Annotated[Count, arg(help_behavior_hint="(default: the paper's, 50 for ppo and 256 for sac)")] = None
    """m, the samples of one gradient step."""
    discount: Annotated[Rate, default_of_the_paper(PPO.discount)] = None
    """gamma, per agent step."""
    trace_decay: Annotated[Rate, default_of_the_paper(PPO.trace_decay)] = None
    """lambda of PPO, per agent step."""
    tuned_at: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: --dt, so that nothing is carried)")] = (
        None
    )
    """The cycle time that these values were tuned at."""
    rule: Annotated[
        Text, arg(metavar="RULE", help_behavior_hint="(default: dt-aware for ppo, tuned-scaled for sac)")
    ] = None
    """How they are carried to --dt: baseline, dt-aware, scaled or constant; for sac baseline or scaled, of a tuned
    discount also called tuned and tuned-scaled."""
    set: Annotated[Parts, arg(metavar="NAME=VALUE ...")] = NONE
    """Other fields of the agent, such as learn_when=episode_end hidden=32,32 learning_rate=1e-3."""
    noise: Annotated[str, arg(metavar="NOISE")] = "white"
    """The exploration's noise: white, ornstein-uhlenbeck, autoregressive or pink."""
    correlation: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(no default)")] = None
    """The correlation time of Ornstein-Uhlenbeck and autoregressive noise; for pink its longest time."""
    order: Annotated[Count, arg(help_behavior_hint="(default: 2)")] = None
    """The order of autoregressive noise."""
    device: Annotated[str, arg(metavar="DEVICE")] = "cpu"
    """Where JAX computes: cpu or gpu. A run alone is faster on a CPU."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs")
    """Where runs are kept, each in a folder of its own."""
    resume: bool = False
    """Go on where runs of this spec were stopped or killed."""

    def run(self) -> int:
        """Train all seeds."""
        specs = self.specs()
        self._refuse_what_cannot_run(specs[0])
        from cycletime.runs.folder import RunFolder

        folders = [RunFolder.create(self.out, spec) for spec in specs]
        if not self.resume:
            _refuse_begun(folders)
        return train_all(folders, self)

    def specs(self) -> list[RunSpec]:
        """What was asked for."""
        if self.env_steps is None:
            raise InputError("--env-steps is missing: say how long to train, such as --env-steps 1e6.")
        if self.device not in ("cpu", "gpu"):
            raise InputError(f"{self.device!r} is no device: give 'cpu' or 'gpu'.")
        _prepare_jax(self.device)
        from cycletime.runs.spec import EngineSpec, RunSpec

        world, first, count = self._world(), self.seed or 0, 1 if self.seeds is None else self.seeds
        if count < 1:
            raise InputError(f"--seeds is {count}: it must be at least 1.")
        agent, origin = self._agent()
        engine = EngineSpec("compiled" if self.task else "stepped", self.device)
        return [
            RunSpec(
                world=world,
                agent=agent,
                dt=self.dt,
                env_steps=self.env_steps,
                seed=seed,
                engine=engine,
                exploration=self._exploration(),
                origin=origin,
            )
            for seed in range(first, first + count)
        ]

    def _refuse_what_cannot_run(self, spec: RunSpec) -> None:
        """Find fault before there is a folder."""
        from cycletime.cli.progress import ProgressBar
        from cycletime.engines.training import engine_for

        _, _ = self.checkpoint_s, self.listeners(ProgressBar(""))
        with closing(engine_for(spec)):
            pass

    def _world(self) -> World:
        from cycletime.runs.worlds import GymnasiumEnv, PaperTask

        if (self.task is None) == (self.env is None):
            raise InputError("Give either --task (reacher or double-pendulum) or --env (a Gymnasium id).")
        if self.task is not None:
            if self.env_dt is not None:
                raise InputError(f"--env-dt is {self.env_dt}: the paper's tasks have a time step of their own.")
            return PaperTask(self.task)
        assert self.env is not None, "one of the two is given"
        return GymnasiumEnv(self.env, None if self.env_dt is None else Duration(self.env_dt))

    def _agent(self) -> tuple[Agent, dict[str, Any]]:
        """The agent at this cycle time, and how its values came about."""
        from cycletime.runs.carried import carried_agent

        names = ("batch", "minibatch", "discount", "trace_decay")
        values = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        others = self._others()
        return carried_agent(self.algorithm, values, dt=self.dt, tuned_at=self.tuned_at, rule=self.rule, others=others)

    def _others(self) -> dict[str, Any]:
        """The fields given by --set."""
        from cycletime.runs.spec import AGENTS

        if self.algorithm not in AGENTS:
            raise InputError(f"{self.algorithm!r} is no algorithm: give one of {', '.join(AGENTS)}.")
        kinds = {each.name: str(each.type) for each in fields(AGENTS[self.algorithm])}
        kinds.pop("exploration", None)
        return dict(_setting(word, kinds, self.algorithm) for word in self.set)

    def _exploration(self) -> Exploration | None:
        from cycletime.agents.exploration import AutoRegressive, OrnsteinUhlenbeck, Pink

        if self.noise not in _NOISES.split(", "):
            raise InputError(f"{self.noise!r} is no noise: give {_NOISES}.")
        if self.noise != "autoregressive" and self.order is not None:
            raise InputError(f"--order is {self.order}: only autoregressive noise has one.")
        if self.noise == "white":
            if self.correlation is not None:
                raise InputError(f"--correlation is {self.correlation}: white noise has none, so give --noise as well.")
            return None
        if self.noise == "pink":
            return Pink() if self.correlation is None else Pink(slowest=self.correlation)
        if self.correlation is None:
            raise InputError(f"--correlation is missing: {self.noise} noise needs its time, such as 100ms.")
        if self.noise == "ornstein-uhlenbeck":
            return OrnsteinUhlenbeck(self.correlation)
        return AutoRegressive(2 if self.order is None else self.order, self.correlation)


@dataclass(frozen=True, kw_only=True)
class Resume(Running):
    """Go on with runs that were stopped or killed: cycletime resume runs/reacher-ppo-16ms-seed0-..."""

    folders: Positional[tuple[Path, ...]]
    """The runs' folders."""

    def run(self) -> int:
        """Train them to their ends."""
        from cycletime.runs.folder import RunFolder

        if not self.folders:
            raise InputError("There is nothing to resume: give the folder of a run.")
        opened = [RunFolder.open(path) for path in self.folders]
        devices = sorted({folder.spec.engine.device for folder in opened})
        if len(devices) != 1:
            raise InputError(f"The runs are for different devices ({', '.join(devices)}): resume them apart.")
        _prepare_jax(devices[0])
        return train_all(opened, self)


def train_all(folders: list[RunFolder], options: Running) -> int:
    """Train runs one after another; the exit status."""
    from cycletime.cli.progress import ProgressBar
    from cycletime.cli.stopping import stopping
    from cycletime.engines.training import train

    checkpoint_s = options.checkpoint_s
    with stopping() as stopper:
        for place, folder in enumerate(folders):
            listeners = options.listeners(ProgressBar(_label(folder.spec)))
            if stopper() or train(folder, listeners=listeners, stop=stopper, checkpoint_s=checkpoint_s) == "stopped":
                left = shlex.join(str(each.path) for each in folders[place:])
                print(f"Stopped. To go on: cycletime resume {left}", file=sys.stderr)
                return stopper.status
            _tell_result(folder)
    return 0


def _tell_result(folder: RunFolder) -> None:
    told = folder.result()
    numbers = "learning went astray, and some returns are no numbers" if told["episodes"] else "no episode ended"
    if told["average_return"] is not None:
        numbers = (
            f"average return {told['average_return']:,.2f}, last tenth {told['last_tenth_return']:,.2f} "
            f"({told['episodes']:,} episodes)"
        )
    resumed = "" if told["resumed"] == "never" else f", {told['resumed']}"
    print(f"seed {told['seed']}: {numbers}, {told['wall_s']:,.0f} s{resumed}\n  {folder.path}")


def _label(spec: RunSpec) -> str:
    return f"{spec.world.name} {spec.algorithm} {spec.dt} seed {spec.seed}"


def _refuse_begun(folders: list[RunFolder]) -> None:
    for folder in folders:
        if folder.has_begun and not folder.is_finished:
            raise InputError(
                f"{folder.path} has a run of this spec that was stopped: add --resume to go on with it, or delete the "
                "folder to begin anew."
            )


def _setting(word: str, kinds: dict[str, str], algorithm: str) -> tuple[str, Any]:
    """A field's name and value, as in hidden=32,32."""
    name, separator, text = word.partition("=")
    if not separator or name not in kinds:
        raise InputError(f"--set {word}: give NAME=VALUE with a field of {algorithm}: {', '.join(sorted(kinds))}.")
    try:
        return name, _value(text, kinds[name])
    except (ValueError, OverflowError):
        raise InputError(f"--set {word}: {text!r} does not fit {name}, which is {kinds[name]}.") from None


def _value(text: str, kind: str) -> Any:  # noqa: ANN401 - any field
    if text == "none" and "None" in kind:
        return None
    if "tuple" in kind:
        return tuple(int(part) for part in text.split(","))
    if "int" in kind:
        return int(float(text)) if float(text) == int(float(text)) else int(text)
    return float(text) if "float" in kind else text


def _prepare_jax(device: str) -> None:
    """Choose JAX's device, and let calls on a CPU return when they are done, which takes half the time."""
    import jax

    jax.config.update("jax_platforms", "cpu" if device == "cpu" else "cuda")  # type: ignore[no-untyped-call]
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
    if device == "gpu":
        try:
            jax.devices()
        except RuntimeError:
            raise InputError("JAX finds no GPU here: leave out --device, or pip install 'jax[cuda13]'.") from None
