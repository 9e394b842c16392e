"""Rules of one's own as tables of words, which study files and the command line take.

    [own_rules.floor-6]
    batch = "per second, of a count"
    minibatch = "per second, of a count"
    discount = "per second, of a decay, at least 6 steps"
    trace_decay = "per second, of a decay"
    learning_rate = "a power of rho, -0.25"

A law is said by its name, with whatever number it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from cycletime.errors import InputError, did_you_mean, shown
from cycletime.rules.laws import (
    CAPPED_POWER,
    COUNT,
    GROWN,
    GROWN_SMOOTHING,
    KEPT,
    PER_UPDATE,
    POWER,
    PROPORTIONAL,
    ROOT,
    SMOOTHING,
    TIMES_ROOT,
    Law,
    capped_power_with_floor,
    capped_rho_power,
    power_with_floor,
    rho_power,
)
from cycletime.rules.rule import Rule

_PLAIN = {
    law.name: law
    for law in (
        KEPT,
        COUNT,
        POWER,
        CAPPED_POWER,
        SMOOTHING,
        GROWN_SMOOTHING,
        PER_UPDATE,
        PROPORTIONAL,
        GROWN,
        ROOT,
        TIMES_ROOT,
    )
}
_WITH_NUMBER: Mapping[str, Callable[[float], Law]] = {
    f"{POWER.name}, at least N steps": power_with_floor,
    f"{POWER.name}, at least N steps, with the min": capped_power_with_floor,
    "a power of rho, N": rho_power,
    "a power of rho, N, with the min": capped_rho_power,
}
"""By the words in which N stands for a number, what makes the law."""
_NUMBER = r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"


def law_named(words: str) -> Law:
    """The law of a name, such as 'per second, of a decay, at least 6 steps'.

    Raises:
        InputError: if there is none, or its number makes no sense.
    """
    if words in _PLAIN:
        return _PLAIN[words]
    for pattern, law_of in _WITH_NUMBER.items():
        if found := re.fullmatch(re.escape(pattern).replace("N", _NUMBER), words):
            return law_of(float(found[1]))
    known = [*_PLAIN, *_WITH_NUMBER]
    names = ", ".join(map(repr, known))
    raise InputError(f"{shown(words)} is no law: give one of {names}{did_you_mean(words, known)}")


def own_rules_in(told: object) -> dict[str, Rule]:
    """By name, the rules that a table of tables describes.

    Raises:
        InputError: if it describes none.
    """
    if not isinstance(told, Mapping) or not all(isinstance(table, Mapping) and table for table in told.values()):
        raise InputError(
            f"own_rules is {shown(told)}: it must have a table for each rule, such as [own_rules.mine] with "
            f"discount = {POWER.name!r}."
        )
    return {name: Rule(name, {field: _law(name, field, words) for field, words in told[name].items()}) for name in told}


def own_rules_table(rules: Mapping[str, Rule]) -> dict[str, dict[str, str]]:
    """The table that `own_rules_in` reads as these rules."""
    return {name: {field: law.name for field, law in rule.laws.items()} for name, rule in rules.items()}


def _law(rule: str, field: str, words: object) -> Law:
    try:
        if isinstance(words, str):
            return law_named(words)
        raise InputError(f"{shown(words)} is no law: give its name, such as {POWER.name!r}.")
    except InputError as error:
        raise InputError(f"own_rules has {field} of {rule!r}: {error}") from None
