"""Settings by their names in another library: how they are read, checked, and written back.

Whatever cannot be carried as one number (a schedule, rates that differ) goes back to the library as it was: who wants
it carried is told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from math import exp, inf, log
from numbers import Integral, Real
from typing import Any

from cycletime.errors import InputError
from cycletime.rules.hyperparameters import Hyperparameters
from cycletime.rules.laws import Number
from cycletime.rules.quantities import check_count


@dataclass(frozen=True)
class ParamName:
    """A library's name for one thing; dots lead into nested settings, as in ``loss.gamma``."""

    name: str
    default: Number | None = None
    """What the library takes where nothing is said; None if it must be said, or only the library can tell."""


class NotANumberError(InputError):
    """A setting that rules carry only as a number, and that is something else: a schedule, or once per episode."""


PICKLED = "pickled in the file"
_SCHEDULE = re.compile(r"^\D.*[\d_(]|\$\{")
"""What a text for a rate looks like: lin_3e-4; or what another program fills in."""


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

    def number(self, word: ParamName) -> Number:
        """The value of a name, or the library's default."""
        value = self.optional_number(word.name)
        if value is not None:
            return value
        if word.default is None:
            self.refuse_slips()
            raise NotANumberError(f"{word.name} was not given, and {self.library} has no default for it: give one.")
        return word.default

    def optional_number(self, name: str) -> Number | None:
        """The value of a name, if it is given and not left to the library."""
        self.known.append(name)
        value = self.values.get(name)
        if value is None or (isinstance(value, str) and value == "auto"):
            return None
        if isinstance(value, bool) or not isinstance(value, Real):
            instead = f"; give values, as in --from-library {self.library} {name}=1" if value == PICKLED else ""
            shown = "a schedule" if callable(value) else repr(value)
            raise self.not_carried(f"{name} is {shown}: only a number", instead)
        if isinstance(value, Integral):
            return int(value)
        number = float(value)
        return int(number) if number.is_integer() else number  # configuration files write counts as 1e6 at times

    def not_carried(self, why: str, instead: str = "") -> NotANumberError:
        return NotANumberError(f"{self.library}'s {why} can be carried to another cycle time{instead}.")

    def optional_positive(self, name: str) -> Number | None:
        """The value of a name, if it is given: a period, a ratio or a count, which others are divided by."""
        value = self.optional_number(name)
        if value is not None and not 0 < value < inf:
            raise InputError(f"{self.library}'s {name} is {value!r}: it must be a finite number greater than 0.")
        return value

    def count(self, word: ParamName) -> int:
        return check_count(f"{self.library}'s {word.name}", self.number(word))

    def refuse_slips(self, cycle_time: Collection[str] = ()) -> None:
        """Refuse names that are nearly a carried one, or one that says the cycle time, and would be ignored."""
        for name in self.values:
            if name.rpartition(".")[2] in _OF_DQN:
                what = "a setting of DQN, and no rule here carries the values of DQN"
                here = "'cycletime transfer' is for ppo, sac, a2c, tqc, td3 and ddpg"
                raise InputError(f"{self.library}'s {name} is {self.values[name]}, {what}: {here}.")
            if self.library in ("stable-baselines3", "sbx") and name in ("n_env", "num_env", "num_envs"):
                number = self.values[name]
                raise InputError(f"{name}={number} is no setting: give --num-envs {number}, in Python n_envs={number}.")
        known = list(dict.fromkeys(self.known))
        names = [*known, *cycle_time]
        for name in self.values:
            if near := [each for each in names if name not in names and each and _is_slip(name, each)]:
                has = f"{self.library} has no setting {name!r} that depends on the cycle time"
                raise InputError(f"{has}; those are {', '.join(known)}; did you mean {near[0]}?")


NUMBER, WHOLE, POSITIVE = "a number", "a whole number of at least 1", "a number above 0"
SECONDS = "a number above 0 and below 1, in seconds"
SHARE, DISCOUNT = "a number from 0 to 1", "a number above 0 and at most 1"


def fits(value: object, needs: str) -> bool:
    """Whether a value is what is needed: WHOLE, POSITIVE, SECONDS, SHARE or DISCOUNT."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    most = 1 if needs in (SHARE, DISCOUNT, SECONDS) else 1e15
    is_in_range = 0 < value <= most and (needs != WHOLE or value == int(value)) and (needs, value) != (SECONDS, 1)
    return is_in_range or (value == 0 and needs == SHARE)


_OF_DQN = ("exploration_fraction", "exploration_initial_eps", "exploration_final_eps")
SECTIONS = ("", "agent", "algo", "algorithm", "config", "params", "params.config", "policy", "ppo", "runner", "sac")
"""What a name may begin with, in some file or version, and still mean the setting itself."""
LONG_NAME = 6
"""Letters of a name that has no other one slip away from it."""


def _is_slip(given: str, known: str) -> bool:
    """Whether a name lacks its section, or is a typo of another."""
    head, _, last = given.rpartition(".")
    end = known.rpartition(".")[2]
    in_section = head in SECTIONS and (last == end or (len(end) >= LONG_NAME and one_slip_apart(last, end)))
    return in_section or is_near(given.removeprefix("agent.").removeprefix("env."), known.removeprefix("env."))


_ALSO_CALLED = (
    {"gamma", "discount", "discounting", "discount_factor"},
    {"lam", "lambda", "lambda_", "gae_lambda"},
    {"n_steps", "num_steps", "num_steps_per_env", "rollouts", "rollout_length", "unroll_length", "horizon_length"},
)


def is_near(given: str, known: str) -> bool:
    """Whether a name is a typo of another, or what other libraries call the same."""
    (head, _, last), (known_head, _, end) = given.rpartition("."), known.rpartition(".")
    is_same = head == known_head and any({last, end} <= names for names in _ALSO_CALLED)
    return is_same or one_slip_apart(given, known)


def one_slip_apart(one: str, other: str) -> bool:
    """Whether a letter is missing, too many, wrong, or has changed places with its neighbour."""
    short, long = sorted((one.lower().replace("-", "_"), other.lower()), key=len)
    if len(long) == len(short) + 1:
        return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
    wrong = [at for at, letter in enumerate(short) if letter != long[at]]
    swapped = len(wrong) == 2 and short[wrong[0] : wrong[1] + 1] == long[wrong[0] : wrong[1] + 1][::-1]
    return len(long) == len(short) and (len(wrong) < 2 or swapped)


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


def plain_value(text: str) -> Any:  # noqa: ANN401 - whatever it is
    """A number, true, false or nothing where a text is one, 1e6 a whole number, as counts are; several in brackets."""
    if re.fullmatch(r"\[[^][]*\]", text):
        return [plain_value(each.strip()) for each in text[1:-1].split(",") if each.strip()]
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        number = float(text)
        return int(number) if "e" in text.lower() and number.is_integer() else number
    return {"true": True, "false": False, "none": None, "null": None}.get(text.lower(), text)


def setting_prefixes(names: Collection[str]) -> set[str]:
    """What the dotted names are in: a and a.b for a.b.c."""
    return {name[:at] for name in names for at, letter in enumerate(name) if letter == "."}


def param_names(words: object) -> Iterator[str]:
    """All names in a table, in a part of one, or in several parts."""
    if isinstance(words, ParamName):
        yield words.name
    elif isinstance(words, LogInside):
        yield f"{words.mapping}.{words.name}"
    elif isinstance(words, tuple) or is_dataclass(words):
        for each in words if isinstance(words, tuple) else vars(words).values():
            yield from param_names(each)


@dataclass(frozen=True)
class OneRate:
    """One number, which may go by several names: the rates of several optimisers."""

    words: tuple[ParamName, ...]

    def write(self, value: float) -> dict[str, Any]:
        return {word.name: value for word in self.words}

    def read(self, given: SettingsReader) -> tuple[Number, bool] | None:
        """The value, and whether it was said, or is what the library takes otherwise."""
        said = {word.name: given.optional_number(word.name) for word in self.words}
        used = {word.name: word.default if said[word.name] is None else said[word.name] for word in self.words}
        values = {name: value for name, value in used.items() if value is not None}
        for name, value in values.items():
            if not 0 < value < inf:
                raise given.not_carried(f"{name} is {value!r}: only a finite number greater than 0")
        if len(set(values.values())) > 1:
            each = " and ".join(f"{name} {value:g}" for name, value in values.items())
            raise given.not_carried(f"{each} differ: only one number for all of them")
        is_said = any(value is not None for value in said.values())
        return (next(iter(values.values())), is_said) if values else None


@dataclass(frozen=True)
class LogInside:
    """The logarithm of sigma inside a mapping that the library takes whole: Stable-Baselines3's ``policy_kwargs``."""

    mapping: str
    name: str
    default: float
    other_with: str
    """A setting with which the same name means something else."""

    def write(self, value: float) -> dict[str, Any]:
        return {self.mapping: {self.name: log(value)}}

    def read(self, given: SettingsReader) -> tuple[Number, bool] | None:
        whole, dotted = given.values.get(self.mapping), f"{self.mapping}.{self.name}"
        if whole is not None:
            raise NotANumberError(f"{given.library}'s {self.mapping} is {whole!r}: give {dotted} by that name.")
        if other := given.values.get(self.other_with):
            then = f"{self.name} is then no standard deviation of the action, so leave exploration-noise out"
            raise NotANumberError(f"{given.library}'s {self.other_with} is {other!r}: {then}.")
        # Not by the name that slips and branches are judged by, since the mapping is given back as it is.
        said = SettingsReader(given.library, given.values).optional_number(dotted)
        return exp(self.default if said is None else said), said is not None

    def folded(self, values: Mapping[str, object]) -> dict[str, Any]:
        """Settings as the library takes them, if the name was given with a dot."""
        dotted, around = f"{self.mapping}.{self.name}", values.get(self.mapping)
        if dotted not in values:
            return dict(values)
        inside = {**(around if isinstance(around, Mapping) else {}), self.name: values[dotted]}
        return {**{name: value for name, value in values.items() if name != dotted}, self.mapping: inside}


@dataclass(frozen=True)
class RateTable:
    """How one library says the learning rate, the clip and the initial sigma of one algorithm."""

    learning_rate: OneRate | None = None
    clip: OneRate | None = None
    noise_std: OneRate | LogInside | None = None

    def _by_field(self) -> dict[str, OneRate | LogInside]:
        return {name: word for name, word in vars(self).items() if word is not None}

    def write(self, values: Hyperparameters) -> dict[str, Any]:
        stated, words = values.stated(), self._by_field()
        written = [word.write(float(stated[name])) for name, word in words.items() if name in stated]
        return {name: each for one in written for name, each in one.items()}

    def read(self, given: SettingsReader) -> tuple[dict[str, Number], dict[str, Number]]:
        """Our fields for what was said, and by field what the library takes where nothing was."""
        said: dict[str, Number] = {}
        defaults: dict[str, Number] = {}
        for name, word in self._by_field().items():
            try:
                found = word.read(given)
            except NotANumberError as error:
                for each in param_names(word):
                    text = given.values.get(each)
                    if isinstance(text, str) and text != PICKLED and not _SCHEDULE.search(text):
                        says = f"{given.library}'s {each} is {text!r}: it must be a number, or a schedule as lin_3e-4."
                        raise InputError(says) from None
                given.unreadable[name] = str(error)
                continue
            if found is not None:
                (said if found[1] else defaults)[name] = found[0]
        return said, defaults

    def whole(self, values: Mapping[str, object]) -> dict[str, Any]:
        return self.noise_std.folded(values) if isinstance(self.noise_std, LogInside) else dict(values)
