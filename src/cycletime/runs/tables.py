"""Tables that people write and studies keep, TOML and JSON: bounded before they are read, plain before they are used.

Whatever a file holds, a message can quote it in a line. No JAX in here.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cycletime.bounded import read_text
from cycletime.errors import InputError, shown
from cycletime.runs.told import reason_of, told_by

MOST_BYTES = 8 * 2**20
"""Of a file that people write; reading so much takes three seconds."""
MOST_BYTES_KEPT = 256 * 2**20
"""Of a file that a study keeps, in which all its seeds and points are written out."""
_MOST_LEVELS = 20
_MOST_CHARACTERS = 200
_LONGEST_PATH = 4096
_KEYS_OF_PATHS = ("tuned",)
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_TOO_MANY_PARTS = re.compile(rf"(?<![\w-])(?:{_PART}){{100}}")
"""A key such as a.b.c with very many parts, for which tomllib takes hours."""


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file.

    Raises:
        InputError: if it cannot be read, or is none.
    """
    return toml_table(read_toml_text(path), path)


def read_toml_text(path: Path) -> str:
    """The text of a TOML file, byte for byte; its size is known before anything is read.

    Raises:
        InputError: if it cannot be read.
    """
    return read_text(path, MOST_BYTES, encoding="utf-8")


def toml_table(text: str, path: Path) -> dict[str, Any]:
    """The table in the text of a TOML file.

    Raises:
        InputError: if there is none.
    """
    if "\0" in text:
        raise InputError(f"{path} is not UTF-8 text: it has the character NUL, as files in UTF-16 have.")
    if _TOO_MANY_PARTS.search(text):
        raise InputError(f"{path} has a key of more than 100 parts: tables are not nested so deeply.")
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))  # the byte order mark of some editors
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not a TOML file: {str(error).rstrip('.')}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a valid TOML file: {_excess(error)}.") from error


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """A TOML file of tables, by their names."""
    return "\n".join(_table_text(name, table) for name, table in tables.items())


def _table_text(name: str, table: Mapping[str, Any]) -> str:
    lines = [f"{key} = {_toml_value(value)}\n" for key, value in table.items()]
    return f"[{name}]\n{''.join(lines)}"


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
    """What is in a JSON file that a study keeps.

    Raises:
        InputError: if it cannot be read, or is none.
    """
    text = read_text(path, MOST_BYTES_KEPT)
    try:
        return told_by(text.encode())
    except ValueError as error:
        raise InputError(f"{path} is not a valid JSON file: {reason_of(error)}.") from error


def check_plain(table: object) -> None:
    """Refuse what no table of settings has: texts that are long or not printable, huge numbers, deep nesting.

    Raises:
        InputError: if there is some of it; the sentence names the key at the top.
    """
    if not isinstance(table, Mapping):
        raise InputError(f"{shown(table)} is not a table of keys and values.")
    for key, value in table.items():
        _check_text("There is the key", key, _MOST_CHARACTERS)
        _check_value(key, value, _LONGEST_PATH if key in _KEYS_OF_PATHS else _MOST_CHARACTERS, _MOST_LEVELS)


def _check_value(key: str, value: object, most_characters: int, levels: int) -> None:
    if isinstance(value, str):
        _check_text(f"{key} is" if levels == _MOST_LEVELS else f"{key} has", value, most_characters)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"{key} has the number {shown(value)}: whole numbers must lie below 2**63.")
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
        raise InputError(f"{where} {shown(text)}: a text is one line of at most {most} printable characters.")


def _excess(error: Exception) -> str:
    """What there is too much of; Python's own words are about the interpreter."""
    if isinstance(error, RecursionError):
        return "its lists and tables are nested too deeply"
    return "it has a number of thousands of digits"
