"""A rule: a named choice of laws, one for each hyper-parameter that it carries; and rules of one's own in files.

    [own_rules.floor-6]
    batch = "per second, of a count"
    minibatch = "per second, of a count"
    discount = "per second, of a decay, at least 6 steps"
    trace_decay = "per second, of a decay"
    learning_rate = "a power of rho, -0.25"

In a file, a law is given by its name, with its number if it has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from cycletime.errors import InputError, did_you_mean, quote
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


@dataclass(frozen=True)
class Rule:
    """How hyper-parameters follow the cycle time.

    Example:
        >>> from cycletime.rules import PPO, Rule, laws
        >>> mine = Rule("mine", {"batch": laws.COUNT, "minibatch": laws.COUNT, "discount": laws.power_with_floor(6)})
        >>> print(PPO(dt="16ms").at("64ms", rule=mine).explain())
    """

    name: str
    """What tables and notes call it."""
    laws: Mapping[str, Law]
    """By field, its law; what is not among them is not touched."""

    def __post_init__(self) -> None:
        """Refuse what is no choice of laws."""
        name: object = self.name
        laws: object = self.laws
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"A rule's name is {name!r}: give it one that tables can show, such as 'mine'.")
        if not isinstance(laws, Mapping):
            raise InputError(f"Rule {name!r} has {laws!r}: give a mapping from fields to laws.")
        for field, law in laws.items():
            if not isinstance(law, Law):
                raise InputError(
                    f"Rule {name!r} has {law!r} for {field}: give one of cycletime.rules.laws, such as laws.COUNT."
                )
        object.__setattr__(self, "laws", dict(laws))  # of its own, so that nobody changes it

    def law(self, field: str) -> Law:
        """The law of a field; what a rule does not speak of is kept."""
        return self.laws.get(field, KEPT)

    def without(self, *fields: str) -> Rule:
        """The same rule for an algorithm that has not all of its fields."""
        return Rule(self.name, {field: law for field, law in self.laws.items() if field not in fields})

    def check_fields(self, algorithm: str, known: Collection[str]) -> None:
        """Refuse laws for what the algorithm has not."""
        for field in self.laws:
            if field not in known:
                near = did_you_mean(field, known)
                raise InputError(
                    f"Rule {self.name!r} has a law for {field!r}: {algorithm} has {', '.join(known)}{near}"
                )


def rules_by_name(*rules: Rule) -> dict[str, Rule]:
    """Rules as an algorithm lists them."""
    return {rule.name: rule for rule in rules}


_LAWS_BY_NAME = {
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
_LAWS_WITH_NUMBER: Mapping[str, Callable[[float], Law]] = {
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
    if words in _LAWS_BY_NAME:
        return _LAWS_BY_NAME[words]
    for pattern, law_of in _LAWS_WITH_NUMBER.items():
        if found := re.fullmatch(re.escape(pattern).replace("N", _NUMBER), words):
            return law_of(float(found[1]))
    known = [*_LAWS_BY_NAME, *_LAWS_WITH_NUMBER]
    names = ", ".join(map(repr, known))
    raise InputError(f"{quote(words)} is no law: give one of {names}{did_you_mean(words, known)}")


def parse_own_rules(told: object) -> dict[str, Rule]:
    """By name, the rules that a table of tables describes.

    Raises:
        InputError: if it describes none.
    """
    if not isinstance(told, Mapping) or not all(isinstance(table, Mapping) and table for table in told.values()):
        raise InputError(
            f"own_rules is {quote(told)}: it must have a table for each rule, such as [own_rules.mine] with "
            f"discount = {POWER.name!r}."
        )
    return {
        name: Rule(name, {field: _parse_law(name, field, words) for field, words in told[name].items()})
        for name in told
    }


def own_rules_as_table(rules: Mapping[str, Rule]) -> dict[str, dict[str, str]]:
    """The table that `own_rules_in` reads as these rules."""
    return {name: {field: law.name for field, law in rule.laws.items()} for name, rule in rules.items()}


def _parse_law(rule: str, field: str, words: object) -> Law:
    try:
        if isinstance(words, str):
            return law_named(words)
        raise InputError(f"{quote(words)} is no law: give its name, such as {POWER.name!r}.")
    except InputError as error:
        raise InputError(f"own_rules has {field} of {rule!r}: {error}") from None
