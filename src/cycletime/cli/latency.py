"""`cycletime latency`: how long `act` and `learn` take on this machine, and which cycle times have room for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec

from cycletime import rules
from cycletime.cli.latency_report import LatencyReport
from cycletime.cli.options import NONE, Count, Names, Parts, Rate, Text, default_of_the_paper
from cycletime.duration import Duration
from cycletime.errors import InputError

if TYPE_CHECKING:
    from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent

_ALGORITHMS = ("ppo", "sac", "actor-critic")
_DTS = Names(("2ms", "4ms", "8ms", "16ms", "32ms", "64ms", "128ms"))

CycleTimes: TypeAlias = Annotated[
    Names,
    PrimitiveConstructorSpec("*", "TIME ...", Names, lambda x: True, list),
    arg(help_behavior_hint=f"(default: {' '.join(_DTS)})"),
]
Sizes: TypeAlias = Annotated[
    Names,
    PrimitiveConstructorSpec("*", "N ...", Names, lambda x: True, list),
    arg(help_behavior_hint="(default: 64 64, of SAC 256 256)"),
]


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Time act and learn on this machine, and say which cycle times have room for them.

    The agent at each cycle time is the one that a rule carries there, so that PPO's batch differs.
    """

    algorithm: Annotated[str, arg(metavar="ppo|sac|actor-critic")] = "ppo"
    """The agent."""
    task: Annotated[Text, arg(metavar="TASK", help_behavior_hint="(default: reacher)")] = None
    """The task whose observations and actions it has; for your own give both sizes instead."""
    observation_size: Annotated[Count, arg(help_behavior_hint="(default: the task's)")] = None
    """Numbers in an observation."""
    action_size: Annotated[Count, arg(help_behavior_hint="(default: the task's)")] = None
    """Numbers in an action."""
    hidden: Sizes = NONE
    """Sizes of the networks' layers."""
    batch: Annotated[Count, default_of_the_paper(rules.PPO.batch)] = None
    """PPO's b at --tuned-at."""
    minibatch: Annotated[Count, arg(help_behavior_hint="(default: the paper's baseline, 50, of SAC 256)")] = None
    """m at --tuned-at."""
    tuned_at: Annotated[str, arg(metavar="TIME")] = "16ms"
    """The cycle time that the agent's values are for."""
    rule: Annotated[Text, arg(metavar="RULE", help_behavior_hint="(default: dt-aware, of SAC horizons)")] = None
    """The rule that carries them to the other cycle times, as in 'cycletime transfer'."""
    also: Parts = NONE
    """Keep in seconds as well, as in 'cycletime transfer'; updates-per-second decides how often SAC learns."""
    dts: CycleTimes = _DTS
    """The cycle times to judge."""
    margin: Annotated[Rate, arg(help_behavior_hint="(default: 0.5)")] = None
    """The part of a cycle that is left to communication and everything else."""
    episode: Annotated[str, arg(metavar="TIME")] = "4s"
    """How long an episode lasts."""
    reset_time: Annotated[str, arg(metavar="TIME")] = "2s"
    """How long the robot takes to begin another one."""
    measure_for: Annotated[str, arg(metavar="TIME")] = "5s"
    """How long each call is repeated; at least five times."""
    json: bool = False
    """Print JSON instead of the tables."""

    def run(self) -> int:
        """Measure, judge and print."""
        if self.algorithm not in _ALGORITHMS:
            raise InputError(f"{self.algorithm!r} is not an algorithm here: choose one of {', '.join(_ALGORITHMS)}.")
        budget_s, dts = float(Duration(self.measure_for)), self._cycle_times()
        import jax

        # Before JAX starts its CPU: a small call then takes less than half as long.
        jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
        from rich.console import Console

        from cycletime.loops.latency import Conditions, measure_agents

        conditions = Conditions(
            margin=0.5 if self.margin is None else self.margin, episode=self.episode, reset_time=self.reset_time
        )
        observation_size, action_size = self._sizes()
        agents = {dt: self._agent(dt, action_size) for dt in dts}
        machine = _machine()
        with Console(stderr=True).status("Timing ...") as status:
            act, learn = measure_agents(agents, observation_size, action_size, budget_s, status.update)
        report = LatencyReport(self.algorithm, observation_size, action_size, agents, machine, act, learn, conditions)
        print(json.dumps(report.as_json(), indent=2) if self.json else report.as_text())
        return 0

    def _cycle_times(self) -> list[Duration]:
        if not self.dts:
            raise InputError("--dts names no cycle time: give some, such as --dts 4ms 8ms.")
        return sorted({Duration(dt) for dt in self.dts})

    def _sizes(self) -> tuple[int, int]:
        from cycletime.runs.worlds import TASKS, either

        given = {"--observation-size": self.observation_size, "--action-size": self.action_size}
        for option, size in given.items():
            if size is not None and size < 1:
                raise InputError(f"{option} is {size}: it must be at least 1.")
            if size is not None and self.task:
                raise InputError(f"--task {self.task} has sizes of its own: give the task or the sizes, not both.")
        if self.observation_size and self.action_size:
            return self.observation_size, self.action_size
        if self.observation_size or self.action_size:
            missing = next(option for option, size in given.items() if size is None)
            raise InputError(f"{missing} is missing: give both sizes, or a --task, which has its own.")
        name = "reacher" if self.task is None else self.task
        if name not in TASKS:
            raise InputError(f"{name!r} is not a task here: choose {either(TASKS)}, or give both sizes.")
        return TASKS[name].observation_size, TASKS[name].action_size

    def _agent(self, dt: Duration, action_size: int) -> PPOAgent | SACAgent | ActorCriticAgent:
        """The agent at a cycle time."""
        from cycletime.agents import ActorCriticAgent, agent_for

        others: dict[str, Any] = {"hidden": tuple(map(_layer, self.hidden))} if self.hidden else {}
        options = {"batch": self.batch, "minibatch": self.minibatch, "rule": self.rule, "also": " ".join(self.also)}
        if self.algorithm == "actor-critic":
            for name, value in options.items():
                if value:
                    raise InputError(f"--{name} {value} is given: actor-critic has no such value, so leave it out.")
            return ActorCriticAgent(**others)
        if self.algorithm == "sac" and self.batch is not None:
            raise InputError(f"--batch is {self.batch}: SAC has no batch, so leave it out.")
        given: dict[str, Any] = {name: options[name] for name in ("batch", "minibatch") if options[name] is not None}
        if self.algorithm == "ppo":
            return agent_for(rules.PPO(dt=self.tuned_at, **given).at(dt, self.rule, self.also), **others)
        values = rules.SAC(dt=self.tuned_at, action_size=action_size, **given)
        return agent_for(values.at(dt, self.rule, self.also), **others)


def _machine() -> dict[str, Any]:
    """Where this runs; cores are those that the process may use, as many as XLA has threads."""
    import jax

    from cycletime.runs.machine import cores, load, processor

    return {
        "cpu": processor(),
        "cores": cores(),
        "load": load(),
        "jax": jax.__version__,
        "device": jax.devices()[0].device_kind,
    }


def _layer(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise InputError(f"--hidden {word!r} is not a size of a layer: give whole numbers, such as --hidden 64 64.")
    return int(word)
