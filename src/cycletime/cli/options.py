"""Kinds of options that several commands share: whole numbers, rates, lists of names, one run's folder."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypeAlias

from tyro.conf import Positional, arg
from tyro.constructors import PrimitiveConstructorSpec

from cycletime.errors import InputError, quote
from cycletime.rules import Rule

_MOST_DIGITS = 18


def parse_whole_number(text: str) -> int:
    """The whole number that a text is, exactly: 2000, 2e3."""
    with suppress(ArithmeticError, ValueError):
        number = Decimal(text)
        if abs(number.adjusted()) < _MOST_DIGITS and number == (whole := int(number)):
            return whole
    if span := re.fullmatch(r"(\d{1,6})(?:-|:|\.\.)(\d{1,6})", text):
        first, last = map(int, span.groups())
        raise ValueError(
            f"{quote(text)} is not a whole number: as a range of seeds it is --seed {first} "
            f"--seeds {max(1, last - first + 1)}."
        )
    raise ValueError(f"{quote(text)} is not a whole number such as 2000 or 1e6.")


def _parse_real_number(words: list[str]) -> float:
    try:
        return float(words[0])
    except ValueError:
        raise ValueError(f"{quote(words[0])} is not a number such as 0.99.") from None


# tyro checks a default of 'int | None' or 'tuple[str, ...]' with a library that takes 0.1 s to load, while it knows
# Optional and plain classes itself. The readers are ours since tyro's messages about numbers speak of types.
_WHOLE: PrimitiveConstructorSpec[int] = PrimitiveConstructorSpec(
    1, "N", lambda words: parse_whole_number(words[0]), lambda x: True, lambda x: [str(x)]
)
_REAL: PrimitiveConstructorSpec[float] = PrimitiveConstructorSpec(
    1, "X", _parse_real_number, lambda x: True, lambda x: [str(x)]
)
Count: TypeAlias = Annotated[Optional[int], _WHOLE]  # noqa: UP045
Rate: TypeAlias = Annotated[Optional[float], _REAL]  # noqa: UP045
Whole: TypeAlias = Annotated[int, _WHOLE]
Real: TypeAlias = Annotated[float, _REAL]
Text: TypeAlias = Optional[str]  # noqa: UP045
NumEnvs: TypeAlias = Annotated[Count, arg(help_behavior_hint="(default: 1)")]
RuleOption: TypeAlias = Annotated[
    Text, arg(metavar="RULE", help_behavior_hint="(default: what is recommended for the values)")
]
OwnRulesFile: TypeAlias = Annotated[Text, arg(metavar="FILE", help_behavior_hint="(no default)")]


class NameList(tuple[str, ...]):
    """Names one after another, as in ``--also warm-up target-smoothing``."""


NO_NAMES = NameList()


def name_list(metavar: str, count: int | Literal["*"] = "*") -> PrimitiveConstructorSpec[NameList]:
    return PrimitiveConstructorSpec(count, metavar, NameList, lambda x: True, list)


NameListOption: TypeAlias = Annotated[NameList, name_list("PART ..."), arg(help_behavior_hint="(default: none)")]


def paper_default(value: object) -> Any:  # noqa: ANN401 - tyro's own type is private
    """A default that is not typed in twice: left out, the option is None, and the rules fill it in."""
    return arg(help_behavior_hint=f"(default: {value}, the paper's baseline)")


def select_rule(rule: str | None, file: str | None) -> str | Rule | None:
    """The rule that is asked for: one of a file, or a name that others know."""
    if file is None:
        return rule
    from cycletime.training.toml_files import read_own_rules

    found = read_own_rules(Path(file))
    if rule not in found:
        given = "missing" if rule is None else repr(rule)
        raise InputError(f"--rule is {given}: {file} has {', '.join(found) or 'no table [own_rules.NAME]'}.")
    return found[rule]


@dataclass(frozen=True, kw_only=True)
class SingleRunOptions:
    folders: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN", help_behavior_hint="(required)")]
    """The run's folder."""

    @property
    def folder(self) -> Path:
        """The one that there must be; a shell's * may have found none or several."""
        if len(self.folders) != 1:
            found = ", ".join(map(str, self.folders)) or "none"
            raise InputError(f"This command takes one run, and was given {len(self.folders)} ({found}): name one.")
        return self.folders[0]
