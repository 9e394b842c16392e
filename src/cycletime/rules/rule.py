"""A rule: a named choice of laws, one for each hyper-parameter that it speaks of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cycletime.errors import InputError, did_you_mean
from cycletime.rules.laws import KEPT, Law


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


def by_name(*rules: Rule) -> dict[str, Rule]:
    """Rules as an algorithm lists them."""
    return {rule.name: rule for rule in rules}
