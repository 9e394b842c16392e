"""The spec of a tuning, and the TOML file that `cycletime tune` reads it from.

It is a study at one cycle time. Lists of values are a grid, points are trials, and ranges in ``[search]`` are for
Optuna's samplers. A horizon h, in seconds, is the rate exp(-dt / h) per agent step; `docs/tuning.md` has the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from math import exp, log
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cycletime.agents.checks import check_counts
from cycletime.duration import Duration
from cycletime.errors import InputError, quote
from cycletime.rules import ALGORITHMS
from cycletime.studies.spec import MAX_RUNS, Cell, Point, StudySpec, Tuned
from cycletime.studies.spec_file import check_algorithms, study_from_table
from cycletime.training.external import TrainerSpec
from cycletime.training.make_specs import known_algorithms, tunable_names
from cycletime.training.spec import AGENTS
from cycletime.training.toml_files import check_plain, read_toml

DEFAULT_HORIZON_STEPS: Mapping[str, tuple[float, ...]] = {
    "discount": tuple(6.25 * 2**each for each in range(7)),
    "trace_decay": tuple(5.0 * 2**each for each in range(4)),
}
"""By rate, the horizons that are tried unless others are given, in agent steps; of 16 ms, 0.1 to 6.4 s and 0.08 to
0.64 s, on which the rules were searched for."""


def add_horizons(study: StudySpec, horizons: object) -> StudySpec:
    """A study of one cycle time with a grid of horizons: the usual ones for True, or those of a table by rate."""
    algorithm, dt = study.algorithms[0], study.dts[0]
    known = [name for name in DEFAULT_HORIZON_STEPS if name in tunable_names(algorithm, study.trainer)]
    if horizons is True:
        rates = {name: tuple(exp(-1 / steps) for steps in DEFAULT_HORIZON_STEPS[name]) for name in known}
        theirs = study.trainer if study.trainer and not study.trainer.words else None
        if theirs and (left := [name for name in known if not theirs.takes(name)]):
            remedy = f"add {{{left[0]}}}, or give a table [horizons] without it"
            raise InputError(f"horizons tries {left[0]}, which the command does not take: {remedy}.")
    elif isinstance(horizons, Mapping) and horizons:
        rates = {name: _rates(name, each, dt, known, algorithm) for name, each in horizons.items()}
    else:
        needed = "it must be true, or a table such as [horizons] with discount = ['1s', '4s']"
        raise InputError(f"horizons is {quote(horizons)}: {needed}.")
    tuned = study.tuned.get(algorithm, Tuned(None))
    for name in rates:
        if name in tuned.values:
            raise InputError(f"{name} has a value in 'tuned', and horizons are to be tried: leave one of them out.")
    grid = Tuned(tuned.dt, {**tuned.values, **rates})
    return replace(study, tuned={**study.tuned, algorithm: grid})


def _rates(name: str, horizons: object, dt: Duration, known: list[str], algorithm: str) -> tuple[float, ...]:
    if name not in known:
        raise InputError(f"horizons has {name!r}: {algorithm} has {', '.join(known)}.")
    if not isinstance(horizons, Sequence) or isinstance(horizons, str) or not horizons:
        raise InputError(f"horizons has {name} = {quote(horizons)}: give a list of times, such as ['1s', '4s'].")
    return tuple(exp(-float(dt / Duration(each))) for each in horizons)


FIRST_FRESH_SEED = 1000
SAMPLERS = ("grid", "tpe", "random", "cmaes")
Sampler: TypeAlias = Literal["grid", "tpe", "random", "cmaes"]
_SAMPLER_OPTIONS = ("trials", "sampler_seed", "at_once")
_OPTIONS = ("sampler", "fresh_seeds", *_SAMPLER_OPTIONS)


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included; whole numbers where both ends are."""

    low: float
    high: float
    log: bool = False
    horizon: bool = False
    """For rates below 1, evenly in the logarithm of the horizon, -1 / log(rate): as .99^2, .99^4, .99^8 are."""

    def __post_init__(self) -> None:
        ends: tuple[Any, ...] = (self.low, self.high)
        numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
        if not numbers or not self.low < self.high or self.high == float("inf") or self.low == -float("inf"):
            span = f"from {quote(self.low)} to {quote(self.high)}"
            raise InputError(f"The range goes {span}: give numbers, the lower one first.")
        for name in ("log", "horizon"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is {quote(getattr(self, name))}: it must be true or false.")
        if self.horizon and (self.log or not 0 < self.low < self.high < 1):
            raise InputError(f"A horizon has the range from {self.low} to {self.high}: give rates between 0 and 1.")
        if self.log and self.low <= 0:
            raise InputError(f"The range begins at {self.low}: a logarithm needs numbers above 0.")

    @property
    def is_integer(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def bounds(self) -> tuple[float, float]:
        """What a sampler draws between; for a horizon, 1 / horizon."""
        return (-log(self.high), -log(self.low)) if self.horizon else (self.low, self.high)

    def value(self, drawn: float) -> float:
        return min(max(exp(-drawn), self.low), self.high) if self.horizon else drawn


@dataclass(frozen=True, kw_only=True)
class Tuning:
    study: StudySpec
    """One task, algorithm and cycle time; of lists of values, all combinations are tried."""
    search: Mapping[str, Range] = field(default_factory=dict)
    sampler: Sampler = "grid"
    trials: int = 40
    sampler_seed: int = 0
    fresh_seeds: int = 30
    at_once: int | None = None
    """How many trials a sampler proposes before it gets scores; by default one for each worker."""

    def __post_init__(self) -> None:
        for name, plural in (("worlds", "tasks"), ("algorithms", "algorithms"), ("dts", "cycle times")):
            if len(getattr(self.study, name)) > 1:
                raise InputError(f"{len(getattr(self.study, name))} {plural} are given: a tuning is at one.")
        if self.sampler not in SAMPLERS:
            raise InputError(f"{quote(self.sampler)} is not a sampler: give one of {', '.join(SAMPLERS)}.")
        check_counts(self, "trials", "fresh_seeds", *([] if self.at_once is None else ["at_once"]))
        check_counts(self, "sampler_seed", least=0)
        searched = 0 if self.sampler == "grid" else self.trials * len(self.study.seeds)
        for name, runs in (("trials", searched), ("fresh_seeds", self.fresh_seeds)):
            if runs > MAX_RUNS:
                size = f"{name} is {getattr(self, name)}, which makes {runs:,} runs"
                raise InputError(f"{size}: there may be {MAX_RUNS:,} at most.")
        if self.sampler_seed >= 2**32:
            raise InputError(f"sampler_seed is {self.sampler_seed}: it must be below 2**32.")
        if (last := self.fresh_seed_range()[-1]) >= 2**32:
            raise InputError(f"The last fresh seed would be {last}: seeds must be below 2**32.")
        self._check_space()

    @property
    def algorithm(self) -> str:
        return self.study.algorithms[0]

    @property
    def dt(self) -> Duration:
        return self.study.dts[0]

    @property
    def _others(self) -> Mapping[str, tuple[Any, ...]]:
        return self.study.others.get(self.algorithm, {})

    @property
    def names(self) -> list[str]:
        return [*dict.fromkeys(name for point in self._points for name in point), *self.choices, *self.search]

    @property
    def _points(self) -> Sequence[Point]:
        return self.study.points.get(self.algorithm, ())

    @cached_property
    def choices(self) -> dict[str, tuple[Any, ...]]:
        grids = {**self.study.tuned.get(self.algorithm, Tuned(None)).values, **self._others}
        return {name: values for name, values in grids.items() if len(values) > 1}

    def _check_space(self) -> None:
        tuned = self.study.tuned.get(self.algorithm, Tuned(None))
        if tuned.dt not in (None, self.dt):
            raise InputError(f"tuned has dt {tuned.dt}: a tuning at {self.dt} carries nothing, so leave it out.")
        if twice := [name for name in self.search if name in tuned.values or name in self._others]:
            raise InputError(f"{twice[0]} has a range in 'search' and a value elsewhere: give one of them.")
        if not self.search and not self.choices and len(self._points) < 2:
            raise InputError("There is nothing to tune: give several values in 'tuned', or a range in 'search'.")
        if self._points and self.sampler != "grid":
            raise InputError(f"The sampler is {self.sampler}: 'points' are the trials themselves, so leave it out.")
        if self.search and self.sampler == "grid":
            raise InputError("A grid has no ranges: give lists of values instead of 'search', or another sampler.")
        if any("dt" in point for point in self._points):
            raise InputError(f"points has dt: a tuning has one cycle time, {self.dt}, so leave it out.")
        if self.choices and self.sampler == "cmaes":
            raise InputError(f"{next(iter(self.choices))} is a list: cmaes searches ranges only, in 'search'.")
        # A grid is refused as a whole where one of its cells makes no sense; of a search that is known trial by trial.
        if self.sampler == "grid":
            self.study.check_size()
            for point in self.grid():
                self.cell(point)

    def grid(self) -> list[Point]:
        combinations = [dict(zip(self.choices, values, strict=True)) for values in product(*self.choices.values())]
        return [{**point, **values} for point in self._points or ({},) for values in combinations]

    def of(self, points: Sequence[Point], seeds: Sequence[int] | None = None, name: str | None = None) -> StudySpec:
        tuned = self.study.tuned.get(self.algorithm, Tuned(None)).values
        fixed, others = (
            {name: values for name, values in grid.items() if name not in self.choices}
            for grid in (tuned, self._others)
        )
        return replace(
            self.study,
            name=name or self.study.name,
            rules={},
            tuned={self.algorithm: Tuned(None, fixed)},
            others={self.algorithm: others},
            points={self.algorithm: tuple(points)},
            seeds=tuple(seeds) if seeds else self.study.seeds,
        )

    def cell(self, point: Point) -> Cell:
        return next(self.of([point]).cells())

    def fresh_seed_range(self) -> range:
        first = max(FIRST_FRESH_SEED, max(self.study.seeds) + 1)
        return range(first, first + self.fresh_seeds)


def read_tuning(path: Path, *, horizons: bool = False, **options: int | str | None) -> Tuning:
    """The tuning in a file; given options replace its own, and `horizons` adds the usual ones if it has none."""
    table, given = read_toml(path), {name: option for name, option in options.items() if option is not None}
    if given.get("sampler") == "grid":  # then the file's options of a sampler are not meant
        table = {name: value for name, value in table.items() if name not in _SAMPLER_OPTIONS}
    table |= given
    if horizons:
        table["horizons"] = table.get("horizons") or True  # a flag names none, so that those in the file are meant
    try:
        tuning = tuning_from_table(table, path.parent)
        tuning.study.check_worlds()
        return tuning
    except InputError as error:
        beginnings = [words for name, option in given.items() for words in (f"{name} is {option}", f"{option!r} is ")]
        if str(error).startswith(tuple(beginnings)):
            raise
        raise InputError(f"{path}: {error}") from error


def tuning_from_table(table: Mapping[str, Any], folder: Path = Path()) -> Tuning:
    check_plain(table)
    if given := [key for key in ("rule", "rules") if key in table]:
        raise InputError(f"{given[0]!r} is given: a tuning is at one cycle time, and carries nothing.")
    own = {*_OPTIONS, "search", "horizons"}
    study = study_from_table({key: value for key, value in table.items() if key not in own}, folder)
    if "horizons" in table:
        study = add_horizons(study, table["horizons"])
    ranges = _ranges(table.get("search", {}), study.algorithms, study.trainer)
    options = {name: table[name] for name in _OPTIONS if name in table}
    options.setdefault("sampler", "tpe" if ranges else "grid")
    if options["sampler"] == "grid" and (idle := [name for name in _SAMPLER_OPTIONS if name in options]):
        remedy = "a grid tries all its points, so leave it out, or give a sampler such as 'random'"
        raise InputError(f"{idle[0]} is {options[idle[0]]}: {remedy}.")
    return Tuning(study=study, search=ranges, **options)


def _ranges(table: object, algorithms: tuple[str, ...], trainer: TrainerSpec | None) -> dict[str, Range]:
    algorithm = algorithms[0]
    if isinstance(table, Mapping) and any(name in known_algorithms(trainer) for name in table):
        check_algorithms("search", table, algorithms)
        table = table.get(algorithm, {})
    if not isinstance(table, Mapping) or not all(isinstance(each, Mapping) for each in table.values()):
        raise InputError(f"search is {quote(table)}: give ranges, such as discount = {{ low = 0.8, high = 0.999 }}.")
    kinds = {
        each.name: str(each.type) for each in fields(AGENTS[algorithm] if trainer is None else ALGORITHMS[algorithm])
    }
    if trainer is not None:
        kinds = {name: kinds[name].removesuffix(" | None") for name in tunable_names(algorithm, trainer)}
    known = [name for name, kind in kinds.items() if kind.startswith(("int", "float"))]
    for name, ends in table.items():
        if name not in known:
            raise InputError(f"search has {name!r}: {algorithm} has {', '.join(known)}.")
        if not {"low", "high"} <= set(ends) <= {"low", "high", "log", "horizon"}:
            raise InputError(f"search has {name} with {', '.join(ends)}: give low and high, and log or horizon.")
    return {name: _range(name, ends, kinds[name]) for name, ends in table.items()}


def _range(name: str, ends: Mapping[str, Any], kind: str) -> Range:
    try:
        found = Range(**ends)
        if kind == "int" and not found.is_integer:
            raise InputError(f"It is a count, and its range goes from {found.low} to {found.high}: give whole ends.")
        return found
    except InputError as error:
        raise InputError(f"search, {name}: {error}") from error
