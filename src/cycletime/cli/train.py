"""`cycletime train`: specs of runs from options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from cycletime.cli.options import NONE, Count, OwnRules, Parts, Rate, Text, chosen_rule, default_of_the_paper
from cycletime.cli.running import Running, say, train_all
from cycletime.cli.settings import settings_of
from cycletime.errors import InputError
from cycletime.rules import ALGORITHMS, PPO

if TYPE_CHECKING:
    from cycletime.engines.engine import Setting
    from cycletime.runs.folder import RunFolder
    from cycletime.runs.spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class Train(Running):
    """Train an agent on a task or an environment at a cycle time, and keep the run in a folder.

    For example: cycletime train --task reacher --algorithm ppo --dt 16ms --env-steps 1e6 --out runs
    """

    task: Annotated[Text, arg(metavar="TASK", help_behavior_hint="(such as reacher or pendulum)")] = None
    """A task in closed form, trained in one compiled program: reacher and double-pendulum, the paper's; pendulum,
    cart-pole, mountain-car, acrobot; ur-reacher, the paper's robot."""
    env: Annotated[Text, arg(metavar="ID", help_behavior_hint="(instead of --task)")] = None
    """A Gymnasium environment, such as Hopper-v5; for module:Name-v0 the module is imported, which runs its code."""
    env_dt: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: its own)")] = None
    """The time step: tasks other than the paper's simulate with it, MuJoCo's environments are retimed to it, and for
    others it says what they do not publish."""
    algorithm: Annotated[str, arg(metavar="ALGORITHM")] = "ppo"
    """ppo, sac or actor-critic."""
    dt: Annotated[str, arg(metavar="TIME")]
    """The action-cycle time: 16ms, 0.016, 62.5Hz."""
    env_steps: Annotated[Count, arg(help_behavior_hint="(required)")] = None
    """How long to train, in environment steps."""
    seed: Annotated[Count, arg(help_behavior_hint="(default: 0)")] = None
    """The run's seed."""
    seeds: Annotated[Count, arg(help_behavior_hint="(default: 1)")] = None
    """How many runs to train, with seeds from --seed on."""
    batch: Annotated[Count, default_of_the_paper(PPO.batch)] = None
    """b of PPO, the agent steps between two updates."""
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
    tuned: Annotated[Text, arg(metavar="FILE", help_behavior_hint="(instead of --tuned-at)")] = None
    """A file of 'cycletime tune' with the values and their cycle time; options given beside it replace its values."""
    rule: Annotated[
        Text, arg(metavar="RULE", help_behavior_hint="(default: dt-aware for ppo, tuned-scaled for sac)")
    ] = None
    """How they are carried to --dt: baseline, dt-aware, scaled, constant or horizons; for sac baseline, scaled or
    horizons, of a tuned discount the first two are also called tuned and tuned-scaled."""
    own_rules: OwnRules = None
    """A TOML file with tables [own_rules.NAME], such as a study's, for a --rule of your own."""
    also: Parts = NONE
    """Carry as well, as in 'cycletime transfer': learning-rate, of ppo clip, of sac replay-capacity, target-smoothing
    and updates-per-second; the random start always lasts as long in seconds."""
    set: Annotated[Parts, arg(metavar="NAME=VALUE ...")] = NONE
    """Other fields of the agent, such as learn_when=episode_end hidden=32,32 learning_rate=1e-3."""
    noise: Annotated[str, arg(metavar="NOISE")] = "white"
    """The exploration's noise: white, ornstein-uhlenbeck, autoregressive or pink."""
    correlation: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(for pink 10s by default)")] = None
    """The correlation time of Ornstein-Uhlenbeck and autoregressive noise; for pink its longest time."""
    order: Annotated[Count, arg(help_behavior_hint="(default: 2)")] = None
    """The order of autoregressive noise."""
    device: Annotated[str, arg(metavar="DEVICE")] = "cpu"
    """Where JAX computes: cpu or gpu. A run alone is faster on a CPU."""
    engine: Annotated[str, arg(metavar="ENGINE")] = "auto"
    """What computes a --task: compiled, or cuda, a kernel that trains all seeds of ppo together on an NVIDIA GPU; auto
    is the fastest that takes the run on --device."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs")
    """Where runs are kept, each in a folder of its own."""
    resume: bool = False
    """Continue runs of this spec that were stopped or killed."""

    def run(self) -> int:
        """Train all seeds."""
        specs = self.specs()
        from cycletime.engines.devices import use_device
        from cycletime.engines.registry import engine_of, group_for
        from cycletime.runs.folder import RunFolder

        use_device(engine_of(specs[0]).jax_device(specs[0]))
        self.check()  # before there is a folder
        group = group_for(specs[: engine_of(specs[0]).together(specs[0])])
        folders = [RunFolder.create(self.out, spec) for spec in specs]
        if not self.resume:
            _refuse_begun(folders)
        elif not any(folder.has_begun or folder.is_finished for folder in folders):
            say("There is nothing to resume of this spec, so it begins anew.")
        say(_announced(specs[0], group.settings[0]))
        return train_all(folders, self, group)

    def specs(self) -> list[RunSpec]:
        """What was asked for."""
        from cycletime.engines.asking import exploration_of, specs_of

        if self.env_steps is None:
            raise InputError("--env-steps is missing: say how long to train, such as --env-steps 1e6.")
        names = ("batch", "minibatch", "discount", "trace_decay")
        first, count = self.seed or 0, 1 if self.seeds is None else self.seeds
        if count < 1:
            raise InputError(f"--seeds is {count}: it must be at least 1.")
        return specs_of(
            task=self.task,
            env=self.env,
            env_dt=self.env_dt,
            algorithm=self.algorithm,
            dt=self.dt,
            env_steps=self.env_steps,
            seeds=range(first, first + count),
            values={name: getattr(self, name) for name in names if getattr(self, name) is not None},
            tuned_at=self.tuned_at,
            tuned=self.tuned,
            rule=chosen_rule(self.rule, self.own_rules),
            also=self.also,
            others=settings_of(self.set, self.algorithm, but_not=names),
            exploration=exploration_of(self.noise, self.correlation, self.order),
            device="gpu" if self.engine == "cuda" else self.device,
            engine=self.engine,
        )


def _announced(spec: RunSpec, setting: Setting) -> str:
    """The values that training uses, and what a user may not expect of them."""
    names = ("batch", "minibatch", "discount", "trace_decay")
    values = ", ".join(f"{name} {getattr(spec.agent, name):g}" for name in names if hasattr(spec.agent, name))
    carried = f" ({spec.origin['rule']} from {spec.origin['tuned_at']})" if spec.origin else ""
    lines = [f"{spec.algorithm} at {spec.dt}: {values}{carried}", *_notes_on_transfer(spec)]
    random, learning = (steps * setting.cycle_steps for steps in (spec.agent.random_steps, spec.agent.period))
    if random >= spec.env_steps:
        lines.append(f"note: the random start lasts {random:,} environment steps, so that the policy never acts.")
    elif learning > spec.env_steps:
        lines.append(f"note: the first learning comes at {learning:,} environment steps, and the run ends with it.")
    longest = setting.longest_episode_steps
    if longest is not None and longest > spec.env_steps:
        lines.append(f"note: an episode can last {longest:,} environment steps, so that perhaps none ends in this run.")
    return "\n".join(lines)


def _notes_on_transfer(spec: RunSpec) -> list[str]:
    """What the rule has to say: horizons that shrink, rounding."""
    if not spec.origin:
        return []
    from cycletime.runs.carried import rule_of

    tuned = ALGORITHMS[spec.algorithm](dt=spec.origin["tuned_at"], **spec.origin["tuned"])
    return [f"note: {note}" for note in tuned.at(spec.dt, rule_of(spec.origin)).notes]


def _refuse_begun(folders: list[RunFolder]) -> None:
    for folder in folders:
        if folder.has_begun and not folder.is_finished:
            with folder.locked():  # says so where somebody trains it at this moment
                pass
            raise InputError(
                f"{folder.path} has a run of this spec that was stopped: add --resume to go on with it, or delete the "
                "folder to begin anew."
            )
