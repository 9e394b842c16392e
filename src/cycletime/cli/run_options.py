"""The options of commands that train: the agent, its values and how they are carried, checkpoints and trackers.

NAME=VALUE settings are fields of an agent, as in ``--set hidden=32,32 learn_when=episode_end``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from cycletime.cli.options import (
    NO_NAMES,
    Count,
    NameListOption,
    NumEnvs,
    OwnRulesFile,
    Rate,
    RuleOption,
    Text,
    Whole,
    paper_default,
    parse_whole_number,
    select_rule,
)
from cycletime.cli.output import print_status, result_line
from cycletime.duration import Duration
from cycletime.errors import InputError, did_you_mean, quote, shorten, unknown_name_error
from cycletime.rules import PPO

if TYPE_CHECKING:
    from cycletime.training.engine import RunBatch
    from cycletime.training.observers import TrainingObserver
    from cycletime.training.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    checkpoint_every: Annotated[str, arg(metavar="TIME")] = "30s"
    """The time between two checkpoints, at least."""
    track: Annotated[NameListOption, arg(metavar="TRACKER ...")] = NO_NAMES
    """Log to these as well: tensorboard, wandb."""

    @property
    def checkpoint_s(self) -> float:
        return float(Duration(self.checkpoint_every))

    def check(self) -> None:
        from cycletime.training.trackers import trackers_for

        _ = self.checkpoint_s, trackers_for(self.track)

    def beside(self, bar: TrainingObserver) -> list[TrainingObserver]:
        if not self.track:
            return [bar]
        from cycletime.training.trackers import trackers_for

        return [bar, *trackers_for(self.track, bar.remark)]


def train_all(folders: list[RunFolder], options: RunOptions, batch: RunBatch | None = None) -> int:
    """Train runs of one engine, the first maybe made ready as a batch, and print their outcomes; the exit status."""
    from cycletime.training.process import stopping
    from cycletime.training.trainer import train_batches

    failed, left = False, list(folders)
    finished_before = {folder.path for folder in folders if folder.is_finished}
    with stopping() as stopper:
        how: dict[str, Any] = {"stop": stopper, "checkpoint_s": options.checkpoint_s, "batch": batch}
        for outcomes in train_batches(folders, observers=options.beside, **how):
            if isinstance(outcomes[0], Exception) and all(outcome is outcomes[0] for outcome in outcomes):
                raise outcomes[0]
            now, left = left[: len(outcomes)], left[len(outcomes) :]
            for folder, outcome in zip(now, outcomes, strict=True):
                if outcome == "finished":
                    before = "finished before: " if folder.path in finished_before else ""
                    print(f"{before}{result_line(folder.result(), folder.path)}", flush=True)
                elif outcome != "stopped":
                    failed = True
                    print_status(f"seed {folder.spec.seed} failed: {outcome}")
            if stopped := [folder for folder, outcome in zip(now, outcomes, strict=True) if outcome == "stopped"]:
                left = [*stopped, *left]
                break
        if left:
            print_status(f"Stopped. To go on: cycletime resume {shlex.join(str(folder.path) for folder in left)}")
            return stopper.status
    return 1 if failed else 0


def parse_settings(words: Iterable[str], algorithm: str, but_not: Collection[str]) -> dict[str, Any]:
    """The fields that the words set, but those that have an option of their own."""
    from cycletime.training.spec import AGENTS

    if algorithm not in AGENTS:
        raise unknown_name_error(algorithm, "an algorithm", AGENTS)
    kinds = {each.name: str(each.type) for each in fields(AGENTS[algorithm]) if each.name != "exploration"}
    found: dict[str, Any] = {}
    for word in words:
        name, value = _setting(word, kinds, algorithm)
        if name in but_not:
            raise InputError(f"--set {shorten(word)}: give --{name.replace('_', '-')} instead, which rules can carry.")
        if name in found:
            raise InputError(f"--set {shorten(word)}: {name} is given twice.")
        found[name] = value
    return found


def _setting(word: str, kinds: dict[str, str], algorithm: str) -> tuple[str, Any]:
    from cycletime.libraries.synonyms import find_synonym

    name, separator, text = word.partition("=")
    if not separator or name not in kinds:
        synonym = find_synonym(name, algorithm)
        if separator and synonym and synonym.ours in CARRIED_VALUES:
            raise InputError(f"--set {shorten(word)}: {name} is --{synonym.ours.replace('_', '-')} {text} here.")
        if separator and synonym and synonym.ours in kinds:
            raise InputError(f"--set {shorten(word)}: {name} is {synonym.ours} here: give --set {synonym.ours}={text}.")
        near = "." if name in kinds else did_you_mean(name, kinds)
        known = ", ".join(sorted(kinds))
        raise InputError(f"--set {shorten(word)}: give NAME=VALUE with a field of {algorithm}: {known}{near}")
    try:
        return name, _value(text, kinds[name])
    except (KeyError, ValueError):
        right = f", which is {kinds[name]}".replace("bool", "true or false")
        if "tuple" in right:
            right = f": give whole numbers with commas, as in {name}=32,32"
        raise InputError(f"--set {shorten(word)}: {quote(text)} does not fit {name}{right}.") from None


def _value(text: str, kind: str) -> Any:  # noqa: ANN401 - any field
    if text == "none" and "None" in kind:
        return None
    if "tuple" in kind:  # a study's file has [32, 32]
        return tuple(map(parse_whole_number, re.sub(r"^\[(.*)\]$", r"\1", text).split(",")))
    if kind == "bool":
        return {"true": True, "false": False}[text]
    if "int" in kind:
        return parse_whole_number(text)
    return float(text) if "float" in kind else text


CARRIED_VALUES = ("batch", "minibatch", "discount", "trace_decay")
"""The values that rules carry."""


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    task: Annotated[Text, arg(metavar="TASK", help_behavior_hint="(this or --env)")] = None
    """A task in closed form: reacher, double-pendulum, pendulum, cart-pole, mountain-car, acrobot or ur-reacher."""
    env: Annotated[Text, arg(metavar="ID", help_behavior_hint="(instead of --task)")] = None
    """A Gymnasium environment, such as Hopper-v5; for module:Name-v0 the module is imported, which runs its code."""
    env_dt: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: its own)")] = None
    """The time step, to simulate tasks with, to retime MuJoCo's to, or to say where an environment publishes none."""
    num_envs: NumEnvs = None
    """Environments of each run, side by side; --batch and --env-steps are of all of them together."""


@dataclass(frozen=True, kw_only=True)
class ValueOptions:
    """The values of an agent at the cycle time that they were tuned at."""

    algorithm: Annotated[str, arg(metavar="ALGORITHM")] = "ppo"
    """ppo, sac or actor-critic."""
    batch: Annotated[Count, paper_default(PPO.batch)] = None
    """b of PPO, the agent steps between two updates."""
    minibatch: Annotated[Count, arg(help_behavior_hint="(default: the paper's, 50 for ppo and 256 for sac)")] = None
    """m, the samples of one gradient step."""
    discount: Annotated[Rate, paper_default(PPO.discount)] = None
    """gamma, per agent step."""
    trace_decay: Annotated[Rate, paper_default(PPO.trace_decay)] = None
    """lambda of PPO, per agent step."""
    tuned: Annotated[Text, arg(metavar="FILE", help_behavior_hint="(instead of --tuned-at)")] = None
    """A file of 'cycletime tune' with the values and their cycle time; options given beside it replace its values."""
    set: Annotated[NameListOption, arg(metavar="NAME=VALUE ...")] = NO_NAMES
    """Other fields of the agent, such as learn_when=episode_end hidden=32,32 learning_rate=1e-3."""

    @property
    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in CARRIED_VALUES if getattr(self, name) is not None}

    @property
    def settings(self) -> dict[str, Any]:
        return parse_settings(self.set, self.algorithm, but_not=CARRIED_VALUES)


@dataclass(frozen=True, kw_only=True)
class AgentOptions(RunOptions, ValueOptions):
    dt: Annotated[str, arg(metavar="TIME")]
    """The action-cycle time: 16ms, 0.016, 62.5Hz."""
    env_steps: Annotated[Count, arg(help_behavior_hint="(required)")] = None
    """How long to train, in environment steps."""
    seed: Whole = 0
    """The run's seed."""
    tuned_at: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: --dt, so that nothing is carried)")] = (
        None
    )
    """The cycle time that these values were tuned at."""
    rule: RuleOption = None
    """How to carry them: baseline, dt-aware, scaled, constant, horizons; sac: tuned, tuned-scaled or horizons."""
    own_rules: OwnRulesFile = None
    """A TOML file with tables [own_rules.NAME], such as a study's, for a --rule of your own."""
    also: NameListOption = NO_NAMES
    """Carry as well, as in 'cycletime transfer'; sac's random start always lasts as long in seconds."""
    noise: Annotated[str, arg(metavar="NOISE")] = "white"
    """The exploration's noise: white, ornstein-uhlenbeck or pink."""
    correlation: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(for pink 10s by default)")] = None
    """The correlation time of Ornstein-Uhlenbeck noise; for pink its longest time."""
    learner: Literal["inline", "background"] = "inline"
    """Who learns while a robot moves: the loop, within the cycle, or a thread beside it; PPO waits for the pauses."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs")
    """Where runs are kept, each in a folder of its own."""

    def asked(self) -> dict[str, Any]:
        """Arguments of `make_specs`: all options but the world, the seeds and the engine."""
        from cycletime.training.make_specs import make_exploration

        if self.env_steps is None:
            raise InputError("--env-steps is missing: say how long to train, such as --env-steps 1e6.")
        as_given = ("algorithm", "dt", "env_steps", "values", "tuned_at", "tuned", "also", "learner")
        return {
            **{name: getattr(self, name) for name in as_given},
            "rule": select_rule(self.rule, self.own_rules),
            "others": self.settings,
            "exploration": make_exploration(self.noise, self.correlation),
        }
