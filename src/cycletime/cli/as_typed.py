"""What the library's sentences speak of, as it is typed: `learner='background'` is an option of the command here."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import get_args, get_type_hints

from tyro.conf import Positional

_KEYWORD = re.compile(r"\b([a-z_]+)=(?:'([a-z_-]+)'|\.\.\.)")
"""With its value, or with three dots for one that the user has to know."""
_SUBJECT = re.compile(r"^[a-z_]+(?= is )")
"""What a sentence is about."""
_POSITIONAL = get_args(Positional[int])[1]


def as_typed(sentence: str, command: object) -> str:
    """A sentence with its subject and keyword arguments as options of the command; those that it does not have stay.

    Args:
        sentence: Of an error.
        command: What was read from the command line; None if that was refused itself.
    """
    options = _options_of(command)

    def typed(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name in options:
            return f"{options[name]}{f' {value}' if value else ''}"
        is_set = value and "set" in options and is_of_an_agent(name)
        return f"--set {name}={value}" if is_set else found.group()

    sentence = _SUBJECT.sub(lambda found: options.get(found.group(), found.group()), sentence)
    return _KEYWORD.sub(typed, sentence)


def _options_of(command: object) -> dict[str, str]:
    words = words_of(type(command)) if is_dataclass(command) else {}
    return {name: word for name, word in words.items() if word.startswith("--")}


def words_of(kind: type) -> dict[str, str]:
    """By field of a command, what is typed for it: an option, or a word that the help shows by what stands for it."""
    hints = get_type_hints(kind, include_extras=True)
    words = {}
    for each in fields(kind):
        about = getattr(hints[each.name], "__metadata__", ())
        told = {key: value for part in about for key in ("name", "metavar") if (value := getattr(part, key, None))}
        option = f"--{told.get('name', each.name).replace('_', '-')}"
        words[each.name] = told.get("metavar", each.name.upper()) if _POSITIONAL in about else option
    return words


def is_of_an_agent(name: str) -> bool:
    """Whether a field of an agent has this name, so that --set takes it."""
    from cycletime.runs.spec import AGENTS

    return any(each.name == name for agent in AGENTS.values() for each in fields(agent))
