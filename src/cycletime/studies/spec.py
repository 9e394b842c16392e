"""A study: tasks x algorithms x rules x cycle times x hyper-parameters x seeds, as one object or one TOML file.

Whatever is one value may be a list, and the study has all combinations; `docs/studies.md` has the file. Points are
choices of hyper-parameters that are not a grid; those that name a ``dt`` are for that cycle time alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from numbers import Integral
from typing import Any, TypeAlias

from cycletime.agents import Agent
from cycletime.agents.checks import check_choice, check_counts
from cycletime.duration import Duration
from cycletime.errors import InputError, did_you_mean, quote, unknown_name_error
from cycletime.libraries.synonyms import name_hint
from cycletime.rules import Rule
from cycletime.trainers.commands import check_command, check_installed, check_rules, check_varied
from cycletime.training.engine import AUTO, check_study_engine, engine_for, with_engine
from cycletime.training.external import ExternalAgent, TrainerSpec
from cycletime.training.make_specs import algorithms_with_rules, known_algorithms, transfer_agent, tunable_names
from cycletime.training.spec import AGENTS, EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld, World, refuse_budget_without_episode, refuse_unknown_env


def check_axes(study: StudySpec) -> None:
    """Refuse axes without a value, or with one twice; rules of one's own that are not used; and what is no seed."""
    for name in ("worlds", "algorithms", "dts", "seeds"):
        given, called = getattr(study, name), "tasks or envs" if name == "worlds" else name
        if not given:
            raise InputError(f"The study {study.name!r} has no {called}: give at least one.")
        if len(set(given)) != len(given):
            twice = next(each for each, count in Counter(given).items() if count > 1)
            words = getattr(twice, "name", twice)
            raise InputError(f"The study {study.name!r} has {words} twice in its {called}: give each once.")
    worlds: tuple[object, ...] = study.worlds
    if wrong := next((each for each in worlds if not isinstance(each, World)), None):
        raise InputError(f"worlds has {quote(wrong)}, no world: Study.read({{'task': 'reacher', ...}}) takes names.")
    named = {name: None for names in study.rules.values() for name in names}
    if unused := next((name for name in study.own_rules if name not in named), None):
        typed = next((repr(name) for name in named if did_you_mean(unused, [name]) != "."), None)  # with an error
        remedy = (
            f"name it there, or leave it out{f'; did you mean {unused!r} where it says {typed}?' if typed else '.'}"
        )
        used = ", ".join(named) or "none"
        raise InputError(f"own_rules has {unused!r}, which is none of the study's rules ({used}): {remedy}")
    for seed in study.seeds:
        if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed < 2**32:
            raise InputError(f"seeds has {quote(seed)}: a seed is a whole number from 0 to below 2**32.")


def check_points(study: StudySpec, algorithm: str) -> None:
    points = study.points.get(algorithm, ())
    for name in without_dt(points[0]) if points else ():
        if study.trainer is None:
            check_field("points", algorithm, name)
        if any(name in grid for grid in study.grids(algorithm)):
            raise InputError(f"{name} of {algorithm} has a value in 'points' and elsewhere: give one of them.")
    seen: set[frozenset[tuple[str, Any]]] = set()
    for point in points:
        if point.keys() != points[0].keys():
            ours, theirs = (", ".join(each) or "nothing" for each in (points[0], point))
            raise InputError(f"points has one with {ours} and one with {theirs}: give all the same names.")
        key = frozenset((name, _hashable(name, value)) for name, value in point.items())
        if key in seen:
            shown = {name: str(value) if name == "dt" else value for name, value in point.items()}
            raise InputError(f"points has the same one twice: {quote(shown)}.")
        seen.add(key)
    named, words = [Duration(point["dt"]) for point in points if "dt" in point], ", ".join(map(str, study.dts))
    if other := next((dt for dt in named if dt not in study.dts), None):
        raise InputError(f"points has one with dt {other}: the study has {words}.")
    if named and (bare := next((dt for dt in study.dts if dt not in named), None)):
        raise InputError(f"points has none with dt {bare}: each cycle time of the study, {words}, needs one.")


def check_grid(algorithm: str, grid: Grid) -> None:
    for name, values in grid.items():
        if not isinstance(values, tuple | list):
            raise InputError(f"{name} of {algorithm} is {quote(values)}: give a tuple of the values to try.")
        if not values:
            raise InputError(f"{name} of {algorithm} has no value: give at least one.")
        if len({_hashable(name, value) for value in values}) != len(values):
            raise InputError(f"{name} of {algorithm} has the same value twice: {quote(list(values))}.")


def _hashable(name: str, value: Any) -> Any:  # noqa: ANN401 - any hyper-parameter
    try:
        hash(value)
    except TypeError:
        raise InputError(f"{name} is {quote(value)}: give one number or text, or a tuple such as (64, 64).") from None
    return value


def without_dt(point: Point) -> Point:
    return {name: value for name, value in point.items() if name != "dt"}


def check_field(where: str, algorithm: str, name: str) -> None:
    known = [each.name for each in fields(AGENTS[algorithm]) if each.name != "exploration"]
    if name not in known:
        meant = name_hint(name, algorithm, known)
        raise InputError(f"{where} has {name!r}: {algorithm} has {', '.join(known)}{meant}")


HANG_TIMEOUT = Duration("10min")
"""Longer than programs take to be compiled."""
MAX_RUNS = 1_000_000
"""A plan of so many takes 2 GB of memory; more are a slip of the keyboard."""
Grid = Mapping[str, tuple[Any, ...]]
Point: TypeAlias = Mapping[str, Any]
"""One value for each of some hyper-parameters; with a `dt` it is for that cycle time alone."""


@dataclass(frozen=True)
class Tuned:
    dt: Duration | None
    """None if they hold at every cycle time, and no rule carries them."""
    values: Grid = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    """Where they are from, if that is a file of tuned values: its name and hash, and what it says of its tuning."""


@dataclass(frozen=True)
class Cell:
    """One combination of task, algorithm, rule, cycle time and hyper-parameters, run with all seeds."""

    labels: Mapping[str, Any]
    """Its coordinates: task, algorithm, rule, dt, and the hyper-parameters that the study varies."""
    spec: RunSpec
    """Of its run with the study's first seed."""

    @property
    def world(self) -> World:
        return self.spec.world

    @property
    def agent(self) -> Agent | ExternalAgent:
        return self.spec.agent

    @property
    def dt(self) -> Duration:
        return self.spec.dt

    def run(self, seed: int) -> RunSpec:
        return replace(self.spec, seed=seed)


@dataclass(frozen=True, kw_only=True)
class StudySpec:
    name: str
    worlds: tuple[World, ...]
    algorithms: tuple[str, ...]
    dts: tuple[Duration, ...]
    rules: Mapping[str, tuple[str, ...]]
    own_rules: Mapping[str, Rule] = field(default_factory=dict)
    seeds: tuple[int, ...]
    env_steps: int
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    """By algorithm, its values; left out, the paper's baseline at 16 ms."""
    others: Mapping[str, Grid] = field(default_factory=dict)
    points: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    """By algorithm, choices of values that are not a grid, on top of the others."""
    num_envs: int = 1
    """The environments of each run; a trainer has its own number."""
    device: str = "cpu"
    width: int | None = None
    """The runs that one program carries; None where `resolved` is to choose."""
    engine: str = AUTO
    """What computes tasks in closed form: an engine, or 'auto' for the fastest that takes a run on the device."""
    hang_timeout: Duration = HANG_TIMEOUT
    """How long a run may take for one step of its environment, or a chunk of a compiled program, until it hangs."""
    trainer: TrainerSpec | None = None
    """Another library's, which trains all runs; then `others` are in its words."""

    def __post_init__(self) -> None:
        check_study_engine(self.engine)
        check_choice(self, "device", ("cpu", "gpu"))
        check_counts(self, "num_envs")
        if self.width is not None:
            check_counts(self, "width")
            if self.width > MAX_RUNS:
                raise InputError(f"width is {quote(self.width)}: a study has {MAX_RUNS:,} runs at most.")
        object.__setattr__(self, "dts", tuple(map(Duration, self.dts)))
        check_axes(self)
        for algorithm in self.algorithms:
            if algorithm not in (known := known_algorithms(self.trainer)):
                raise unknown_name_error(algorithm, "an algorithm", known)
            for grid in self.grids(algorithm):
                check_grid(algorithm, grid)
            for name in self.others.get(algorithm, {}):
                if self.trainer is None:
                    check_field("set", algorithm, name)
                own_words = self.trainer is None or not self.trainer.words
                if own_words and name in tunable_names(algorithm, self.trainer):
                    raise InputError(f"set has {name!r}: it is a tuned value of {algorithm}, so give it in 'tuned'.")
            check_points(self, algorithm)

    def is_bare(self, algorithm: str) -> bool:
        """Whether rules could carry an algorithm's values, and nothing says the cycle time that they are from."""
        tuned, points = self.tuned.get(algorithm), self.points.get(algorithm, ())
        carried = algorithm in algorithms_with_rules(self.trainer) and not any("dt" in point for point in points)
        return carried and tuned is not None and tuned.dt is None

    def trained_by(self) -> dict[str, Any]:
        """Who trains, and the environments of each run, as files of tuned values say it."""
        label, own = ("cycletime", self) if self.trainer is None else (self.trainer.label, self.trainer)
        return {"trainer": label, "num_envs": own.num_envs}

    def check_size(self) -> None:
        if self.size > MAX_RUNS:
            raise InputError(f"The study {self.name!r} has {self.size:,} runs: it may have {MAX_RUNS:,} at most.")

    def check_worlds(self) -> None:
        for world in self.worlds:
            refuse_unknown_env(world)
            refuse_budget_without_episode(world, self.env_steps, self.trained_by()["num_envs"])

    def check_runs(self, here: bool = False) -> None:
        """Refuse what a run would be refused for; with `here` also what its trainer lacks on this machine."""
        self.check_worlds()
        agents: dict[tuple[str, Any], list[ExternalAgent]] = {}
        for cell in self.cells():
            if isinstance(cell.agent, ExternalAgent):
                grids = (*self.grids(cell.agent.algorithm), *self.points.get(cell.agent.algorithm, ()))
                check_command(cell.agent, [name for grid in grids for name in grid])
                agents.setdefault((cell.agent.algorithm, cell.labels["rule"]), []).append(cell.agent)
        check_rules(agents)
        if self.trainer is not None:
            check_varied(self.trainer, self.dts, self.seeds)
            if here:
                check_installed(self.trainer)

    @property
    def size(self) -> int:
        """The number of runs, counting twice what two cells share; without making them, since there may be too many."""
        tried = 0
        for algorithm in self.algorithms:
            points = self.points.get(algorithm, ())
            dts = () if any("dt" in point for point in points) else self.dts
            lists: list[tuple[object, ...]] = [points, dts, self.rules.get(algorithm, ())]
            lists += [values for grid in self.grids(algorithm) for values in grid.values()]
            tried += math.prod(len(each) or 1 for each in lists)
        return len(self.worlds) * tried * len(self.seeds)

    def resolved(self, begun: StudySpec | None = None) -> StudySpec:
        """This study with a width of its programs, or with that which it began with.

        It is part of a run's identity, and so follows from the study alone, and not from the machine that looks.
        """
        if self.width is not None:
            return self
        if begun is not None and begun.device == self.device:
            return replace(self, width=begun.width)
        groups: Counter[tuple[tuple[str, ...], str]] = Counter()
        largest: dict[tuple[str, ...], RunSpec] = {}
        for cell in self.cells() if self.device == "gpu" else ():
            spec = cell.spec
            kind = spec.world.name, spec.algorithm, spec.engine.name
            groups[kind, engine_for(spec).program(spec)] += len(self.seeds)
            largest[kind] = max(largest.get(kind, spec), spec, key=lambda each: (each.agent.capacity, -each.dt.exact_s))
        lanes = {kind: engine_for(spec).max_lanes(spec) for kind, spec in largest.items()}
        if 0 in lanes.values():
            raise InputError("A run does not fit into the memory of a GPU: give the agent a smaller replay.")
        runs = max((count for (kind, _), count in groups.items() if lanes[kind] > 1), default=1)
        most = min((each for each in lanes.values() if each > 1), default=1)
        # As few turns as possible, and an even share in each: 31 runs of which 20 fit have the width 16.
        return replace(self, width=math.ceil(runs / math.ceil(runs / most)))

    def cells(self) -> Iterator[Cell]:
        self.check_size()
        for world, algorithm in product(self.worlds, self.algorithms):
            for dt, rule in product(self.dts, self.rules.get(algorithm) or (None,)):
                for values in self._tried(algorithm, dt):
                    yield self._cell(world, algorithm, dt, rule, values)

    def runs(self) -> Iterator[tuple[Mapping[str, Any], RunSpec]]:
        """All runs with their labels and seeds; two cells can share a run."""
        for cell in self.cells():
            for seed in self.seeds:
                yield {**cell.labels, "seed": seed}, cell.run(seed)

    def _tried(self, algorithm: str, dt: Duration) -> Iterator[dict[str, Any]]:
        grid = {name: values for each in self.grids(algorithm) for name, values in each.items()}
        points = [point for point in self.points.get(algorithm) or ({},) if Duration(point.get("dt", dt)) == dt]
        for point, values in product(points, product(*grid.values())):
            yield {**dict(zip(grid, values, strict=True)), **without_dt(point)}

    def _cell(self, world: World, algorithm: str, dt: Duration, rule: str | None, values: dict[str, Any]) -> Cell:
        tuned_at = self.tuned[algorithm].dt if algorithm in self.tuned else Duration("16ms")
        carries = algorithm != "actor-critic" and rule is not None
        used = None if rule is None else self.own_rules.get(rule, rule)
        tunable = tunable_names(algorithm, self.trainer)
        if self.trainer is not None:  # what is set is in its words, which may be ours too
            tunable = tuple(name for name in tunable if name not in self.others.get(algorithm, {}))
        agent, origin, _ = transfer_agent(
            algorithm,
            {name: value for name, value in values.items() if name in tunable},
            dt=dt,
            tuned_at=tuned_at if carries else None,
            rule=used if carries else None,
            others={name: value for name, value in values.items() if name not in tunable},
            num_envs=self.num_envs,
            trainer=self.trainer,
        )
        varied = {name for grid in self.grids(algorithm) for name, tried in grid.items() if len(tried) > 1}
        varied |= {name for point in self.points.get(algorithm, ())[:1] for name in without_dt(point)}
        hyperparameters = {name: value for name, value in values.items() if name in varied}
        labels = {"task": world.name, "algorithm": algorithm, "rule": rule, "dt": dt, **hyperparameters}
        spec = RunSpec(
            world=world,
            agent=agent,
            dt=dt,
            env_steps=self.env_steps,
            seed=self.seeds[0],
            num_envs=self.num_envs,
            engine=EngineSpec(device=self.device, width=self.width or 1),
            origin=origin,
        )
        return Cell(labels, with_engine(spec, self.engine if isinstance(world, ClosedFormWorld) else AUTO))

    def grids(self, algorithm: str) -> tuple[Grid, ...]:
        tuned = self.tuned[algorithm].values if algorithm in self.tuned else {}
        return tuned, self.others.get(algorithm, {})
