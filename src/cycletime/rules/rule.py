"""A rule: a named choice of laws, one for each hyper-parameter that it carries; which is recommended; rules in files.

Those that come with the package stand in `ppo.py` and `sac.py`; one in a file is such as

    [own_rules.floor-6]
    batch = "count"
    minibatch = "count"
    discount = { law = "power", min_steps = 6 }
    trace_decay = "power"
    learning_rate = { law = "rho-power", exponent = -0.25 }

Files of version 0.2 and records of runs have a law's long name instead, with its number in it (`Law.name`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cycletime.errors import InputError, did_you_mean, quote
from cycletime.rules import laws
from cycletime.rules.laws import Law


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
        name: object = self.name
        laws: object = self.laws
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"A rule's name is {name!r}: give it one that tables can show, such as 'mine'.")
        if not isinstance(laws, Mapping):
            raise InputError(f"Rule {name!r} has {laws!r}: give a mapping from fields to laws.")
        for field, law in laws.items():
            if not isinstance(law, Law):
                instead = "give one of cycletime.rules.laws, such as laws.COUNT"
                raise InputError(f"Rule {name!r} has {law!r} for {field}: {instead}.")
        object.__setattr__(self, "laws", dict(laws))  # of its own, so that nobody changes it

    def law(self, field: str) -> Law:
        """The law of a field; what a rule does not speak of is kept."""
        return self.laws.get(field, laws.KEPT)

    def refuse_misfits(self, kinds: Mapping[str, str]) -> None:
        """Refuse a law that makes no sense of its value, by what kind each field is."""
        for field, law in self.laws.items():
            if law.kinds and kinds[field] not in law.kinds:
                named = {**_LAWS, **{name: make_law(1) for (name, _), make_law in _PARAMETERS.items()}}
                fit = [name for name, each in named.items() if not each.kinds or kinds[field] in each.kinds]
                what = f"{field}, which is {kinds[field]}: give one of {', '.join(fit)}"
                raise InputError(f"Rule {self.name!r} has {law.formula} for {what}.")

    def without(self, *fields: str) -> Rule:
        """The same rule for an algorithm that has not all of its fields."""
        return Rule(self.name, {field: law for field, law in self.laws.items() if field not in fields})


def rules_by_name(*rules: Rule) -> dict[str, Rule]:
    return {rule.name: rule for rule in rules}


# Scores are the share of what tuning anew at every cycle time gives, averaged over tasks (docs/horizons.md).
HORIZON_FIELDS = ("discount", "trace_decay")
"""What decides: whether these are values that somebody tuned."""
_TUNE = "'cycletime tune FILE --horizons'"


class Recommendation(NamedTuple):
    """A rule by its name, and why in at most two short sentences."""

    rule: str
    why: str


class Recommendations(NamedTuple):
    """An algorithm's: for the defaults of libraries and papers, and for values that are others or were tuned."""

    untuned: Recommendation
    tuned: Recommendation
    many: str = ""
    """A further sentence for so many environments as `many_envs` or more."""
    many_envs: int = 256


ON_POLICY = Recommendations(
    Recommendation(
        "dt-aware",
        "from gamma .99 and lambda .95 the paper's rule scored 91 % of retuning PPO on four small tasks, horizons "
        f"79 %. Once {_TUNE} has tuned them, give --tuned FILE.",
    ),
    Recommendation(
        "horizons",
        "from tuned values horizons in seconds scored 99 % of retuning PPO on four small tasks, the paper's rule 84 %.",
    ),
    " Those trials had one environment: with 256, on six small tasks, carrying learned faster than --rule baseline at "
    "longer cycle times and slower at shorter ones, not decided over tasks; the trial on robots is open "
    "(docs/robots-trial.md).",
)
_KEPT = (
    "values a kept discount with one update per step scored {} % of retuning SAC on three small tasks, a scaled one "
    "{} %, horizons {} % (no decided gain, for up to 8 times the updates)."
)
OFF_POLICY = Recommendations(
    Recommendation("tuned", f"from default {_KEPT.format(95, 90, 94)} {_TUNE} tunes them."),
    Recommendation("tuned", f"from tuned {_KEPT.format(99, 94, 100)}"),
    " Those trials had one environment.",
    many_envs=2,
)

_LAWS = {
    "kept": laws.KEPT,
    "count": laws.COUNT,
    "power": laws.POWER,
    "capped-power": laws.CAPPED_POWER,
    "smoothing": laws.SMOOTHING,
    "grown-smoothing": laws.GROWN_SMOOTHING,
    "per-update": laws.PER_UPDATE,
    "proportional": laws.PROPORTIONAL,
    "grown": laws.GROWN,
    "square-root": laws.ROOT,
    "times-square-root": laws.TIMES_ROOT,
}
_PARAMETERS: Mapping[tuple[str, str], Callable[[float], Law]] = {
    ("power", "min_steps"): laws.power_with_floor,
    ("capped-power", "min_steps"): laws.capped_power_with_floor,
    ("rho-power", "exponent"): laws.rho_power,
    ("capped-rho-power", "exponent"): laws.capped_rho_power,
}
"""By the law and its parameter, what makes the law."""
_LONG_NAMES = {law.name: law for law in _LAWS.values()}
_NUMBER = r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"


def law_named(name: str) -> Law:
    """The law of a name, such as 'power', or of a long one, such as 'per second, of a decay, at least 6 steps'."""
    if law := _LAWS.get(name) or _LONG_NAMES.get(name):
        return law
    for make_law in _PARAMETERS.values():
        if found := re.fullmatch(re.escape(make_law(6).name).replace("6", _NUMBER), name):
            return make_law(float(found[1]))
    if needed := [parameter for known, parameter in _PARAMETERS if known == name]:
        raise InputError(f"{quote(name)} needs {needed[0]}: give {{ law = {name!r}, {needed[0]} = NUMBER }}.")
    names = dict.fromkeys((*_LAWS, *(law for law, _ in _PARAMETERS)))
    raise InputError(f"{quote(name)} is no law: give one of {', '.join(names)}{did_you_mean(name, names)}")


def _law_of_table(table: Mapping[str, object]) -> Law:
    name, parameters = table.get("law"), {key: table[key] for key in table if key != "law"}
    if isinstance(name, str) and not parameters:
        return law_named(name)
    known = {f"{{ law = {law!r}, {parameter} = NUMBER }}": (law, parameter) for law, parameter in _PARAMETERS}
    for law, parameter in known.values():
        if (law, [parameter]) == (name, list(parameters)):
            value = parameters[parameter]
            if isinstance(value, int | float) and not isinstance(value, bool):
                return _PARAMETERS[law, parameter](value)
            raise InputError(f"{parameter} is {quote(value)}: it must be a number.")
    raise InputError(f"{quote(dict(table))} is no law: give one of {', '.join(known)}.")


def parse_own_rules(own: object) -> dict[str, Rule]:
    """By name, the rules that a table of tables describes."""
    if not isinstance(own, Mapping) or not all(isinstance(table, Mapping) and table for table in own.values()):
        remedy = "it must have a table for each rule, such as [own_rules.mine] with discount = 'power'"
        raise InputError(f"own_rules is {quote(own)}: {remedy}.")
    return {name: Rule(name, {field: _parse_law(name, field, law) for field, law in own[name].items()}) for name in own}


def own_rules_as_table(rules: Mapping[str, Rule]) -> dict[str, dict[str, str]]:
    """The table that `parse_own_rules` reads as these rules, with the long names that identities of runs have."""
    return {name: {field: law.name for field, law in rule.laws.items()} for name, rule in rules.items()}


def _parse_law(rule: str, field: str, given: object) -> Law:
    try:
        if isinstance(given, str):
            return law_named(given)
        if isinstance(given, Mapping):
            return _law_of_table(given)
        raise InputError(f"{quote(given)} is no law: give its name, such as 'power'.")
    except InputError as error:
        raise InputError(f"own_rules has {field} of {rule!r}: {error}") from None
