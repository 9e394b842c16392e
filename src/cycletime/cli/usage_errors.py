"""Usage errors in one sentence: what was typed, and what would be right.

The words are checked against the options of the command's dataclass before tyro reads them, since tyro's own errors
have many lines and know neither the nearest command nor what other libraries call an option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tyro.conf import Positional
from tyro.constructors import PrimitiveConstructorSpec

from cycletime.errors import InputError, did_you_mean, shorten
from cycletime.extras import require_extras

_KEYWORD = re.compile(r"\b([a-z_]+)=(?:'([a-z_-]+)'|\.\.\.)")
"""A keyword argument with its value, or with three dots for one that the user has to know."""
_SUBJECT = re.compile(r"^[a-z_]+(?= is )")
"""What a sentence is about."""
_OPTION = re.compile(r"--?[A-Za-z]")
_UNITS = ("ns", "us", "ms", "s", "min", "h", "Hz", "kHz")
_POSITIONAL = get_args(Positional[int])[1]


@dataclass(frozen=True)
class OptionSpec:
    field: str
    name: str
    """As it is typed, '--batch'; of a positional argument the placeholder in the help, 'FILE'."""
    aliases: tuple[str, ...]
    is_positional: bool
    is_required: bool
    count: int | None
    """How many words it takes; None for any number."""
    choices: tuple[str, ...]
    """The words that are allowed; empty if there is no such list."""
    constructor: PrimitiveConstructorSpec[Any] | None
    """What reads its value, where that is ours."""

    def check(self, values: Sequence[str]) -> None:
        """Refuse values that it does not take."""
        for value in values:
            if self.choices and value not in self.choices:
                raise InputError(f"{self.name} is {value!r}: give one of {', '.join(map(repr, self.choices))}.")
        if self.constructor is not None:
            try:
                self.constructor.instance_from_str(list(values))
            except ValueError as error:
                raise InputError(f"{self.name}: {error}") from None


@dataclass(frozen=True)
class CommandSpec:
    name: str
    """As it is typed: cycletime transfer ppo."""
    kind: type | None = None
    """The dataclass of its options."""
    commands: Mapping[str, type | None] = field(default_factory=dict)
    """The commands of a group; None for one that is a word of the group's own dataclass."""

    @cached_property
    def options(self) -> tuple[OptionSpec, ...]:
        return () if self.kind is None else option_specs(self.kind)

    @cached_property
    def by_name(self) -> Mapping[str, OptionSpec]:
        return {name: option for option in self.options for name in (option.name, *option.aliases)}

    @property
    def help_hint(self) -> str:
        return f"'{self.name} --help' shows what it takes."


def option_specs(kind: type) -> tuple[OptionSpec, ...]:
    """The options of a command's dataclass, as tyro reads them."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        _option_spec(each.name, hints[each.name], each.default is MISSING and each.default_factory is MISSING)
        for each in fields(kind)
    )


def find_command(words: Sequence[str], commands: Mapping[str, type]) -> tuple[CommandSpec, list[str]]:
    """The command that words begin with, and the words after it; a misspelt one is refused with the nearest name."""
    command = CommandSpec("cycletime", commands=commands)
    for number, word in enumerate(words):
        if word.startswith("-") or not command.commands:
            return command, list(words[number:])
        if word not in command.commands:
            known = ", ".join(command.commands)
            models = [name for name in (f"{word}.zip",) if Path(name).is_file()]  # Stable-Baselines3 leaves it out
            near = did_you_mean(word, [*models, *command.commands])
            path = f", nor a file or folder {word}" if command.name == "cycletime transfer" else ""
            if command.name == "cycletime" and word in ("paper", "horizons"):  # which were commands
                near = f"; it is 'cycletime experiment VERB {word}'."
            raise InputError(f"There is no command '{command.name} {word}'{path}: give one of {known}{near}")
        kind = command.commands[word]
        if kind is None:  # a word of the group's own dataclass, which has the options too
            return CommandSpec(f"{command.name} {word}", command.kind), list(words[number:])
        inner = get_type_hints(kind, include_extras=True).get("command")
        command = CommandSpec(f"{command.name} {word}", kind, dict(_commands_in(inner)))
    return command, []


def check_words(words: Sequence[str], commands: Mapping[str, type]) -> None:
    command, rest = find_command(words, commands)
    if any(word in ("-h", "--help") for word in rest):
        return
    if command.commands:
        file = ", or a file, before its options" if command.name == "cycletime transfer" else ""
        raise InputError(f"'{command.name}' needs a command first{file}: give one of {', '.join(command.commands)}.")
    with require_extras(command.name):
        _refuse_unknown_options(rest, command)
    given = _assign(rest, command)
    for option in command.options:
        if option.field in given:
            option.check(given[option.field])
    if missing := [option for option in command.options if option.is_required and option.field not in given]:
        names, choices = " and ".join(option.name for option in missing), ", ".join(missing[0].choices)
        hint = f"give one of {choices}." if choices else command.help_hint
        raise InputError(f"{names} {'is' if len(missing) == 1 else 'are'} missing: {hint}")


def with_option_names(sentence: str, command: object) -> str:
    """A sentence with its subject and keyword arguments as options of the command, where one was read."""
    specs = option_specs(type(command)) if is_dataclass(command) else ()
    options = {option.field: option.name for option in specs if not option.is_positional}

    def typed(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name in options:
            return f"{options[name]}{f' {value}' if value else ''}"
        is_set = value and "set" in options and _is_agent_field(name)
        return f"--set {name}={value}" if is_set else found.group()

    sentence = _SUBJECT.sub(lambda found: options.get(found.group(), found.group()), sentence)
    return _KEYWORD.sub(typed, sentence)


def _assign(words: Sequence[str], command: CommandSpec) -> dict[str, list[str]]:
    """By field, the words that it is given; options are known ones."""
    positional = [option for option in command.options if option.is_positional]
    # A list that nobody gives is empty, and those of positional arguments are given by whatever is left.
    given: dict[str, list[str]] = {option.field: [] for option in positional if option.count is None}
    left, only_positional = list(words), False
    while left:
        word = left.pop(0)
        if word == "--" and not only_positional:
            only_positional = True
            continue
        name, separator, value = word.partition("=")
        option = None if only_positional or not _OPTION.match(word) else command.by_name.get(_hyphened(name))
        if option is None:
            if not positional:
                last = words[max(0, len(words) - len(left) - 2)]
                whole = f"{last}{word}" if last[:1].isdigit() and word in _UNITS else ""
                is_setting = separator and "--from-library" in command.by_name
                hint = "a library's words belong after --from-library LIBRARY." if is_setting else command.help_hint
                hint = f"write '{whole}' as one word." if whole else hint
                raise InputError(f"Unexpected argument {shorten(word)!r}: {hint}")
            option, values = positional.pop(0), [word]
        else:
            values = [value] if separator else []
            if separator and option.count == 0:
                raise InputError(f"{option.name} takes no value, and was given {shorten(value)!r}: leave that out.")
        reserved = sum(each.count or 0 for each in positional if each.is_required)
        while option.count is None or len(values) < option.count:
            stops = not left or left[0] == "--" or (_OPTION.match(left[0]) and not only_positional)
            if stops or (option.count is None and len(left) <= reserved):
                break
            values.append(left.pop(0))
        if option.count is not None and len(values) < option.count:
            lacks = "has no value" if not values else f"has {len(values)} of {option.count} values"
            raise InputError(f"{option.name} {lacks}: {command.help_hint}")
        if option.field in given and not option.is_positional:
            more = f": give all its values at once, {option.name} {' '.join([*given[option.field], *values])}."
            raise InputError(f"{option.name} is given twice{more if option.count is None else '; leave one out.'}")
        given[option.field] = values
    return given


def _refuse_unknown_options(words: Sequence[str], command: CommandSpec) -> None:
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == "--":
            return
        name, separator, value = word.partition("=")
        if _OPTION.match(name) and _hyphened(name) not in command.by_name:
            meant = _meant(name, value if separator else following, words, command)
            raise InputError(meant or f"There is no option {shorten(name)}: {command.help_hint}")


def _meant(name: str, value: str, words: Sequence[str], command: CommandSpec) -> str | None:
    # Imported only here, since nobody needs them whose words are understood.
    from cycletime.libraries.synonyms import TRAINING_LENGTHS, find_synonym

    known = command.by_name
    if (word := name.lstrip("-").replace("-", "_")) in TRAINING_LENGTHS:
        if "--env-steps" in known:
            return f"{name} is --env-steps here, which counts steps of the environment, dt / env_dt for each action."
        if "--from-library" in known:
            return f"{name} is one of a library's words: give --from-library LIBRARY {word}={value or '...'}."
    value = "" if _OPTION.match(value) else value
    given = re.search(r" --algorithm[ =](\S+)", " ".join(["", *words]))
    synonym = find_synonym(name.lstrip("-"), given.group(1) if given else command.name.rpartition(" ")[2])
    ours = synonym.ours if synonym else name.lstrip("-").replace("-", "_")
    option = f"--{_hyphened(ours)}"
    if synonym and option in known:
        by_library = f"--from-library {synonym.library} {synonym.name}={value or '...'}"
        return f"{name} is {option} here{f'; or give {by_library}' if '--from-library' in known else ''}."
    if "--set" in known and _is_agent_field(ours):
        return f"{name} is --set {ours}={value or '...'} here."
    near = did_you_mean(name, known, most=2)
    return None if near == "." else f"There is no option {shorten(name)} in '{command.name}'{near}"


def _is_agent_field(name: str) -> bool:
    """Whether a field of an agent has this name, so that --set takes it."""
    from cycletime.training.spec import AGENTS

    return any(each.name == name for agent in AGENTS.values() for each in fields(agent))


def _option_spec(field: str, hint: Any, is_required: bool) -> OptionSpec:  # noqa: ANN401 - any annotation
    metadata = getattr(hint, "__metadata__", ())
    bare = get_args(hint)[0] if metadata else hint

    def configured(key: str) -> Any:  # noqa: ANN401 - whatever tyro.conf.arg takes; the last one counts
        return next((value for part in reversed(metadata) if (value := getattr(part, key, None))), None)

    constructor = next((part for part in metadata if isinstance(part, PrimitiveConstructorSpec)), None)
    is_list = get_origin(bare) is tuple
    count = None if is_list else 0 if bare is bool else 1
    if constructor is not None:
        count = constructor.nargs if isinstance(constructor.nargs, int) else None
    is_positional = _POSITIONAL in metadata
    option = f"--{_hyphened(configured('name') or field)}"
    return OptionSpec(
        field=field,
        name=(configured("metavar") or field.upper()) if is_positional else option,
        aliases=tuple(configured("aliases") or ()),
        is_positional=is_positional,
        is_required=is_required and not is_list,
        count=count,
        choices=get_args(bare) if get_origin(bare) is Literal else (),
        constructor=constructor,
    )


def _hyphened(name: str) -> str:
    return name.replace("_", "-")


def _commands_in(hint: object) -> Iterator[tuple[str, type | None]]:
    """The commands of a group, from the type of its field 'command'; None for one that is a word alone."""
    if get_origin(hint) is Literal:
        yield from dict.fromkeys(get_args(hint)).items()
        return
    named = [name for each in getattr(hint, "__metadata__", ()) if isinstance(name := getattr(each, "name", None), str)]
    parts: tuple[Any, ...] = get_args(hint)
    if named:
        yield named[0], parts[0]
        return
    for part in parts:
        yield from _commands_in(part)
