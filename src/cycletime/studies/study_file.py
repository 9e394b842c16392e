"""A study as a TOML file: reading it, with a sentence for whatever is wrong, and writing it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.rules import PPO, SAC
from cycletime.runs.carried import TUNABLE
from cycletime.runs.spec import AGENTS
from cycletime.runs.tuned_file import read_toml, read_tuned
from cycletime.runs.worlds import GymnasiumEnv, PaperTask, World
from cycletime.studies.spec import Grid, Study, Tuned

_SINGULARS = {"task": "tasks", "env": "envs", "algorithm": "algorithms", "dt": "dts", "rule": "rules", "seed": "seeds"}
_KNOWN = {*_SINGULARS, *_SINGULARS.values(), "name", "env_steps", "env_dt", "tuned", "set", "device", "width"}
_DEFAULT_RULES = {"ppo": PPO.default_rule, "sac": SAC.default_rule}


def read_study(path: Path) -> Study:
    """The study in a file.

    Raises:
        InputError: if it cannot be read, or is no study; the sentence names the file.
    """
    told = read_toml(path)
    try:
        return study_from(told, folder=path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def study_from(told: Mapping[str, Any], folder: Path = Path()) -> Study:
    """The study that a table describes; tuned values may stand in a file of their own, looked for in a folder."""
    for key in told:
        if key not in _KNOWN:
            raise InputError(f"{key!r} is nothing that a study has: it has {', '.join(sorted(_KNOWN))}.")
    algorithms = tuple(str(each) for each in _several(told, "algorithm"))
    for algorithm in algorithms:
        if algorithm not in AGENTS:
            raise InputError(f"{algorithm!r} is no algorithm: give one of {', '.join(AGENTS)}.")
    tuned, others = _tuned_and_others(told, algorithms, folder)
    return Study(
        name=_name(told),
        worlds=_worlds(told),
        algorithms=algorithms,
        dts=tuple(Duration(each) for each in _several(told, "dt")),
        rules=_rules(told, algorithms, tuned),
        seeds=_seeds(told),
        env_steps=_count("env_steps", _needed(told, "env_steps")),
        tuned=tuned,
        others=others,
        device=str(told.get("device", "cpu")),
        width=_count("width", told.get("width", 1)),
    )


def as_table(study: Study) -> dict[str, Any]:
    """The table that `study_from` reads as this study; JSON and TOML have all that is in it."""
    tasks = [world.name for world in study.worlds if isinstance(world, PaperTask)]
    envs = [world for world in study.worlds if isinstance(world, GymnasiumEnv)]
    table: dict[str, Any] = {"name": study.name, "tasks": tasks, "envs": [env.name for env in envs]}
    if envs and envs[0].env_dt is not None:
        table["env_dt"] = str(envs[0].env_dt)
    return {
        **table,
        "algorithms": list(study.algorithms),
        "dts": [str(dt) for dt in study.dts],
        "rules": {algorithm: list(rules) for algorithm, rules in study.rules.items()},
        "seeds": list(study.seeds),
        "env_steps": study.env_steps,
        "tuned": {
            algorithm: {**({"dt": str(tuned.dt)} if tuned.dt else {}), **_listed(tuned.values)}
            for algorithm, tuned in study.tuned.items()
        },
        "set": {algorithm: _listed(grid) for algorithm, grid in study.others.items()},
        "device": study.device,
        "width": study.width,
    }


def _listed(grid: Grid) -> dict[str, list[Any]]:
    return {name: [list(each) if isinstance(each, tuple) else each for each in values] for name, values in grid.items()}


def _name(told: Mapping[str, Any]) -> str:
    name = _needed(told, "name")
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"name is {name!r}: it must be a text, such as 'reacher-quick'.")
    return name


def _needed(told: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401 - whatever TOML has
    if key not in told:
        raise InputError(f"{key!r} is missing: a study needs it.")
    return told[key]


def _several(told: Mapping[str, Any], singular: str) -> list[Any]:
    """What stands under a word or its plural, as a list."""
    plural = _SINGULARS[singular]
    if singular in told and plural in told:
        raise InputError(f"{singular!r} and {plural!r} are both given: give one of them.")
    if singular not in told and plural not in told:
        raise InputError(f"{singular!r} is missing: a study needs one, or several as {plural!r}.")
    found = told.get(singular, told.get(plural))
    return found if isinstance(found, list) else [found]


def _worlds(told: Mapping[str, Any]) -> tuple[World, ...]:
    env_dt = Duration(told["env_dt"]) if "env_dt" in told else None
    given = [key for key in ("task", "tasks", "env", "envs") if key in told]
    if not given:
        raise InputError("'task' is missing: a study needs a task or an env, or several as 'tasks' and 'envs'.")
    tasks = _several(told, "task") if {"task", "tasks"} & set(given) else []
    envs = _several(told, "env") if {"env", "envs"} & set(given) else []
    if env_dt is not None and not envs:
        raise InputError(f"env_dt is {env_dt}: it is for environments, and the tasks have their own.")
    for name in (*tasks, *envs):
        if not isinstance(name, str):
            raise InputError(f"{name!r} is no task and no environment: give a name, such as 'reacher'.")
    return (*(PaperTask(name) for name in tasks), *(GymnasiumEnv(name, env_dt) for name in envs))


def _rules(told: Mapping[str, Any], algorithms: tuple[str, ...], tuned: Mapping[str, Tuned]) -> dict[str, Any]:
    """By algorithm, its rules; left out, its own where its values are from a cycle time."""
    if "rule" not in told and "rules" not in told:
        bare = [algorithm for algorithm, values in tuned.items() if values.dt is None]
        return {
            each: (_DEFAULT_RULES[each],) if each in _DEFAULT_RULES and each not in bare else () for each in algorithms
        }
    (given, *more) = _several(told, "rule") or [[]]
    if isinstance(given, Mapping) and not more:
        _check_algorithms("rules", given, algorithms)
        by_algorithm = {name: each if isinstance(each, list) else [each] for name, each in given.items()}
    else:
        by_algorithm = {algorithm: _several(told, "rule") for algorithm in algorithms}
    for algorithm, rules in by_algorithm.items():
        for rule in rules:
            if not isinstance(rule, str):
                raise InputError(f"rules has {rule!r}: a rule is a name, such as 'dt-aware'.")
        if len(set(rules)) != len(rules):
            raise InputError(f"rules has the same one twice for {algorithm}: {rules}.")
    return {each: tuple(by_algorithm.get(each, ())) if each in _DEFAULT_RULES else () for each in algorithms}


def _check_algorithms(key: str, table: Mapping[str, Any], algorithms: tuple[str, ...]) -> None:
    for name in table:
        if name not in algorithms:
            raise InputError(f"{key} has a table for {name!r}: the study has {', '.join(algorithms)}.")


def _seeds(told: Mapping[str, Any]) -> tuple[int, ...]:
    """A number is how many, from 0 on; a list is the seeds themselves, as is the singular."""
    if "seed" in told and "seeds" in told:
        raise InputError("'seed' and 'seeds' are both given: give one of them.")
    if "seed" in told:
        return (_count("seed", told["seed"], least=0),)
    given = told.get("seeds", 1)
    if isinstance(given, list):
        return tuple(_count("seeds", each, least=0) for each in given)
    return tuple(range(_count("seeds", given)))


def _count(name: str, value: Any, least: int = 1) -> int:  # noqa: ANN401 - whatever TOML has
    whole = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value == int(value)
    if not whole or value < least:
        raise InputError(f"{name} is {value!r}: it must be a whole number of at least {least}.")
    return int(value)


def _tuned_and_others(
    told: Mapping[str, Any], algorithms: tuple[str, ...], folder: Path
) -> tuple[dict[str, Tuned], dict[str, Grid]]:
    """Tuned values and further fields, for all algorithms or in a table for each, or in files."""
    table, others = told.get("tuned", {}), _others(told, algorithms)
    split = not isinstance(table, str) and _is_split("tuned", table, algorithms)
    tuned = {}
    for algorithm in algorithms:
        own = table.get(algorithm) if split else table
        if isinstance(own, str):
            read = read_tuned(folder / own).of(algorithm)
            tuned[algorithm] = _tuned(algorithm, {"dt": read.dt, **read.values})
            # Fields that the study sets itself come before those of the file.
            others[algorithm] = {**{name: (value,) for name, value in read.others.items()}, **others.get(algorithm, {})}
        elif own is not None and (own or split):
            tuned[algorithm] = _tuned(algorithm, own)
    return tuned, others


def _tuned(algorithm: str, table: Mapping[str, Any]) -> Tuned:
    grid = _grid(table)
    grid.pop("dt", None)
    for name in grid:
        if name not in TUNABLE[algorithm]:
            raise InputError(
                f"tuned has {name!r}: {algorithm} has {', '.join(TUNABLE[algorithm])}; other fields go to 'set'."
            )
    return Tuned(Duration(table["dt"]) if "dt" in table else None, grid)


def _others(told: Mapping[str, Any], algorithms: tuple[str, ...]) -> dict[str, Grid]:
    table = told.get("set", {})
    split = _is_split("set", table, algorithms)
    return {algorithm: _grid(table.get(algorithm, {}) if split else table) for algorithm in algorithms if table}


def _is_split(key: str, table: object, algorithms: tuple[str, ...]) -> bool:
    """Whether a table has one for each algorithm."""
    if not isinstance(table, Mapping):
        raise InputError(f"{key} is {table!r}: it must be a table, such as [{key}] with a line for each value.")
    if not any(name in AGENTS for name in table):
        return False
    _check_algorithms(key, table, algorithms)
    return True


def _grid(table: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """By name, the values; a list is several of them, and a list in it is one, as are hidden layers."""
    if not isinstance(table, Mapping):
        raise InputError(f"{table!r} is no table of values: give a line for each, such as discount = 0.99.")
    grid = {}
    for name, value in table.items():
        several = value if isinstance(value, list) else [value]
        if name == "hidden" and several and not any(isinstance(each, list) for each in several):
            several = [several]
        if any(isinstance(each, dict) for each in several):
            raise InputError(f"{name} is {value!r}: give a value, or a list of values to try.")
        grid[name] = tuple(tuple(each) if isinstance(each, list) else each for each in several)
    return grid
