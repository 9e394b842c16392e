"""What a learning agent is asked to be, as typed: its algorithm, cycle time, values, and how they are carried."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from cycletime.cli.options import NONE, Count, OwnRules, Parts, Rate, Text, chosen_rule, default_of_the_paper
from cycletime.cli.running import Running
from cycletime.cli.settings import settings_of
from cycletime.errors import InputError
from cycletime.loops.real_time import LearnerName
from cycletime.rules import PPO

NAMES = ("batch", "minibatch", "discount", "trace_decay")
"""The values that rules carry."""


@dataclass(frozen=True, kw_only=True)
class AgentOptions(Running):
    """The options of all commands that train one agent."""

    algorithm: Annotated[str, arg(metavar="ALGORITHM")] = "ppo"
    """ppo, sac or actor-critic."""
    dt: Annotated[str, arg(metavar="TIME")]
    """The action-cycle time: 16ms, 0.016, 62.5Hz."""
    env_steps: Annotated[Count, arg(help_behavior_hint="(required)")] = None
    """How long to train, in environment steps."""
    seed: Annotated[Count, arg(help_behavior_hint="(default: 0)")] = None
    """The run's seed."""
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
    rule: Annotated[Text, arg(metavar="RULE", help_behavior_hint="(default: dt-aware for ppo, horizons for sac)")] = (
        None
    )
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
    learner: LearnerName = "inline"
    """Who learns while a robot moves: the loop, within the cycle, or a thread beside it; PPO waits for the pauses."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs")
    """Where runs are kept, each in a folder of its own."""

    def asked(self) -> dict[str, Any]:
        """What `specs_of` takes of these options: all but the world, the seeds and what computes them.

        Raises:
            InputError: if it is not said how long to train, or something makes no sense.
        """
        from cycletime.engines.asking import exploration_of

        if self.env_steps is None:
            raise InputError("--env-steps is missing: say how long to train, such as --env-steps 1e6.")
        return {
            "algorithm": self.algorithm,
            "dt": self.dt,
            "env_steps": self.env_steps,
            "values": {name: getattr(self, name) for name in NAMES if getattr(self, name) is not None},
            "tuned_at": self.tuned_at,
            "tuned": self.tuned,
            "rule": chosen_rule(self.rule, self.own_rules),
            "also": self.also,
            "others": settings_of(self.set, self.algorithm, but_not=NAMES),
            "exploration": exploration_of(self.noise, self.correlation, self.order),
            "learner": self.learner,
        }
