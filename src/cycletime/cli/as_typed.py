"""What the library's sentences propose, as it is typed: `learner='background'` is an option of the command here."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass

_KEYWORD = re.compile(r"\b([a-z_]+)=(?:'([a-z_-]+)'|\.\.\.)")
"""With its value, or with three dots for one that the user has to know."""


def as_typed(sentence: str, command: object) -> str:
    """A sentence with its keyword arguments as options of the command; those that it does not have stay as they are.

    Args:
        sentence: Of an error.
        command: What was read from the command line; None if that was refused itself.
    """
    options = _options_of(command)

    def typed(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name in options:
            return f"--{name.replace('_', '-')}{f' {value}' if value else ''}"
        is_set = value and "set" in options and is_of_an_agent(name)
        return f"--set {name}={value}" if is_set else found.group()

    return _KEYWORD.sub(typed, sentence)


def _options_of(command: object) -> set[str]:
    return {each.name for each in fields(command)} if is_dataclass(command) else set()


def is_of_an_agent(name: str) -> bool:
    """Whether a field of an agent has this name, so that --set takes it."""
    from cycletime.runs.spec import AGENTS

    return any(each.name == name for agent in AGENTS.values() for each in fields(agent))
