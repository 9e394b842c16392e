"""One name in another library, and the values that go by such names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from numbers import Integral, Real
from typing import Any

from cycletime.errors import InputError
from cycletime.rules.formulas import Number
from cycletime.rules.quantities import whole_number


@dataclass(frozen=True)
class Word:
    """A library's name for one thing; dots lead into nested settings, as in ``loss.gamma``."""

    name: str
    """The name."""
    default: Number | None = None
    """What the library takes where nothing is said; None if it must be said, or only the library can tell."""


@dataclass(frozen=True, eq=False)  # equal to any mapping with the same items
class LibraryValues(Mapping[str, Any]):
    """Hyper-parameters in a library's words: pass them on as ``**values``, or as `nested` settings."""

    library: str
    """Whose words these are."""
    by_name: Mapping[str, Any]
    """The values by the library's names."""
    notes: tuple[str, ...] = ()
    """What the library cannot express, and what it does on its own."""
    exact: bool = True
    """Whether the library will use exactly the values that were asked for."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever the library wants there
        """The value of one of the library's names."""
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        """The library's names."""
        return iter(self.by_name)

    def __len__(self) -> int:
        """How many names there are."""
        return len(self.by_name)

    def nested(self) -> dict[str, Any]:
        """The values with ``a.b`` as ``{"a": {"b": ...}}``, as configuration files have them."""
        tree: dict[str, Any] = {}
        for name, value in self.by_name.items():
            *branches, leaf = name.split(".")
            node = tree
            for branch in branches:
                node = node.setdefault(branch, {})
            node[leaf] = value
        return tree


@dataclass
class Given:
    """Values in a library's words on their way in; whatever is left over at the end was not understood."""

    library: str
    values: dict[str, object]
    known: list[str] = field(default_factory=list)

    def number(self, word: Word) -> Number:
        """The value of a name, or the library's default."""
        value = self.optional_number(word.name)
        if value is not None:
            return value
        if word.default is None:
            raise InputError(f"{word.name} was not given, and {self.library} has no default for it: give one.")
        return word.default

    def optional_number(self, name: str) -> Number | None:
        """The value of a name, if it is given."""
        self.known.append(name)
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(
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
        return whole_number(f"{self.library}'s {word.name}", self.number(word))

    def refuse_the_rest(self) -> None:
        """Refuse names that were not asked for, since a misspelt one would be lost silently."""
        left = [name for name in self.values if name not in self.known]
        if left:
            raise InputError(
                f"{', '.join(left)}: no name that depends on the cycle time in {self.library}; "
                f"those are {', '.join(dict.fromkeys(self.known))}."
            )


def flattened(values: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested settings with dotted names, the opposite of `LibraryValues.nested`."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
