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
``rules = { ppo = ["dt-aware"], sac = ["tuned"] }``, ``[tuned.ppo]``, ``[set.sac]``. Choices of hyper-parameters that
are not a grid are listed one by one: ``points = [{ batch = 2000, discount = 0.99 }, { batch = 500, discount = 0.9 }]``.
Points that name a ``dt`` are for that cycle time alone. Rules of one's own are tables of laws (`cycletime.rules.own`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cycletime.agents import Agent
from cycletime.agents.checks import check_choice, check_counts
from cycletime.duration import Duration
from cycletime.engines.registry import AUTO, check_engine_of_many, engine_of, with_engine
from cycletime.errors import InputError, shown, unknown
from cycletime.rules import Rule
from cycletime.runs.carried import TUNABLE, carried_agent
from cycletime.runs.spec import AGENTS, EngineSpec, RunSpec
from cycletime.runs.worlds import ClosedFormWorld, World, refuse_budget_without_episode, refuse_unknown_env
from cycletime.studies.spec.checks import check_axes, check_field, check_grid, check_points, without_dt

if TYPE_CHECKING:
    from cycletime.studies.results import StudyResults

PATIENCE = Duration("10min")
"""Longer than programs take to be compiled."""
MOST_RUNS = 1_000_000
"""Of a study. A plan of so many takes 2 GB of memory, and more are a slip of the keyboard."""
Grid = Mapping[str, tuple[Any, ...]]
"""By name, the values that are tried."""
Point: TypeAlias = Mapping[str, Any]
"""One value for each of some hyper-parameters; with a `dt` it is for that cycle time alone."""


@dataclass(frozen=True)
class Source:
    """A file of tuned values, and what it says of the tuning that wrote it; None where it says nothing."""

    file: str
    """Its name, as the study gives it."""
    sha256: str
    """Of the whole file."""
    tuning: str | None = None
    """What the tuning is called."""
    trials: int | None = None
    """How many choices of values it tried."""
    seeds: int | None = None
    """Of each trial."""
    runs: int | None = None
    """Of all trials together, without those of the winner with fresh seeds."""
    simulated_hours: float | None = None
    """Of these runs, in the environment's time."""


@dataclass(frozen=True)
class Tuned:
    """Values of an algorithm, and the cycle time that they were tuned at."""

    dt: Duration | None
    """None where they are for every cycle time as they are, and no rule carries them."""
    values: Grid = field(default_factory=dict)
    source: Source | None = None
    """The file that they were read from; None where the study gives them itself."""


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
    own_rules: Mapping[str, Rule] = field(default_factory=dict)
    """By name, those of them that are one's own."""
    seeds: tuple[int, ...]
    """The seeds of every cell."""
    env_steps: int
    """The budget of every run."""
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    """By algorithm, its values; left out, the paper's baseline at 16 ms."""
    others: Mapping[str, Grid] = field(default_factory=dict)
    """By algorithm, further fields of the agent."""
    points: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    """By algorithm, choices of values that are not a grid, on top of the others."""
    device: str = "cpu"
    """Where JAX computes."""
    width: int | None = None
    """The runs that one program carries; None where `resolved` is to choose."""
    engine: str = AUTO
    """What computes tasks in closed form: an engine, or 'auto' for the fastest that takes a run on the device."""
    patience: Duration = PATIENCE
    """How long a run may take for one step of its environment, or a chunk of a compiled program, until it hangs."""

    def __post_init__(self) -> None:
        """Refuse what is not a study."""
        check_engine_of_many(self.engine)
        check_choice(self, "device", ("cpu", "gpu"))
        if self.width is not None:
            check_counts(self, "width")
            if self.width > MOST_RUNS:
                raise InputError(f"width is {shown(self.width)}: a study has {MOST_RUNS:,} runs at most.")
        check_axes(self)
        for algorithm in self.algorithms:
            if algorithm not in AGENTS:
                raise unknown(algorithm, "an algorithm", AGENTS)
            for grid in self.grids(algorithm):
                check_grid(algorithm, grid)
            for name in self.others.get(algorithm, {}):
                check_field("set", algorithm, name)
                if name in TUNABLE[algorithm]:
                    raise InputError(f"set has {name!r}: it is a tuned value of {algorithm}, so give it in 'tuned'.")
            check_points(self, algorithm)

    def check_size(self) -> None:
        """Refuse more runs than can be planned.

        Raises:
            InputError: if there are so many.
        """
        if self.size > MOST_RUNS:
            raise InputError(f"The study {self.name!r} has {self.size:,} runs: it may have {MOST_RUNS:,} at most.")

    def check_worlds(self) -> None:
        """Refuse tasks and environments that no worker could learn on, before anything is written.

        Raises:
            InputError: if an environment is not known, or no episode can end within the budget.
        """
        for world in self.worlds:
            refuse_unknown_env(world)
            refuse_budget_without_episode(world, self.env_steps)

    def check_runs(self) -> None:
        """Refuse what cannot run: worlds, and all that is known only when rules have carried the values.

        Raises:
            InputError: if there is any.
        """
        self.check_worlds()
        for cell in self.cells():
            cell.run(self.seeds[0])

    @classmethod
    def read(cls, file: Path | str) -> Study:
        """The study in a TOML file.

        Raises:
            InputError: if it cannot be read, or is not a study; the sentence names the file.
        """
        from cycletime.studies.spec.file import read_study

        return read_study(Path(file))

    def run(
        self,
        out: Path | str,
        *,
        workers: int | None = None,
        executor: str = "local",
        progress: bool = True,
        stop: Callable[[], bool] = lambda: False,
    ) -> StudyResults:
        """Run what is not done yet, and keep it in a folder; what came of the study.

        Args:
            out: The folder; the same call goes on with it.
            workers: Processes, tasks or jobs at a time; by default one for each core or GPU.
            executor: Who computes: local, ray or slurm.
            progress: Whether to show how it goes, on standard error or in the notebook.
            stop: Asked about twice a second; where it says yes, workers save and leave.
        """
        from cycletime.studies.executors.choose import ExecutorOptions, executor_for
        from cycletime.studies.results import StudyResults
        from cycletime.studies.running.progress import StudyProgress
        from cycletime.studies.running.running import run_study
        from cycletime.studies.store.folder import StudyFolder

        folder = StudyFolder.create(Path(out), self)
        who = executor_for(executor, ExecutorOptions(workers=workers), self.device)
        run_study(folder, who, watcher=StudyProgress(who.workers) if progress else None, stop=stop)
        return StudyResults(folder)

    @property
    def size(self) -> int:
        """The runs, those counted twice that two cells share. They are not made for it: there may be too many."""
        tried = sum(self._dts_and_values(algorithm) for algorithm in self.algorithms)
        return len(self.worlds) * tried * len(self.seeds)

    def _dts_and_values(self, algorithm: str) -> int:
        """How many cycle times, rules and choices of hyper-parameters there are together."""
        points = self.points.get(algorithm, ())
        dts = () if any("dt" in point for point in points) else self.dts
        lists: list[tuple[object, ...]] = [points, dts, self.rules.get(algorithm, ())]
        lists += [values for grid in self.grids(algorithm) for values in grid.values()]
        return math.prod(len(each) or 1 for each in lists)

    def resolved(self, begun: Study | None = None) -> Study:
        """This study with the width of its programs, where it does not say.

        The width is part of a run's identity. So it follows from the study alone, and not from the machine that
        happens to look: the command line, Python and a pack all plan the same runs.

        Args:
            begun: The same study as it was when it began, if it did: its width is kept.

        Raises:
            InputError: if not one run fits into the memory of a GPU.
        """
        if self.width is not None:
            return self
        if begun is not None and begun.device == self.device:
            return replace(self, width=begun.width)
        groups: Counter[tuple[tuple[str, ...], str]] = Counter()
        largest: dict[tuple[str, ...], RunSpec] = {}
        for cell in self.cells() if self.device == "gpu" else ():
            spec = cell.run(self.seeds[0])
            kind = spec.world.name, spec.algorithm, spec.engine.name
            groups[kind, engine_of(spec).program(spec)] += len(self.seeds)
            largest[kind] = max(largest.get(kind, spec), spec, key=lambda each: (each.agent.capacity, -each.dt.exact_s))
        lanes = {kind: engine_of(spec).most_lanes(spec) for kind, spec in largest.items()}
        if 0 in lanes.values():
            raise InputError("A run does not fit into the memory of a GPU: give the agent a smaller replay.")
        runs = max((count for (kind, _), count in groups.items() if lanes[kind] > 1), default=1)
        most = min((each for each in lanes.values() if each > 1), default=1)
        # As few turns as possible, and an even share in each: 31 runs of which 20 fit have the width 16.
        return replace(self, width=math.ceil(runs / math.ceil(runs / most)))

    def cells(self) -> Iterator[Cell]:
        """All combinations but for seeds, in the order of a table.

        Raises:
            InputError: if there are too many, or values that make no sense together.
        """
        self.check_size()
        for world, algorithm in product(self.worlds, self.algorithms):
            for dt, rule in product(self.dts, self.rules.get(algorithm) or (None,)):
                for values in self._tried(algorithm, dt):
                    yield self._cell(world, algorithm, dt, rule, values)

    def runs(self) -> Iterator[tuple[Mapping[str, Any], RunSpec]]:
        """All runs, each with its labels and its seed among them. Two cells can share a run."""
        for cell in self.cells():
            for seed in self.seeds:
                yield {**cell.labels, "seed": seed}, cell.run(seed)

    def _tried(self, algorithm: str, dt: Duration) -> Iterator[dict[str, Any]]:
        """All choices of hyper-parameters at a cycle time."""
        grid = {name: values for each in self.grids(algorithm) for name, values in each.items()}
        points = [point for point in self.points.get(algorithm) or ({},) if Duration(point.get("dt", dt)) == dt]
        for point, values in product(points, product(*grid.values())):
            yield {**dict(zip(grid, values, strict=True)), **without_dt(point)}

    def _cell(self, world: World, algorithm: str, dt: Duration, rule: str | None, values: dict[str, Any]) -> Cell:
        tuned_at = self.tuned[algorithm].dt if algorithm in self.tuned else Duration("16ms")
        carries = algorithm != "actor-critic" and rule is not None
        used = None if rule is None else self.own_rules.get(rule, rule)
        agent, origin = carried_agent(
            algorithm,
            {name: value for name, value in values.items() if name in TUNABLE[algorithm]},
            dt=dt,
            tuned_at=tuned_at if carries else None,
            rule=used if carries else None,
            others={name: value for name, value in values.items() if name not in TUNABLE[algorithm]},
        )
        varied = {name for grid in self.grids(algorithm) for name, tried in grid.items() if len(tried) > 1}
        varied |= {name for point in self.points.get(algorithm, ())[:1] for name in without_dt(point)}
        hyperparameters = {name: value for name, value in values.items() if name in varied}
        labels = {"task": world.name, "algorithm": algorithm, "rule": rule, "dt": dt, **hyperparameters}
        engine = EngineSpec(device=self.device, width=self.width or 1)
        cell = Cell(labels, world, agent, dt, self.env_steps, engine, origin)
        wanted = self.engine if isinstance(world, ClosedFormWorld) else AUTO
        return replace(cell, engine=with_engine(cell.run(self.seeds[0]), wanted).engine)

    def grids(self, algorithm: str) -> tuple[Grid, ...]:
        """The values that are tried of an algorithm: the tuned ones, and further fields of its agent."""
        tuned = self.tuned[algorithm].values if algorithm in self.tuned else {}
        return tuned, self.others.get(algorithm, {})
