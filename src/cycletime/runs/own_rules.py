"""Rules of one's own in a file, such as a study's."""

from __future__ import annotations

from pathlib import Path

from cycletime.errors import InputError
from cycletime.rules import Rule
from cycletime.rules.own import own_rules_in
from cycletime.runs.tables import check_plain, read_toml


def read_own_rules(file: Path) -> dict[str, Rule]:
    """By name, the rules of a TOML file's tables [own_rules.NAME].

    Raises:
        InputError: if it cannot be read, or describes none.
    """
    told = read_toml(file)
    try:
        check_plain(told)
        return own_rules_in(told.get("own_rules", {}))
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
