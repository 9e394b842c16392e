"""The hyper-parameters in a study's file: tuned values, further fields, points, and a table for each algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from math import inf
from pathlib import Path
from typing import Any

from cycletime.duration import Duration, typed_duration
from cycletime.errors import InputError, shown
from cycletime.rules.libraries.ours import called_here
from cycletime.runs.carried import TUNABLE
from cycletime.runs.spec import AGENTS
from cycletime.runs.tables import check_plain
from cycletime.runs.tuned_file import TunedFile, read_tuned
from cycletime.studies.spec.study import Grid, Point, Source, Study, Tuned

_COUNTS = {each.name for kind in AGENTS.values() for each in fields(kind) if str(each.type).startswith("int")}
_SOURCE = {
    "file": str,
    "sha256": str,
    "tuning": str,
    "trials": int,
    "seeds": int,
    "runs": int,
    "simulated_hours": float,
}


def read_values(
    told: Mapping[str, Any], algorithms: tuple[str, ...], folder: Path
) -> tuple[dict[str, Tuned], dict[str, Grid], dict[str, tuple[Point, ...]]]:
    """By algorithm, tuned values, further fields, and points; files of tuned values are looked for in a folder."""
    table, others = told.get("tuned", {}), _others(told, algorithms)
    split = not isinstance(table, str) and _is_split("tuned", table, algorithms)
    tuned = {}
    for algorithm in algorithms:
        own = table.get(algorithm) if split else table
        if isinstance(own, str):
            read = read_tuned(folder / own)
            values = read.of(algorithm)
            source = _source_of(own, read, algorithm)
            tuned[algorithm] = _tuned(algorithm, {"dt": values.dt, **values.values, "from": source})
            # Fields that the study sets itself come before those of the file.
            file_s = {name: (value,) for name, value in values.others.items()}
            others[algorithm] = {**file_s, **others.get(algorithm, {})}
        elif own is not None and (own or split):
            tuned[algorithm] = _tuned(algorithm, own)
    return tuned, others, _points(told, algorithms)


def values_table(study: Study) -> dict[str, Any]:
    """The tables that `read_values` reads as this study's."""
    table: dict[str, Any] = {
        "tuned": {algorithm: _tuned_table(tuned) for algorithm, tuned in study.tuned.items()},
        "set": {algorithm: _listed(grid) for algorithm, grid in study.others.items()},
    }
    if any(study.points.values()):
        table["points"] = {
            algorithm: [{name: _json(value) for name, value in point.items()} for point in points]
            for algorithm, points in study.points.items()
            if points
        }
    return table


def check_algorithms(key: str, table: Mapping[str, Any], algorithms: tuple[str, ...]) -> None:
    """Refuse a table for what is no algorithm of the study."""
    for name in table:
        if name not in algorithms:
            raise InputError(f"{key} has a table for {name!r}: the study has {', '.join(algorithms)}.")


def _tuned(algorithm: str, table: Mapping[str, Any]) -> Tuned:
    if not isinstance(table, Mapping):
        raise InputError(f"{shown(table)} is not a table of values: give a line for each, such as discount = 0.99.")
    grid = _grid({name: value for name, value in table.items() if name not in ("dt", "from")})
    for name in grid:
        if name not in TUNABLE[algorithm]:
            known = TUNABLE[algorithm]
            meant = called_here(name, algorithm, known)
            raise InputError(f"tuned has {name!r}: {algorithm} has {', '.join(known)}; other fields go to 'set'{meant}")
    dt = typed_duration(table["dt"]) if "dt" in table else None
    return Tuned(dt, grid, _source(table["from"]) if "from" in table else None)


def _tuned_table(tuned: Tuned) -> dict[str, Any]:
    table: dict[str, Any] = {"dt": str(tuned.dt)} if tuned.dt else {}
    if tuned.source is not None:
        table["from"] = {name: value for name, value in asdict(tuned.source).items() if value is not None}
    return {**table, **_listed(tuned.values)}


def _source_of(name: str, read: TunedFile, algorithm: str) -> dict[str, Any]:
    """What a file of tuned values says of its tuning. People may have written it, so what makes no sense is left."""
    origin = read.origin(algorithm)
    tuning = origin.get("tuning")
    seeds = tuning.get("seeds") if isinstance(tuning, Mapping) else None
    told = {
        "tuning": origin.get("study"),
        "trials": origin.get("trials"),
        "seeds": len(seeds) if isinstance(seeds, list) else None,
        "runs": origin.get("runs"),
        "simulated_hours": origin.get("simulated_hours"),
    }
    sound = {key: value for key, value in told.items() if value is not None and _is_sound(key, value)}
    return {"file": name, "sha256": read.sha256, **sound}


def _source(told: object) -> Source:
    if not isinstance(told, Mapping) or not {"file", "sha256"} <= set(told) <= set(_SOURCE):
        raise InputError(f"tuned has from = {shown(told)}: it is for what study.json keeps of a file of tuned values.")
    for key, value in told.items():
        if not _is_sound(key, value):
            raise InputError(f"tuned has {key} = {shown(value)} in 'from': it must be {_SOURCE[key].__name__}.")
    return Source(**told)


def _is_sound(key: str, value: object) -> bool:
    try:
        check_plain({key: value})
    except InputError:
        return False
    if _SOURCE[key] is str:
        return isinstance(value, str)
    kind = int if _SOURCE[key] is int else int | float
    return isinstance(value, kind) and not isinstance(value, bool) and 0 < value < inf


def _others(told: Mapping[str, Any], algorithms: tuple[str, ...]) -> dict[str, Grid]:
    table = told.get("set", {})
    split = _is_split("set", table, algorithms)
    return {algorithm: _grid(table.get(algorithm, {}) if split else table) for algorithm in algorithms if table}


def _points(told: Mapping[str, Any], algorithms: tuple[str, ...]) -> dict[str, tuple[Point, ...]]:
    if "points" not in told:
        return {}
    given = told["points"]
    if isinstance(given, Mapping):
        check_algorithms("points", given, algorithms)
    by_algorithm = given if isinstance(given, Mapping) else dict.fromkeys(algorithms, given)
    for points in by_algorithm.values():
        if not isinstance(points, list) or not points or not all(isinstance(each, Mapping) and each for each in points):
            raise InputError(
                f"points is {shown(points)}: it must be a list of tables, such as [{{ discount = 0.99 }}, "
                "{ discount = 0.9 }]."
            )
    return {algorithm: tuple(map(_point, points)) for algorithm, points in by_algorithm.items()}


def _point(told: Mapping[str, Any]) -> Point:
    for name, value in told.items():
        if isinstance(value, Mapping) or (isinstance(value, list) and name != "hidden"):
            raise InputError(f"points has {name} = {shown(value)}: a point has one value for each name.")
    return {name: typed_duration(value) if name == "dt" else _value(name, value) for name, value in told.items()}


def _is_split(key: str, table: object, algorithms: tuple[str, ...]) -> bool:
    """Whether a table has one for each algorithm."""
    if not isinstance(table, Mapping):
        raise InputError(f"{key} is {shown(table)}: it must be a table, such as [{key}] with a line for each value.")
    if not any(name in AGENTS for name in table):
        return False
    check_algorithms(key, table, algorithms)
    return True


def _grid(table: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """By name, the values; a list is several of them, and a list in it is one, as are hidden layers."""
    if not isinstance(table, Mapping):
        raise InputError(f"{shown(table)} is not a table of values: give a line for each, such as discount = 0.99.")
    grid = {}
    for name, value in table.items():
        several = value if isinstance(value, list) else [value]
        if name == "hidden" and several and not any(isinstance(each, list) for each in several):
            several = [several]
        grid[name] = tuple(_value(name, each) for each in several)
    return grid


def _value(name: str, told: Any) -> Any:  # noqa: ANN401 - whatever TOML has
    """One value, of which hidden layers are a tuple; 2e3 is 2000 where something is counted."""
    if any(isinstance(each, list | dict) for each in (told if isinstance(told, list) else [told])):
        raise InputError(f"{name} is {shown(told)}: give a value, or a list of values to try.")
    if name in _COUNTS and isinstance(told, float) and told.is_integer():
        return int(told)
    return tuple(told) if isinstance(told, list) else told


def _listed(grid: Grid) -> dict[str, list[Any]]:
    return {name: [_json(each) for each in values] for name, values in grid.items()}


def _json(value: Any) -> Any:  # noqa: ANN401 - any hyper-parameter
    if isinstance(value, Duration):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
