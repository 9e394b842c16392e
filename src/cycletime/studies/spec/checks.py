"""What is refused of a study, in a sentence each: axes, grids and points that make no sense."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from numbers import Integral
from typing import TYPE_CHECKING, Any

from cycletime.duration import Duration
from cycletime.errors import InputError, shown
from cycletime.rules.libraries.ours import called_here
from cycletime.runs.spec import AGENTS

if TYPE_CHECKING:
    from cycletime.studies.spec.study import Grid, Point, Study


def check_axes(study: Study) -> None:
    """Refuse axes without a value, or with one twice; rules of one's own that are not used; and what is no seed.

    Raises:
        InputError: if there is any.
    """
    for name in ("worlds", "algorithms", "dts", "seeds"):
        given, called = getattr(study, name), "tasks or envs" if name == "worlds" else name
        if not given:
            raise InputError(f"The study {study.name!r} has no {called}: give at least one.")
        if len(set(given)) != len(given):
            twice = next(each for each, count in Counter(given).items() if count > 1)
            words = getattr(twice, "name", twice)
            raise InputError(f"The study {study.name!r} has {words} twice in its {called}: give each once.")
    named = [name for names in study.rules.values() for name in names]
    if unused := next((name for name in study.own_rules if name not in named), None):
        raise InputError(
            f"own_rules has {unused!r}, which is none of the study's rules ({', '.join(named) or 'none'}): name it "
            "there, or leave it out."
        )
    for seed in study.seeds:
        if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed < 2**32:
            raise InputError(f"seeds has {shown(seed)}: a seed is a whole number from 0 to below 2**32.")


def check_points(study: Study, algorithm: str) -> None:
    """Refuse points of an algorithm that do not go together, or with what else the study says.

    Raises:
        InputError: if there are any.
    """
    points = study.points.get(algorithm, ())
    for name in without_dt(points[0]) if points else ():
        check_field("points", algorithm, name)
        if any(name in grid for grid in study.grids(algorithm)):
            raise InputError(f"{name} of {algorithm} has a value in 'points' and elsewhere: give one of them.")
    seen: set[frozenset[tuple[str, Any]]] = set()
    for point in points:
        if point.keys() != points[0].keys():
            raise InputError(
                f"points has one with {', '.join(points[0]) or 'nothing'} and one with "
                f"{', '.join(point) or 'nothing'}: give all the same names."
            )
        key = frozenset((name, _hashable(name, value)) for name, value in point.items())
        if key in seen:
            raise InputError(f"points has the same one twice: {shown(_in_words(point))}.")
        seen.add(key)
    _check_dts_of_points(study.dts, points)


def _check_dts_of_points(dts: tuple[Duration, ...], points: tuple[Point, ...]) -> None:
    """Where points are each for a cycle time, all of the study's must have some, and no other."""
    named = [Duration(point["dt"]) for point in points if "dt" in point]
    words = ", ".join(map(str, dts))
    if other := next((dt for dt in named if dt not in dts), None):
        raise InputError(f"points has one with dt {other}: the study has {words}.")
    if named and (bare := next((dt for dt in dts if dt not in named), None)):
        raise InputError(f"points has none with dt {bare}: each cycle time of the study, {words}, needs one.")


def check_grid(algorithm: str, grid: Grid) -> None:
    """Refuse hyper-parameters without a value, or with one twice.

    Raises:
        InputError: if there are any.
    """
    for name, values in grid.items():
        if not values:
            raise InputError(f"{name} of {algorithm} has no value: give at least one.")
        if len({_hashable(name, value) for value in values}) != len(values):
            raise InputError(f"{name} of {algorithm} has the same value twice: {shown(list(values))}.")


def _hashable(name: str, value: Any) -> Any:  # noqa: ANN401 - any hyper-parameter
    """The value itself, unless it is a list or the like."""
    try:
        hash(value)
    except TypeError:
        raise InputError(f"{name} is {shown(value)}: give one number or text, or a tuple such as (64, 64).") from None
    return value


def without_dt(point: Point) -> Point:
    """A point's hyper-parameters."""
    return {name: value for name, value in point.items() if name != "dt"}


def _in_words(point: Point) -> dict[str, Any]:
    return {name: str(value) if name == "dt" else value for name, value in point.items()}


def check_field(where: str, algorithm: str, name: str) -> None:
    """Refuse what is no field of an algorithm's agent.

    Raises:
        InputError: if it is none.
    """
    known = [each.name for each in fields(AGENTS[algorithm]) if each.name != "exploration"]
    if name not in known:
        meant = called_here(name, algorithm, known)
        raise InputError(f"{where} has {name!r}: {algorithm} has {', '.join(known)}{meant}")
