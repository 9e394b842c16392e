"""NAME=VALUE words for the fields of an agent, as in ``--set hidden=32,32 learn_when=episode_end``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import fields
from typing import Any

from cycletime.cli.options import whole_number
from cycletime.errors import InputError, cut, did_you_mean, shown, unknown

_LIST = re.compile(r"^\[(.*)\]$")


def settings_of(words: Iterable[str], algorithm: str, but_not: Collection[str]) -> dict[str, Any]:
    """The fields that the words set, but those that have an option of their own."""
    from cycletime.runs.spec import AGENTS

    if algorithm not in AGENTS:
        raise unknown(algorithm, "an algorithm", AGENTS)
    kinds = {each.name: str(each.type) for each in fields(AGENTS[algorithm]) if each.name != "exploration"}
    found: dict[str, Any] = {}
    for word in words:
        name, value = _setting(word, kinds, algorithm)
        if name in but_not:
            raise InputError(f"--set {cut(word)}: give --{name.replace('_', '-')} instead, which rules can carry.")
        if name in found:
            raise InputError(f"--set {cut(word)}: {name} is given twice.")
        found[name] = value
    return found


def _setting(word: str, kinds: dict[str, str], algorithm: str) -> tuple[str, Any]:
    name, separator, text = word.partition("=")
    if not separator or name not in kinds:
        near = "." if name in kinds else did_you_mean(name, kinds)
        known = ", ".join(sorted(kinds))
        raise InputError(f"--set {cut(word)}: give NAME=VALUE with a field of {algorithm}: {known}{near}")
    try:
        return name, _value(text, kinds[name])
    except ValueError:
        right = f", which is {kinds[name]}"
        if "tuple" in right:
            right = f": give whole numbers with commas, as in {name}=32,32"
        raise InputError(f"--set {cut(word)}: {shown(text)} does not fit {name}{right}.") from None


def _value(text: str, kind: str) -> Any:  # noqa: ANN401 - any field
    if text == "none" and "None" in kind:
        return None
    if "tuple" in kind:
        return tuple(whole_number(part) for part in _LIST.sub(r"\1", text).split(","))  # a study's file has [32, 32]
    if "int" in kind:
        return whole_number(text)
    return float(text) if "float" in kind else text
