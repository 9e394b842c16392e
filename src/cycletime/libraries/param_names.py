"""One name in another library, and the values that go by such names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from numbers import Integral, Real
from typing import Any

from cycletime.errors import InputError
from cycletime.rules.laws import Number
from cycletime.rules.quantities import check_count


@dataclass(frozen=True)
class Word:
    """A library's name for one thing; dots lead into nested settings, as in ``loss.gamma``."""

    name: str
    """The name."""
    default: Number | None = None
    """What the library takes where nothing is said; None if it must be said, or only the library can tell."""


class NotANumberError(InputError):
    """A setting that rules carry only as a number, and that is something else: a schedule, or once per episode."""


@dataclass
class SettingsReader:
    """Values in a library's words on their way in; whatever is left over at the end is none that rules carry."""

    library: str
    values: dict[str, object]
    known: list[str] = field(default_factory=list)
    layout: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    left_alone: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def number(self, word: Word) -> Number:
        """The value of a name, or the library's default."""
        value = self.optional_number(word.name)
        if value is not None:
            return value
        if word.default is None:
            raise InputError(f"{word.name} was not given, and {self.library} has no default for it: give one.")
        return word.default

    def optional_number(self, name: str) -> Number | None:
        """The value of a name, if it is given and not left to the library."""
        self.known.append(name)
        value = self.values.get(name)
        if value is None or (isinstance(value, str) and value == "auto"):
            return None
        if isinstance(value, bool) or not isinstance(value, Real):
            raise NotANumberError(
                f"{self.library}'s {name} is {value!r}: only a number can be carried to another cycle time."
            )
        if isinstance(value, Integral):
            return int(value)
        number = float(value)
        return int(number) if number.is_integer() else number  # configuration files write counts as 1e6 at times

    def optional_positive(self, name: str) -> Number | None:
        """The value of a name, if it is given: a period, a ratio or a count, which others are divided by."""
        value = self.optional_number(name)
        if value is not None and not 0 < value < inf:
            raise InputError(f"{self.library}'s {name} is {value!r}: it must be a finite number greater than 0.")
        return value

    def count(self, word: Word) -> int:
        """A value that must be a whole number of at least 1."""
        return check_count(f"{self.library}'s {word.name}", self.number(word))

    def refuse_slips(self) -> None:
        """Refuse names that are nearly a carried one and would be ignored: a typo, or gamma for ``loss.gamma``."""
        known = list(dict.fromkeys(self.known))
        for name in self.values:
            near = [each for each in known if name not in known and _is_slip(name, each)]
            if near:
                raise InputError(
                    f"{self.library} has no setting {name!r} that depends on the cycle time; those are "
                    f"{', '.join(known)}; did you mean {near[0]}?"
                )


def _is_slip(given: str, known: str) -> bool:
    """Whether a name lacks its section, or is a typo of another."""
    return given == known.rpartition(".")[2] or _one_slip_apart(given, known)


def _one_slip_apart(one: str, other: str) -> bool:
    """Whether a letter is missing, too many, wrong, or has changed places with its neighbour."""
    one, other = one.lower().replace("-", "_"), other.lower()
    shortest, longest = sorted((len(one), len(other)))
    before = _common_prefix_length(one, other)
    after = min(_common_prefix_length(one[::-1], other[::-1]), shortest - before)
    swapped = shortest == longest and one[before : before + 2] == other[before : before + 2][::-1]
    return before + after >= longest - (2 if swapped else 1)


def _common_prefix_length(one: str, other: str) -> int:
    """How many letters are the same from the start on."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def flatten_settings(
    values: Mapping[str, object], branches: Collection[str] | None = None, prefix: str = ""
) -> dict[str, Any]:
    """Nested settings with dotted names, the opposite of `LibraryValues.nested`; along some branches, or all."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and (branches is None or prefix + name in branches):
            flat |= flatten_settings(value, branches, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def setting_prefixes(names: Collection[str]) -> set[str]:
    """What the dotted names are in: a and a.b for a.b.c."""
    return {name[:at] for name in names for at, letter in enumerate(name) if letter == "."}
