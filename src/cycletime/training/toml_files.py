"""TOML files that people write: bounded before they are read, plain before they are used.

Tables of settings, rules of one's own, and tuned hyper-parameters as `cycletime tune` writes them:

    [tuned.ppo]
    dt = "16ms"
    batch = 4000
    minibatch = 25

    [set.ppo]
    hidden = [32, 32]

A file for one algorithm may leave out its name: ``[tuned]``. A table ``[from.ppo]`` says where the values come from.
Whatever a file holds, a message can quote it in a line. No JAX in here.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from cycletime.bounded import read_bounded_text
from cycletime.duration import Duration
from cycletime.errors import InputError, quote, unknown_name_error
from cycletime.libraries.synonyms import name_hint
from cycletime.rules import PPO, SAC, Hyperparameters, Rule
from cycletime.rules.rule import parse_own_rules
from cycletime.training.atomic_files import write_whole
from cycletime.training.sealed_json import error_reason, parse_json

MOST_BYTES = 8 * 2**20
"""Of a file that people write; reading so much takes three seconds."""
MOST_BYTES_KEPT = 256 * 2**20
"""Of a file that a study keeps, in which all its seeds and points are written out."""
_MOST_LEVELS = 20
_MOST_CHARACTERS = 200
_LONGEST_PATH = 4096
_KEYS_OF_PATHS = ("tuned", "home")
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_TOO_MANY_PARTS = re.compile(rf"(?<![\w-])(?:{_PART}){{100}}")
"""A key such as a.b.c with very many parts, for which tomllib takes hours."""


def read_toml(path: Path) -> dict[str, Any]:
    return _toml_table(read_bounded_text(path, MOST_BYTES, encoding="utf-8"), path)


def _toml_table(text: str, path: Path) -> dict[str, Any]:
    if "\0" in text:
        raise InputError(f"{path} is not UTF-8 text: it has the character NUL, as files in UTF-16 have.")
    if _TOO_MANY_PARTS.search(text):
        raise InputError(f"{path} has a key of more than 100 parts: tables are not nested so deeply.")
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))  # the byte order mark of some editors
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not a TOML file: {str(error).rstrip('.')}.") from error
    except RecursionError as error:  # Python's own words, of this and of the next, are about the interpreter
        raise InputError(f"{path} is not a valid TOML file: its lists and tables are nested too deeply.") from error
    except ValueError as error:
        raise InputError(f"{path} is not a valid TOML file: it has a number of thousands of digits.") from error


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    texts = {
        name: "".join(f"{key} = {_toml_value(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    }
    return "\n".join(f"[{name}]\n{text}" for name, text in texts.items())


def _toml_value(value: object) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key} = {_toml_value(each)}" for key, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml_value(each) for each in value)}]"
    if isinstance(value, float):
        return repr(float(value))  # as JSON does, but JSON spells infinity otherwise
    return json.dumps(value, ensure_ascii=False)


def read_json(path: Path) -> dict[str, Any]:
    text = read_bounded_text(path, MOST_BYTES_KEPT)
    try:
        return parse_json(text.encode())
    except ValueError as error:
        raise InputError(f"{path} is not a valid JSON file: {error_reason(error)}.") from error


def check_plain(table: object) -> None:
    """Refuse what no table of settings has: texts that are long or not printable, huge numbers, deep nesting."""
    if not isinstance(table, Mapping):
        raise InputError(f"{quote(table)} is not a table of keys and values.")
    for key, value in table.items():
        _check_text("There is the key", key, _MOST_CHARACTERS)
        _check_value(key, value, _LONGEST_PATH if key in _KEYS_OF_PATHS else _MOST_CHARACTERS, _MOST_LEVELS)


def _check_value(key: str, value: object, most_characters: int, levels: int) -> None:
    if isinstance(value, str):
        _check_text(f"{key} is" if levels == _MOST_LEVELS else f"{key} has", value, most_characters)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"{key} is {quote(value)}: whole numbers must lie below 2**63.")
    elif isinstance(value, list | Mapping):
        if not levels:
            raise InputError(f"{key} is nested more than {_MOST_LEVELS} levels deep: give lists and tables of values.")
        if isinstance(value, Mapping):
            for each in value:
                _check_text(f"{key} has the key", each, _MOST_CHARACTERS)
        for each in value.values() if isinstance(value, Mapping) else value:
            _check_value(key, each, most_characters, levels - 1)


def _check_text(where: str, text: str, most: int) -> None:
    if len(text) > most or not text.isprintable():
        raise InputError(f"{where} {quote(text)}: a text is one line of at most {most} printable characters.")


def read_own_rules(file: Path) -> dict[str, Rule]:
    data = read_toml(file)
    try:
        check_plain(data)
        return parse_own_rules(data.get("own_rules", {}))
    except InputError as error:
        raise InputError(f"{file}: {error}") from error


_TUNED, _SET, _FROM, _SEAL = "tuned", "set", "from", "sha256"
ABOUT_TUNING = {"searched": list, "trainer": str, "num_envs": int}
"""What a file says of its tuning: the values that it chose, who trained, and the environments that the batch is of."""
_KINDS: Mapping[str, type[Hyperparameters]] = {"ppo": PPO, "sac": SAC}
_NAMES = {
    **{name: tuple(quantity.field for quantity in kind.quantities) for name, kind in _KINDS.items()},
    "actor-critic": ("discount",),
}


@dataclass(frozen=True)
class TunedValues:
    dt: Duration
    values: Mapping[str, Any]
    others: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the agent, the same at every cycle time."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """How they were tuned, as far as the file says: `searched`, by our names, `trainer` and `num_envs`."""


@dataclass(frozen=True)
class TunedFile:
    """The content of a file of tuned values, by algorithm where it names them."""

    path: Path
    tuned: Mapping[str, Any]
    others: Mapping[str, Any]
    origins: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Those that the file names; none where it is for whichever algorithm is asked for."""
        return tuple(name for name in self.tuned if name in _NAMES)

    def of(self, algorithm: str) -> TunedValues:
        if algorithm not in _NAMES:
            raise unknown_name_error(algorithm, "an algorithm", sorted(_NAMES))
        if self.algorithms and algorithm not in self.tuned:
            raise InputError(f"{self.path} has values of {', '.join(self.algorithms)}, and none of {algorithm}.")
        values = dict(_table(self.path, _TUNED, self.tuned, algorithm))
        if ranges := [name for name, value in values.items() if isinstance(value, list | dict)]:
            read = f"{quote(values[ranges[0]])} as {ranges[0]}, as what 'cycletime tune' reads"
            raise InputError(f"{self.path} has {read}: give the file that it writes, by --write tuned.toml.")
        others, origin = dict(_table(self.path, _SET, self.others, algorithm)), self.origins.get(algorithm)
        origin = dict(origin) if isinstance(origin, Mapping) else {}
        if _SEAL in origin and origin.pop(_SEAL) != _seal(values, others, origin):
            remedy = f"put it back, or delete its {_SEAL} if you changed it"
            raise InputError(f"{self.path} is not what 'cycletime tune' wrote: {remedy}.")
        lists_as_tuples = {name: tuple(each) if isinstance(each, list) else each for name, each in others.items()}
        about = {"searched": list(values)} if origin else {}  # of version 0.2, which does not say it
        about |= {key: origin[key] for key, kind in ABOUT_TUNING.items() if isinstance(origin.get(key), kind)}
        try:
            return TunedValues(_checked(algorithm, values), values, lists_as_tuples, about)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from error


def read_tuned(path: Path | str) -> TunedFile:
    path = Path(path)
    text = read_bounded_text(path, MOST_BYTES, encoding="utf-8")
    data, digest = _toml_table(text, path), sha256(text.encode()).hexdigest()
    try:
        check_plain({key: data[key] for key in (_TUNED, _SET) if key in data})
        for key in (_TUNED, _SET):
            if not isinstance(data.get(key, {}), dict):
                raise InputError(f"{key} is {quote(data[key])}, and should be a table.")
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not data.get(_TUNED):
        raise InputError(f"{path} has no tuned values: give them in a table such as [tuned.ppo].")
    origins = data.get(_FROM)
    return TunedFile(path, data[_TUNED], data.get(_SET, {}), origins if isinstance(origins, dict) else {}, digest)


def write_tuned(path: Path, algorithm: str, tuned: TunedValues, origin: Mapping[str, Any]) -> None:
    """Write the tuned values of an algorithm, and where they come from; `read_tuned` reads the values again."""
    values = {"dt": str(tuned.dt), **tuned.values}
    origin = {**origin, **tuned.about}
    tables = {
        f"{_TUNED}.{algorithm}": values,
        f"{_SET}.{algorithm}": tuned.others,
        f"{_FROM}.{algorithm}": {**origin, _SEAL: _seal(values, tuned.others, origin)},
    }
    text = toml_text({name: table for name, table in tables.items() if table})
    write_whole(path, lambda file: file.write_text(text, encoding="utf-8"))


def trained_otherwise(about: Mapping[str, Any], trainer: str, num_envs: int) -> tuple[str, ...]:
    """A note where tuned values are from another trainer than theirs now, or from other environments."""
    now = {"trainer": trainer, "num_envs": num_envs}
    told = [f"{key} {about[key]}, not {each}" for key, each in now.items() if about.get(key, each) != each]
    return (f"The values were tuned with {' and '.join(told)}.",) if told else ()


def _seal(values: Mapping[str, Any], others: Mapping[str, Any], origin: Mapping[str, Any]) -> str:
    return sha256(json.dumps([values, others, origin], sort_keys=True, default=str).encode()).hexdigest()


def made_by(path: Path, algorithm: str) -> str | None:
    """The study whose tuning wrote a file; None where no tuning did, or the file has other algorithms' values too."""
    try:
        data = read_toml(path)
        study = data[_FROM][algorithm]["study"] if list(data[_TUNED]) == [algorithm] else None
    except (InputError, KeyError, TypeError):
        return None
    return None if study is None else str(study)


def _table(path: Path, key: str, table: Mapping[str, Any], algorithm: str) -> Mapping[str, Any]:
    """The part of a table that is an algorithm's: its own, or all of it where no algorithm is named."""
    found = table.get(algorithm, {}) if any(name in _NAMES for name in table) else table
    if not isinstance(found, Mapping):
        raise InputError(f"{path}: {key}.{algorithm} is {quote(found)}, and should be a table.")
    return found


def _checked(algorithm: str, values: dict[str, Any]) -> Duration:
    """The cycle time, taken out of the values, which are checked."""
    if "dt" not in values:
        raise InputError("dt is missing: say at which cycle time the values were tuned, such as dt = '16ms'.")
    dt = Duration(values.pop("dt"))
    for name, value in values.items():
        if name not in _NAMES[algorithm]:
            known = _NAMES[algorithm]
            meant = name_hint(name, algorithm, known)
            raise InputError(f"{name!r} is not a tuned value: {algorithm} has {', '.join(known)}{meant}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name} is {quote(value)}: it must be one number.")
    if algorithm in _KINDS:
        kind = _KINDS[algorithm]
        for count in (each.name for each in fields(kind) if str(each.type).startswith("int")):
            if isinstance(value := values.get(count), float) and value.is_integer():
                values[count] = int(value)  # as in 2e3
        kind(dt=dt, **values)
    return dt
