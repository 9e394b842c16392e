"""Usage errors in one sentence, with the options as they are typed and the nearest name that there is."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from io import StringIO
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tyro.conf import Positional

from cycletime.errors import InputError, did_you_mean, shorten
from cycletime.extras import require_extras

_KEYWORD = re.compile(r"\b([a-z_]+)=(?:'([a-z_-]+)'|\.\.\.)")
"""With its value, or with three dots for one that the user has to know."""
_SUBJECT = re.compile(r"^[a-z_]+(?= is )")
"""What a sentence is about."""
_POSITIONAL = get_args(Positional[int])[1]


def with_option_names(sentence: str, command: object) -> str:
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
        is_set = value and "set" in options and is_agent_field(name)
        return f"--set {name}={value}" if is_set else found.group()

    sentence = _SUBJECT.sub(lambda found: options.get(found.group(), found.group()), sentence)
    return _KEYWORD.sub(typed, sentence)


def _options_of(command: object) -> dict[str, str]:
    words = option_names(type(command)) if is_dataclass(command) else {}
    return {name: word for name, word in words.items() if word.startswith("--")}


def option_names(kind: type) -> dict[str, str]:
    """By field of a command, what is typed for it: an option, or a word that the help shows by what stands for it."""
    hints = get_type_hints(kind, include_extras=True)
    words = {}
    for each in fields(kind):
        about = getattr(hints[each.name], "__metadata__", ())
        told = {key: value for part in about for key in ("name", "metavar") if (value := getattr(part, key, None))}
        option = f"--{told.get('name', each.name).replace('_', '-')}"
        words[each.name] = told.get("metavar", each.name.upper()) if _POSITIONAL in about else option
    return words


def is_agent_field(name: str) -> bool:
    """Whether a field of an agent has this name, so that --set takes it."""
    from cycletime.training.spec import AGENTS

    return any(each.name == name for agent in AGENTS.values() for each in fields(agent))


_OPTION = re.compile(r"--?[A-Za-z]")
_CHOICE = re.compile(
    r"invalid choice ('.*') for argument [('\"]*(?:\w+\.)*(--[\w-]+|\w+)\W.*Expected one of \((.*?),?\)"
)
_COLOUR = re.compile(r"\033\[[\d;]*m")
_RULE = re.compile(r"^[─-]+$", re.MULTILINE)


@dataclass(frozen=True)
class RequestedCommand:
    """The command that words ask for, as far as they name one."""

    name: str
    """As it is typed: cycletime transfer ppo."""
    kind: type | None = None
    """What tyro reads its options from."""
    commands: Mapping[str, type | None] = field(default_factory=dict)
    """Its own commands, of which the words name none."""

    @property
    def options(self) -> list[str]:
        """Its options, and its positional words by what stands for them in its help."""
        return [] if self.kind is None else list(option_names(self.kind).values())

    @property
    def required(self) -> list[str]:
        """Those of them that must be there."""
        if self.kind is None:
            return []
        needed = (each for each in fields(self.kind) if each.default is MISSING and each.default_factory is MISSING)
        words = option_names(self.kind)
        return [words[each.name] for each in needed]


def find_command(words: Sequence[str], commands: Mapping[str, type]) -> RequestedCommand:
    """The command that words begin with."""
    asked = RequestedCommand("cycletime", commands=commands)
    for word in words:
        if word.startswith("-") or not asked.commands:
            break
        if word not in asked.commands:
            known = list(asked.commands)
            raise InputError(
                f"There is no command '{asked.name} {word}': give one of {', '.join(known)}{did_you_mean(word, known)}"
            )
        kind = asked.commands[word] or asked.kind
        told = None if kind is asked.kind or kind is None else get_type_hints(kind, include_extras=True).get("command")
        asked = RequestedCommand(f"{asked.name} {word}", kind, dict(_commands_in(told)))
    return asked


@contextmanager
def one_sentence_errors(words: Sequence[str], asked: RequestedCommand) -> Iterator[None]:
    """Have what tyro refuses as an error of ours."""
    box = StringIO()
    try:
        with redirect_stderr(box):
            yield
    except SystemExit as leaving:
        if leaving.code != 2:
            raise
        with require_extras(asked.name):
            raise InputError(_sentence(words, asked, _first_part(box.getvalue()))) from None
    sys.stderr.write(box.getvalue())


def _sentence(words: Sequence[str], asked: RequestedCommand, told: str) -> str:
    """What is wrong with the words, of which tyro told so much."""
    more = f"'{asked.name} --help' shows what it takes."
    if asked.commands:
        return f"'{asked.name}' needs a command first: give one of {', '.join(asked.commands)}."
    for word, value in zip(words, [*words[1:], ""], strict=True):
        name, separator, after = word.partition("=")
        if _OPTION.match(name) and name.replace("_", "-") not in (*asked.options, "-h", "--help"):
            meant = _meant(name, after if separator else value, words, asked)
            return meant or f"There is no option {shorten(name)}: {more}"
    if told.startswith("Missing from"):
        missing = [name for name in asked.required if re.search(rf"(?<!\S){re.escape(name)}(?!\S)", told)]
        are = "is" if len(missing) == 1 else "are"
        return f"{' and '.join(missing)} {are} missing: {more}"
    if told.startswith("Missing value") and (option := re.search(r"--[\w-]+", told)):
        return f"{option.group()} has no value: {more}"
    if told.startswith("Unrecognized options: "):
        return f"{told.removeprefix('Unrecognized options: ')!r} is too much: {more}"
    if choice := _CHOICE.match(told):
        given, argument, choices = choice.groups()
        return f"{argument} is {given}: give one of {choices}."
    return told.removeprefix("Error parsing ")


def _meant(name: str, value: str, words: Sequence[str], asked: RequestedCommand) -> str | None:
    """What an unknown option may have been meant to be."""
    from cycletime.libraries.synonyms import find_synonym  # which nobody needs whose words are understood

    value = "" if _OPTION.match(value) else value
    theirs = find_synonym(name.lstrip("-"), _algorithm(words, asked))
    ours = theirs.ours if theirs else name.lstrip("-").replace("-", "_")
    option = f"--{ours.replace('_', '-')}"
    if theirs and option in asked.options:
        by_library = f"--from-library {theirs.library} {theirs.name}={value or '...'}"
        return f"{name} is {option} here{f'; or give {by_library}' if '--from-library' in asked.options else ''}."
    if "--set" in asked.options and is_agent_field(ours):
        return f"{name} is --set {ours}={value or '...'} here."
    near = did_you_mean(name, asked.options, most=2)
    return None if near == "." else f"There is no option {shorten(name)} in '{asked.name}'{near}"


def _algorithm(words: Sequence[str], asked: RequestedCommand) -> str:
    """Whose values the command is about: its own name, or an option."""
    given = re.search(r" --algorithm[ =](\S+)", " ".join(["", *words]))
    return given.group(1) if given else asked.name.rpartition(" ")[2]


def _first_part(box: str) -> str:
    """What stands in a box, up to its first rule, as one line; boxes are drawn with or without letters beyond ASCII."""
    lines = [line.strip(" │╰╯") for line in _COLOUR.sub("", box).splitlines()]
    parts = _RULE.split("\n".join(lines[1:]))  # the first line has the title
    return next((" ".join(part.split()) for part in parts if part.strip()), "")


def _commands_in(told: object) -> Iterator[tuple[str, type | None]]:
    """The commands of a command, from the types that tyro reads; None for one that is a word alone."""
    if get_origin(told) is Literal:
        yield from dict.fromkeys(get_args(told)).items()
        return
    named = [name for each in getattr(told, "__metadata__", ()) if isinstance(name := getattr(each, "name", None), str)]
    parts: tuple[Any, ...] = get_args(told)
    if named:
        yield named[0], parts[0]
        return
    for part in parts:
        yield from _commands_in(part)
