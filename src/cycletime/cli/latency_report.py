"""What `cycletime latency` prints: two tables and advice, or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Any

from cycletime.duration import Duration

if TYPE_CHECKING:
    from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
    from cycletime.loops.latency import Conditions, Room, Times, Verdict

_WAYS = {"inline": "inline", "between_episodes": "between episodes", "background": "in the background"}


@dataclass(frozen=True)
class LatencyReport:
    """What was measured, and what follows for each cycle time."""

    algorithm: str
    observation_size: int
    action_size: int
    agents: Mapping[Duration, PPOAgent | SACAgent | ActorCriticAgent]
    """At each cycle time."""
    machine: Mapping[str, Any]
    """Where, and how busy it was before."""
    act: Times
    learn: Mapping[Duration, Times]
    """At each cycle time; the same object where it was measured once for several."""
    conditions: Conditions

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """One for each cycle time."""
        from cycletime.loops.latency import verdict

        return [
            verdict(dt, agent.period, self.act, self.learn[dt], self.conditions) for dt, agent in self.agents.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """Times in seconds, shares as fractions."""
        from cycletime.loops.latency import shortest_with_room

        shortest = shortest_with_room(self.verdicts)
        return {
            "algorithm": self.algorithm,
            "observation_size": self.observation_size,
            "action_size": self.action_size,
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
                    **{way: asdict(getattr(each, way)) for way in ("act", *_WAYS)},
                    "learnings_per_episode": each.learnings,
                    "stale_cycles": each.stale_cycles,
                }
                for each in self.verdicts
            ],
            "shortest_dt_s": {way: None if dt is None else float(dt) for way, dt in shortest.items()},
        }

    def as_text(self) -> str:
        """Two tables and a sentence of advice."""
        machine, conditions = self.machine, self.conditions
        # Several cycle times may share one measurement.
        learned = {id(times): (self.agents[dt], times) for dt, times in self.learn.items()}
        calls = [("act", self.act), *((_learning(agent), times) for agent, times in learned.values())]
        rows = [(str(each.dt), _every(self.agents[each.dt].period), *_way_cells(each)) for each in self.verdicts]
        return "\n".join(
            [
                f"{self.algorithm}: {self.observation_size} numbers in an observation, {self.action_size} in an action",
                f"{machine['cpu']}, {machine['cores']} cores; JAX {machine['jax']} on {machine['device']}",
                "",
                _table(
                    ("call", "first", "median", "99th percentile", "worst", "repeats"),
                    [(name, *_time_cells(times)) for name, times in calls],
                ),
                _table(("cycle", "learns every", "inline", "between episodes", "background", "stale"), rows),
                f"inline: act and learn in one cycle, of which {_percent(conditions.margin)} is to stay free",
                f"between episodes: all updates of {conditions.episode}, in a reset of {conditions.reset_time}",
                "background: a learning, in the time until the next",
                "stale: the cycles that begin during a learning in the background, and act by the policy before it",
                "",
                *self._advice(),
            ]
        )

    def _advice(self) -> list[str]:
        from cycletime.loops.latency import shortest_with_room

        shortest = shortest_with_room(self.verdicts)
        found = [f"{_WAYS[way]} {dt}" for way, dt in shortest.items() if dt is not None]
        missing = [_WAYS[way] for way, dt in shortest.items() if dt is None]
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


def _every(period: int) -> str:
    return f"{period} cycles" if period > 1 else "cycle"


def _time_cells(times: Times) -> tuple[str, ...]:
    seconds = (times.first_s, times.median_s, times.p99_s, times.worst_s)
    return (*map(_spelled, seconds), str(times.count))


def _way_cells(verdict: Verdict) -> tuple[str, ...]:
    notes = {way: _percent(getattr(verdict, way).share) for way in _WAYS}
    if not verdict.act.fits:
        notes["between_episodes"] = notes["background"] = f"act {_percent(verdict.act.share)}"
    rooms = [f"{_yes_or_no(getattr(verdict, way))}, {note}" for way, note in notes.items()]
    return (*rooms, str(verdict.stale_cycles))


def _yes_or_no(room: Room) -> str:
    return "yes" if room.fits else "no"


def _spelled(seconds: float) -> str:
    """With three digits and a unit."""
    size, unit = next(((s, u) for s, u in ((1, "s"), (1e-3, "ms")) if seconds >= 0.9995 * s), (1e-6, "us"))
    number = float(f"{seconds / size:.3g}")
    return f"{number:g} {unit}" if number < 1e6 else f"{number:.0f} {unit}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As text, so that a reader that stops early, such as head, is dealt with where all output is."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*heads, box=box.MARKDOWN)
    for row in rows:
        table.add_row(*row)
    console = Console(file=StringIO(), width=Console().width, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get().strip() + "\n"
