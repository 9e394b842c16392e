"""Hyper-parameters in other libraries' words, and back.

An export is read back with the same words: what comes out differently is what the library cannot express, and is noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from typing import Any, TypeVar

from cycletime.duration import DurationLike
from cycletime.errors import InputError
from cycletime.rules.hyperparameters import Hyperparameters
from cycletime.rules.libraries.ppo_words import PPOWords
from cycletime.rules.libraries.sac_words import SACWords
from cycletime.rules.libraries.table import LIBRARIES, SHORT_NAMES, SPOKEN_NAMES
from cycletime.rules.libraries.words import Given, LibraryValues, Word, flattened
from cycletime.rules.ppo import PPO
from cycletime.rules.quantities import whole_number
from cycletime.rules.sac import SAC

__all__ = ["LIBRARIES", "LibraryValues", "export", "read"]

H = TypeVar("H", bound=Hyperparameters)


def export(values: Hyperparameters, library: str, n_envs: int | None, layout: Mapping[str, int]) -> LibraryValues:
    """The values in a library's words, the nearest that it can express."""
    name, words = _find(library, values.algorithm)
    n_envs = whole_number("n_envs", 1 if n_envs is None else n_envs)
    said: dict[str, Any] = {words.n_envs.name: n_envs} if words.n_envs else {}
    notes: list[str] = []
    if isinstance(values, PPO) and not isinstance(words, SACWords):
        sizes, notes = words.write_sizes(values, n_envs, layout)
        said |= {**sizes, words.discount.name: values.discount, words.trace_decay.name: values.trace_decay}
    elif isinstance(values, SAC) and isinstance(words, SACWords):
        said |= words.write(values, n_envs)
    understood = read(type(values), name, values.dt, n_envs, _with_action_size(said, values))
    spoken = SPOKEN_NAMES.get(name, name)
    differences = _differences(values, understood, spoken, n_envs, words)
    return LibraryValues(name, said, (*differences, *(n.format(library=spoken) for n in notes)), exact=not differences)


def read(cls: type[H], library: str, dt: DurationLike, n_envs: int | None, values: Mapping[str, object]) -> H:
    """Hyper-parameters from a library's words."""
    name, words = _find(library, cls.algorithm)
    given = Given(name, flattened(values))
    n_envs = _read_n_envs(given, words.n_envs, n_envs)
    if isinstance(words, SACWords):
        fields = words.read(given, n_envs)
        fields["defaults"] = words.defaults_beside(given, n_envs)
    else:
        rates = {"discount": given.number(words.discount), "trace_decay": given.number(words.trace_decay)}
        fields = {**words.read_sizes(given, n_envs), **rates}
    given.refuse_the_rest()
    return cls(dt=dt, **fields)


def _find(library: str, algorithm: str) -> tuple[str, PPOWords | SACWords]:
    name = library.lower().replace("_", "-").replace(" ", "-")
    name = SHORT_NAMES.get(name, name)
    if name not in LIBRARIES:
        raise InputError(f"Unknown library {library!r}: choose one of {', '.join(LIBRARIES)}.")
    words: PPOWords | SACWords | None = getattr(LIBRARIES[name], algorithm)
    if words is None:
        have = [other for other, found in LIBRARIES.items() if getattr(found, algorithm)]
        raise InputError(f"{name} has no {algorithm.upper()}: choose one of {', '.join(have)}.")
    return name, words


def _read_n_envs(given: Given, word: Word | None, n_envs: int | None) -> int:
    if word is None:
        return whole_number("n_envs", 1 if n_envs is None else n_envs)
    said = given.optional_number(word.name)
    if None not in (said, n_envs) and said != n_envs:
        raise InputError(f"n_envs is {n_envs} and {given.library}'s {word.name} is {said}: give one of them.")
    return whole_number("n_envs", next((n for n in (said, n_envs, word.default) if n is not None), 1))


def _with_action_size(said: dict[str, Any], values: Hyperparameters) -> dict[str, Any]:
    action_size = getattr(values, "action_size", None)
    return said if action_size is None else {**said, "action_size": action_size}


def _differences(
    asked: Hyperparameters, understood: Hyperparameters, library: str, n_envs: int, words: PPOWords | SACWords
) -> list[str]:
    remarks = words.remarks if isinstance(words, SACWords) else {}
    gets = understood.stated()
    notes = []
    for name, value in asked.stated().items():
        if name not in gets:
            remark = f" ({remarks[name]})" if name in remarks else ""
            notes.append(f"{library} has no setting for {name}{remark}: {value:g} is not in these values.")
        elif not isclose(value, gets[name], rel_tol=1e-9):
            envs = f" with {n_envs} environments" if n_envs > 1 else ""
            notes.append(f"{library} cannot express {name} {value:g}{envs}: the nearest is {gets[name]:g}.")
    return notes
