"""The learning rate, the clip and the initial sigma in other libraries' words.

No rule of the paper carries them, so that they stay unstated where nothing is said, and whatever cannot be carried as
one number (a schedule, rates that differ) goes back to the library as it was: who wants it carried is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any, Protocol

from cycletime.libraries.param_names import NotANumberError, SettingsReader, Word
from cycletime.rules.hyperparameters import Hyperparameters
from cycletime.rules.laws import Number


@dataclass(frozen=True)
class FoundRate:
    """A value, and whether it was said, or is what the library takes otherwise."""

    value: Number
    said: bool


class RateName(Protocol):
    """How one library says one of them."""

    def write(self, value: float) -> dict[str, Any]:
        """The value in the library's words."""

    def read(self, given: SettingsReader) -> FoundRate | None:
        """The value, if it was said or is known otherwise."""


@dataclass(frozen=True)
class OneRate:
    """One number, which may go by several names: the rates of several optimisers."""

    words: tuple[Word, ...]

    def write(self, value: float) -> dict[str, Any]:
        """See `RateWord`."""
        return {word.name: value for word in self.words}

    def read(self, given: SettingsReader) -> FoundRate | None:
        """See `RateWord`."""
        said = {word.name: given.optional_number(word.name) for word in self.words}
        used = {word.name: word.default if said[word.name] is None else said[word.name] for word in self.words}
        values = {name: _positive(given, name, value) for name, value in used.items() if value is not None}
        if len(set(values.values())) > 1:
            each = " and ".join(f"{name} {value:g}" for name, value in values.items())
            raise NotANumberError(
                f"{given.library}'s {each} differ: only one number for all of them can be carried to another cycle "
                "time."
            )
        is_said = any(value is not None for value in said.values())
        return FoundRate(next(iter(values.values())), is_said) if values else None


@dataclass(frozen=True)
class LogInside:
    """The logarithm of sigma inside a mapping that the library takes whole: Stable-Baselines3's ``policy_kwargs``."""

    mapping: str
    name: str
    default: float
    other_with: str
    """A setting with which the same name means something else."""

    def write(self, value: float) -> dict[str, Any]:
        """See `RateWord`."""
        return {self.mapping: {self.name: log(value)}}

    def read(self, given: SettingsReader) -> FoundRate | None:
        """See `RateWord`."""
        whole, dotted = given.values.get(self.mapping), f"{self.mapping}.{self.name}"
        if whole is not None:
            raise NotANumberError(f"{given.library}'s {self.mapping} is {whole!r}: only a mapping can be read.")
        if given.values.get(self.other_with):
            raise NotANumberError(
                f"{given.library}'s {self.other_with} is {given.values[self.other_with]!r}: {self.name} is then no "
                "standard deviation of the action."
            )
        # Not by the name that slips and branches are judged by, since the mapping is given back as it is.
        said = SettingsReader(given.library, given.values).optional_number(dotted)
        return FoundRate(exp(self.default if said is None else said), said is not None)

    def folded(self, values: Mapping[str, object]) -> dict[str, Any]:
        """Settings as the library takes them, if the name was given with a dot."""
        dotted, around = f"{self.mapping}.{self.name}", values.get(self.mapping)
        if dotted not in values:
            return dict(values)
        inside = {**(around if isinstance(around, Mapping) else {}), self.name: values[dotted]}
        return {**{name: value for name, value in values.items() if name != dotted}, self.mapping: inside}


@dataclass(frozen=True)
class RateWords:
    """How one library says the learning rate, the clip and the initial sigma of one algorithm."""

    learning_rate: OneRate | None = None
    clip: OneRate | None = None
    noise_std: OneRate | LogInside | None = None

    def _by_field(self) -> dict[str, RateName]:
        words = {"learning_rate": self.learning_rate, "clip": self.clip, "noise_std": self.noise_std}
        return {field: word for field, word in words.items() if word is not None}

    def write(self, values: Hyperparameters) -> dict[str, Any]:
        """All that was stated and that the library has a word for."""
        stated = values.stated()
        written: dict[str, Any] = {}
        for field, word in self._by_field().items():
            if field in stated:
                written |= word.write(float(stated[field]))
        return written

    def read(self, given: SettingsReader) -> tuple[dict[str, Number], dict[str, Number]]:
        """Our fields for what was said, and by field what the library takes where nothing was."""
        said: dict[str, Number] = {}
        defaults: dict[str, Number] = {}
        for field, word in self._by_field().items():
            try:
                found = word.read(given)
            except NotANumberError as error:
                given.unreadable[field] = str(error)
                continue
            if found is not None:
                (said if found.said else defaults)[field] = found.value
        return said, defaults

    def whole(self, values: Mapping[str, object]) -> dict[str, Any]:
        """All settings that were given, as the library takes them."""
        return self.noise_std.folded(values) if isinstance(self.noise_std, LogInside) else dict(values)


def _positive(given: SettingsReader, name: str, value: Number) -> Number:
    if not 0 < value < inf:
        raise NotANumberError(
            f"{given.library}'s {name} is {value!r}: only a finite number greater than 0 can be carried to another "
            "cycle time."
        )
    return value
