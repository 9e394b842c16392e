"""A study: tasks x algorithms x rules x cycle times x hyper-parameters x seeds, as one object or one TOML file.

    name = "reacher-quick"
    task = "reacher"
    algorithm = "ppo"
    dts = ["8ms", "16ms", "32ms"]
    rules = ["baseline", "dt-aware"]
    seeds = 3
    env_steps = 100_000
    [tuned]
    dt = "16ms"
    batch = 2000

Whatever is one value may be a list, and the study has all combinations. Where algorithms differ, a table for each:
``rules = { ppo = ["dt-aware"], sac = ["tuned"] }``, ``[tuned.ppo]``, ``[set.sac]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any

from cycletime.agents import Agent
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.runs.carried import TUNABLE, carried_agent
from cycletime.runs.spec import AGENTS, EngineSpec, RunSpec
from cycletime.runs.worlds import PaperTask, World

Grid = Mapping[str, tuple[Any, ...]]
"""By name, the values that are tried."""


@dataclass(frozen=True)
class Tuned:
    """Values of an algorithm, and the cycle time that they were tuned at."""

    dt: Duration | None
    """None where they are for every cycle time as they are, and no rule carries them."""
    values: Grid = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """What seeds are repeated over: one place in the study."""

    labels: Mapping[str, Any]
    """Its coordinates: task, algorithm, rule, dt, and the hyper-parameters that the study varies."""
    world: World
    agent: Agent
    dt: Duration
    env_steps: int
    engine: EngineSpec
    origin: Mapping[str, Any]

    def run(self, seed: int) -> RunSpec:
        """The run with a seed."""
        return RunSpec(
            world=self.world,
            agent=self.agent,
            dt=self.dt,
            env_steps=self.env_steps,
            seed=seed,
            engine=self.engine,
            origin=self.origin,
        )


@dataclass(frozen=True, kw_only=True)
class Study:
    """Many runs."""

    name: str
    """What it is called."""
    worlds: tuple[World, ...]
    """The tasks and environments."""
    algorithms: tuple[str, ...]
    """Of ppo, sac and actor-critic."""
    dts: tuple[Duration, ...]
    """The cycle times."""
    rules: Mapping[str, tuple[str, ...]]
    """By algorithm, how its tuned values are carried."""
    seeds: tuple[int, ...]
    """The seeds of every cell."""
    env_steps: int
    """The budget of every run."""
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    """By algorithm, its values; left out, the paper's baseline at 16 ms."""
    others: Mapping[str, Grid] = field(default_factory=dict)
    """By algorithm, further fields of the agent."""
    device: str = "cpu"
    """Where JAX computes."""
    width: int = 1
    """The runs that one program carries; more than 1 is for GPUs."""

    def __post_init__(self) -> None:
        """Refuse what is no study."""
        for name in ("worlds", "algorithms", "dts", "seeds"):
            given, called = getattr(self, name), "tasks or envs" if name == "worlds" else name
            if not given:
                raise InputError(f"The study {self.name!r} has no {called}: give at least one.")
            if len(set(given)) != len(given):
                words = ", ".join(str(getattr(each, "name", each)) for each in given)
                raise InputError(f"The study {self.name!r} has some {called} twice: {words}.")
        for algorithm in self.algorithms:
            if algorithm not in AGENTS:
                raise InputError(f"{algorithm!r} is no algorithm: give one of {', '.join(AGENTS)}.")
            for grid in self._grids(algorithm):
                _check_grid(algorithm, grid)
            known = [each.name for each in fields(AGENTS[algorithm]) if each.name != "exploration"]
            for name in self.others.get(algorithm, {}):
                if name not in known:
                    raise InputError(f"set has {name!r}: {algorithm} has {', '.join(known)}.")
                if name in TUNABLE[algorithm]:
                    raise InputError(f"set has {name!r}: it is a tuned value of {algorithm}, so give it in 'tuned'.")

    @property
    def size(self) -> int:
        """The runs, those counted twice that two cells share."""
        return sum(1 for _ in self.cells()) * len(self.seeds)

    def cells(self) -> Iterator[Cell]:
        """All combinations but for seeds, in the order of a table."""
        for world, algorithm in product(self.worlds, self.algorithms):
            for dt, rule in product(self.dts, self.rules.get(algorithm) or (None,)):
                for values, others in product(self._tried(algorithm), _combinations(self.others.get(algorithm, {}))):
                    yield self._cell(world, algorithm, dt, rule, values, others)

    def runs(self) -> Iterator[tuple[Mapping[str, Any], RunSpec]]:
        """All runs, each with its labels and its seed among them. Two cells can share a run."""
        for cell in self.cells():
            for seed in self.seeds:
                yield {**cell.labels, "seed": seed}, cell.run(seed)

    def _tried(self, algorithm: str) -> list[dict[str, Any]]:
        return _combinations(self.tuned[algorithm].values) if algorithm in self.tuned else [{}]

    def _cell(
        self,
        world: World,
        algorithm: str,
        dt: Duration,
        rule: str | None,
        values: dict[str, Any],
        others: dict[str, Any],
    ) -> Cell:
        tuned_at = self.tuned[algorithm].dt if algorithm in self.tuned else Duration("16ms")
        carries = algorithm != "actor-critic" and rule is not None
        agent, origin = carried_agent(
            algorithm,
            values,
            dt=dt,
            tuned_at=tuned_at if carries else None,
            rule=rule if carries else None,
            others=others,
        )
        varied = {name for grid in self._grids(algorithm) for name, tried in grid.items() if len(tried) > 1}
        hyperparameters = {name: value for name, value in {**values, **others}.items() if name in varied}
        labels = {"task": world.name, "algorithm": algorithm, "rule": rule, "dt": dt, **hyperparameters}
        engine = EngineSpec("compiled" if isinstance(world, PaperTask) else "stepped", self.device)
        if engine.name == "compiled":
            engine = replace(engine, width=self.width)
        return Cell(labels, world, agent, dt, self.env_steps, engine, origin)

    def _grids(self, algorithm: str) -> tuple[Grid, ...]:
        tuned = self.tuned[algorithm].values if algorithm in self.tuned else {}
        return tuned, self.others.get(algorithm, {})


def _combinations(grid: Grid) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _check_grid(algorithm: str, grid: Grid) -> None:
    for name, values in grid.items():
        if not values:
            raise InputError(f"{name} of {algorithm} has no value: give at least one.")
        if len(set(values)) != len(values):
            raise InputError(f"{name} of {algorithm} has the same value twice: {list(values)}.")


def is_tunable(algorithm: str, name: str) -> bool:
    """Whether a hyper-parameter is one that rules carry."""
    return name in TUNABLE.get(algorithm, ())
