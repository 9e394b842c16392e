"""A study as a TOML file: reading it, with a sentence for whatever is wrong, and writing it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.rules import PPO, SAC
from cycletime.runs.carried import TUNABLE
from cycletime.runs.spec import AGENTS
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
    try:
        told = tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}.") from error
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
    return Study(
        name=str(_needed(told, "name")),
        worlds=_worlds(told),
        algorithms=algorithms,
        dts=tuple(Duration(each) for each in _several(told, "dt")),
        rules={algorithm: _rules(told, algorithm) for algorithm in algorithms},
        seeds=_seeds(told),
        env_steps=_count("env_steps", _needed(told, "env_steps")),
        tuned=_by_algorithm(told, "tuned", algorithms, folder),
        others=_others(told, algorithms),
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
    return (*(PaperTask(str(name)) for name in tasks), *(GymnasiumEnv(str(name), env_dt) for name in envs))


def _rules(told: Mapping[str, Any], algorithm: str) -> tuple[str, ...]:
    if "rule" not in told and "rules" not in told:
        return (_DEFAULT_RULES[algorithm],) if algorithm in _DEFAULT_RULES else ()
    given = told.get("rules", told.get("rule"))
    if isinstance(given, Mapping):
        given = given.get(algorithm, [])
    rules = tuple(str(each) for each in (given if isinstance(given, list) else [given]))
    return rules if algorithm in _DEFAULT_RULES else ()


def _seeds(told: Mapping[str, Any]) -> tuple[int, ...]:
    """A number is how many, from 0 on; a list is the seeds themselves, as is the singular."""
    if "seed" in told:
        return (_count("seed", told["seed"], least=0),)
    given = told.get("seeds", 1)
    if isinstance(given, list):
        return tuple(_count("seeds", each, least=0) for each in given)
    return tuple(range(_count("seeds", given)))


def _count(name: str, value: Any, least: int = 1) -> int:  # noqa: ANN401 - whatever TOML has
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if not whole or value < least:
        raise InputError(f"{name} is {value!r}: it must be a whole number of at least {least}.")
    return int(value)


def _by_algorithm(told: Mapping[str, Any], key: str, algorithms: tuple[str, ...], folder: Path) -> dict[str, Tuned]:
    """Tuned values, for all algorithms or in a table for each, or in a file."""
    table = told.get(key, {})
    if isinstance(table, str):
        table = _tuned_file(folder / table)
    split = any(name in AGENTS for name in table)
    found = {}
    for algorithm in algorithms:
        own = table.get(algorithm) if split else table
        if isinstance(own, str):
            own = _tuned_file(folder / own)
        if own:
            found[algorithm] = _tuned(algorithm, own)
    return found


def _tuned_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(f"the tuned values in {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}.") from error
    tuned: dict[str, Any] = table.get("tuned", table)
    return tuned


def _tuned(algorithm: str, table: Mapping[str, Any]) -> Tuned:
    grid = _grid({name: value for name, value in table.items() if name != "dt"})
    for name in grid:
        if name not in TUNABLE[algorithm]:
            raise InputError(
                f"tuned has {name!r}: {algorithm} has {', '.join(TUNABLE[algorithm])}; other fields go to 'set'."
            )
    return Tuned(Duration(table["dt"]) if "dt" in table else None, grid)


def _others(told: Mapping[str, Any], algorithms: tuple[str, ...]) -> dict[str, Grid]:
    table = told.get("set", {})
    split = any(name in AGENTS for name in table)
    return {algorithm: _grid(table.get(algorithm, {}) if split else table) for algorithm in algorithms if table}


def _grid(table: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """By name, the values; a list is several of them, and a list in it is one, such as hidden layers."""
    return {
        name: tuple(
            tuple(each) if isinstance(each, list) else each for each in (value if isinstance(value, list) else [value])
        )
        for name, value in table.items()
    }
