"""`cycletime latency` and `cycletime gpu check`: what this machine can do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from cycletime import rules
from cycletime.cli.options import NO_NAMES, Count, NameList, NameListOption, Rate, Text, Whole, name_list, paper_default
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.rules.hyperparameters import align_columns

if TYPE_CHECKING:
    from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
    from cycletime.training.latency import CallTimes, TimingConditions, TimingVerdict

_LEARN_MODES = {"inline": "inline", "between_episodes": "between episodes", "background": "in the background"}


@dataclass(frozen=True)
class LatencyReport:
    algorithm: str
    observation_size: int
    action_size: int
    agents: Mapping[Duration, PPOAgent | SACAgent | ActorCriticAgent]
    """At each cycle time."""
    machine: Mapping[str, Any]
    """Where, and how busy it was before."""
    act: CallTimes
    learn: Mapping[Duration, CallTimes]
    """At each cycle time; the same object where it was measured once for several."""
    conditions: TimingConditions
    num_envs: int
    cycles: Mapping[Duration, int]
    """At each cycle time, the cycles from one learning to the next."""
    verdicts: Sequence[TimingVerdict]
    shortest: Mapping[str, Duration | None]
    """For each way to learn, the shortest of the cycle times that leaves time for it."""

    def as_json(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "observation_size": self.observation_size,
            "action_size": self.action_size,
            **({} if self.num_envs == 1 else {"num_envs": self.num_envs}),
            "machine": dict(self.machine),
            "margin": self.conditions.margin,
            "episode_s": float(Duration(self.conditions.episode)),
            "reset_time_s": float(Duration(self.conditions.reset_time)),
            "act": asdict(self.act),
            "dts": [
                {
                    "dt_s": float(each.dt),
                    "shape": _shape(self.agents[each.dt]),
                    "period_steps": self.agents[each.dt].period,
                    "learn": asdict(self.learn[each.dt]),
                    **{way: asdict(getattr(each, way)) for way in ("act", *_LEARN_MODES)},
                    "learnings_per_episode": each.updates,
                    "stale_cycles": each.stale_cycles,
                }
                for each in self.verdicts
            ],
            "shortest_dt_s": {way: None if dt is None else float(dt) for way, dt in self.shortest.items()},
        }

    def as_text(self) -> str:
        machine, conditions = self.machine, self.conditions
        # Several cycle times may share one measurement.
        learned = {id(times): (self.agents[dt], times) for dt, times in self.learn.items()}
        learn = [(_learning(agent), *_time_cells(times)) for agent, times in learned.values()]
        calls = [("act", *_time_cells(self.act)), *learn]
        every = {dt: f"{cycles} cycles" if cycles > 1 else "cycle" for dt, cycles in self.cycles.items()}
        several = "" if self.num_envs == 1 else f"; {self.num_envs} environments"
        rows = [(str(each.dt), every[each.dt], *_way_cells(each)) for each in self.verdicts]
        return "\n".join(
            [
                f"{self.algorithm}: {self.observation_size} numbers in an observation, {self.action_size} in an action"
                f"{several}",
                f"{machine['cpu']}, {machine['cores']} cores; JAX {machine['jax']} on {machine['device']}",
                "",
                *align_columns([("call", "first", "median", "99th percentile", "worst", "repeats"), *calls]),
                "",
                *align_columns([("cycle", "learns every", "inline", "between episodes", "background", "stale"), *rows]),
                "",
                f"inline: act and learn in one cycle, of which {_percent(conditions.margin)} is to stay free",
                f"between episodes: all updates of {conditions.episode}, in a reset of {conditions.reset_time}",
                "background: a learning, in the time until the next",
                "stale: the cycles that begin during a learning in the background, and act by the policy before it",
                "",
                *self._advice(),
            ]
        )

    def _advice(self) -> list[str]:
        found = [f"{_LEARN_MODES[way]} {dt}" for way, dt in self.shortest.items() if dt is not None]
        missing = [_LEARN_MODES[way] for way, dt in self.shortest.items() if dt is None]
        load, cores = self.machine["load"], self.machine["cores"]
        return [
            *([f"The shortest cycle time with room to learn: {', '.join(found)}."] if found else []),
            *([f"None of these cycle times has room to learn {' or '.join(missing)}."] if missing else []),
            *([f"The machine was busy before, with a load of {load:.1f}: measure again."] if load > cores / 2 else []),
        ]


def _shape(agent: PPOAgent | SACAgent | ActorCriticAgent) -> dict[str, int]:
    """The sizes that the time of learning depends on, beside those of the networks."""
    names = ("batch", "minibatch", "epochs", "gradient_steps", "replay_capacity")
    return {name: getattr(agent, name) for name in names if hasattr(agent, name)}


def _learning(agent: PPOAgent | SACAgent | ActorCriticAgent) -> str:
    symbols = {"batch": "b", "minibatch": "m", "gradient_steps": "g"}
    return " ".join(["learn", *(f"{symbols[name]} {n}" for name, n in _shape(agent).items() if name in symbols)])


def _time_cells(times: CallTimes) -> tuple[str, ...]:
    seconds = (times.first_s, times.median_s, times.p99_s, times.worst_s)
    return (*map(_spelled, seconds), str(times.count))


def _way_cells(verdict: TimingVerdict) -> tuple[str, ...]:
    notes = {way: _percent(getattr(verdict, way).share) for way in _LEARN_MODES}
    if not verdict.act.fits:
        notes["between_episodes"] = notes["background"] = f"act {_percent(verdict.act.share)}"
    rooms = [f"{'yes' if getattr(verdict, way).fits else 'no'}, {note}" for way, note in notes.items()]
    return (*rooms, str(verdict.stale_cycles))


def _spelled(seconds: float) -> str:
    size, unit = next(((s, u) for s, u in ((1, "s"), (1e-3, "ms")) if seconds >= 0.9995 * s), (1e-6, "us"))
    number = float(f"{seconds / size:.3g}")
    return f"{number:g} {unit}" if number < 1e6 else f"{number:.0f} {unit}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


_DTS = NameList(("2ms", "4ms", "8ms", "16ms", "32ms", "64ms", "128ms"))


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Time act and learn on this machine, and say which cycle times have room for them.

    The agent at each cycle time is the one that a rule carries there, so that PPO's batch differs.
    """

    algorithm: Annotated[Literal["ppo", "sac", "actor-critic"], arg(metavar="ppo|sac|actor-critic")] = "ppo"
    """The agent."""
    task: Annotated[Text, arg(metavar="TASK", help_behavior_hint="(default: reacher)")] = None
    """The task whose observations and actions it has; for your own give both sizes instead."""
    observation_size: Annotated[Count, arg(help_behavior_hint="(default: the task's)")] = None
    """Numbers in an observation."""
    action_size: Annotated[Count, arg(help_behavior_hint="(default: the task's)")] = None
    """Numbers in an action."""
    hidden: Annotated[NameList, name_list("N ..."), arg(help_behavior_hint="(default: 64 64, of SAC 256 256)")] = (
        NO_NAMES
    )
    """Sizes of the networks' layers."""
    num_envs: Whole = 1
    """Environments side by side, for all of which one act is computed in a cycle."""
    batch: Annotated[Count, paper_default(rules.PPO.batch)] = None
    """PPO's b at --tuned-at."""
    minibatch: Annotated[Count, arg(help_behavior_hint="(default: the paper's baseline, 50, of SAC 256)")] = None
    """m at --tuned-at."""
    tuned_at: Annotated[str, arg(metavar="TIME")] = "16ms"
    """The cycle time that the agent's values are for."""
    rule: Annotated[Text, arg(metavar="RULE", help_behavior_hint="(default: dt-aware, of SAC horizons)")] = None
    """The rule that carries them to the other cycle times, as in 'cycletime transfer'."""
    also: NameListOption = NO_NAMES
    """Keep in seconds as well, as in 'cycletime transfer'; updates-per-second decides how often SAC learns."""
    dts: Annotated[NameList, name_list("TIME ..."), arg(help_behavior_hint=f"(default: {' '.join(_DTS)})")] = _DTS
    """The cycle times to judge."""
    margin: Annotated[Rate, arg(help_behavior_hint="(default: 0.2)")] = None
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
        budget_s = float(Duration(self.measure_for))
        if not self.dts:
            raise InputError("--dts names no cycle time: give some, such as --dts 4ms 8ms.")
        dts = sorted({Duration(dt) for dt in self.dts})
        import jax

        # Before JAX starts its CPU: a small call then takes less than half as long.
        jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
        from rich.console import Console

        from cycletime.agents.agent import cycles_between_updates
        from cycletime.training.latency import (
            DEFAULT_MARGIN,
            TimingConditions,
            judge_timing,
            measure_agents,
            shortest_dts,
        )
        from cycletime.training.machine import cores, processor, system_load

        margin = DEFAULT_MARGIN if self.margin is None else self.margin
        conditions = TimingConditions(margin=margin, episode=self.episode, reset_time=self.reset_time)
        sizes = self._sizes()
        agents = {dt: self._agent(dt, action_size=sizes[1]) for dt in dts}
        machine = {
            "cpu": processor(),
            "cores": cores(),  # those that the process may use, as many as XLA has threads
            "load": system_load(),
            "jax": jax.__version__,
            "device": jax.devices()[0].device_kind,
        }
        with Console(stderr=True).status("Timing ...") as status:
            act, learn = measure_agents(agents, *sizes, budget_s, status.update, self.num_envs)
        cycles = {dt: cycles_between_updates(agent, self.num_envs) for dt, agent in agents.items()}
        verdicts = [judge_timing(dt, cycles[dt], act, learn[dt], conditions) for dt in dts]
        shortest = shortest_dts(verdicts)
        report = LatencyReport(
            self.algorithm, *sizes, agents, machine, act, learn, conditions, self.num_envs, cycles, verdicts, shortest
        )
        print(json.dumps(report.as_json(), indent=2) if self.json else report.as_text())
        return 0

    def _sizes(self) -> tuple[int, int]:
        from cycletime.tasks import CLOSED_FORMS
        from cycletime.training.worlds import either, task_class

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
        if name not in CLOSED_FORMS:
            raise InputError(f"{name!r} is not a task here: choose {either(CLOSED_FORMS)}, or give both sizes.")
        return len(task_class(name).observation_limits), task_class(name).action_size

    def _agent(self, dt: Duration, action_size: int) -> PPOAgent | SACAgent | ActorCriticAgent:
        from cycletime.agents import ActorCriticAgent, agent_for
        from cycletime.agents.checks import check_rows
        from cycletime.agents.from_rules import whole_rows

        for word in self.hidden:
            if not word.isdecimal() or int(word) < 1:
                raise InputError(f"--hidden {word!r} is no layer's size: give whole numbers, such as --hidden 64 64.")
        others: dict[str, Any] = {"hidden": tuple(map(int, self.hidden))} if self.hidden else {}
        options = {"batch": self.batch, "minibatch": self.minibatch, "rule": self.rule, "also": " ".join(self.also)}
        if self.algorithm == "actor-critic":
            for name, value in options.items():
                if value:
                    raise InputError(f"--{name} {value} is given: actor-critic has no such value, so leave it out.")
            check_rows(single := ActorCriticAgent(**others), self.num_envs)
            return single
        if self.algorithm == "sac" and self.batch is not None:
            raise InputError(f"--batch is {self.batch}: SAC has no batch, so leave it out.")
        given: dict[str, Any] = {name: options[name] for name in ("batch", "minibatch") if options[name] is not None}
        kind = rules.PPO if self.algorithm == "ppo" else partial(rules.SAC, action_size=action_size)
        carried = kind(dt=self.tuned_at, **given).at(dt, self.rule, self.also)
        agent = agent_for(carried, **{**whole_rows(carried, self.num_envs)[0], **others})
        check_rows(agent, self.num_envs)
        return agent


@dataclass(frozen=True, kw_only=True)
class GpuCommand:
    """Check that the engine cuda works on this machine's GPU, in some seconds."""

    command: Annotated[Positional[Literal["check"]], arg(metavar="check")]
    """What to do."""

    def run(self) -> int:
        """Check it; status 1 if something is wrong."""
        from cycletime.cuda.check import print_checks

        return print_checks()
