"""YAML as plain data: bounded while it is parsed, nothing constructed, and where in the text each value stands.

Tags that name Python's classes, as Isaac Lab, mjlab and the RL Zoo write them, are read as lists, mappings and text;
nothing is imported or called, and every other tag is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from cycletime.errors import InputError

MOST_BYTES = 1024 * 1024
_MOST_VALUES = 20_000
MOST_LEVELS = 50
MOST_DIGITS = 60
_NUMBER = re.compile(
    r"[-+]?(0x[0-9a-fA-F_]+|0b[01_]+|[0-9][0-9_]*(:[0-9]{1,2})*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9_]+([eE][-+]?[0-9]+)?)"
)


def _check_values(text: str) -> None:
    """Count what the text would become, with every alias written out, before anything is built of it."""
    values = 0
    sizes: dict[str | None, int] = {}  # by anchor, the values in what it names
    around: list[tuple[str | None, int]] = []  # the anchor of each collection not ended, and the values before it
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        where = f"Line {event.start_mark.line + 1}" if event.start_mark else "The file"
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in around):
                raise InputError(f"The value named &{event.anchor} has *{event.anchor} in itself: it would never end.")
            values += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            if len(event.value) > MOST_DIGITS and _NUMBER.fullmatch(event.value):
                raise InputError(f"{where} has a number of {len(event.value)} digits: at most {MOST_DIGITS} are read.")
            values += 1
            sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, values))
            values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = around.pop()
            sizes[anchor] = values - before
        if len(around) > MOST_LEVELS:
            raise InputError(f"{where} is nested {len(around)} levels deep: at most {MOST_LEVELS} are read.")
        if values > _MOST_VALUES:
            raise InputError(f"{where} and what is before it are more than {_MOST_VALUES} values, the most to be read.")


Document: TypeAlias = dict[Any, Any]
KeyPath: TypeAlias = tuple[str | int, ...]
"""The keys and positions that lead to a value in a document."""

MERGE = "<<"
_PYTHON = "tag:yaml.org,2002:python/"
_ORDERED_DICT = f"{_PYTHON}object/apply:collections.OrderedDict"
_PLAIN_CALLS = ("builtins.slice", "pathlib.", "torch.device", "isaaclab", "omni.isaac.", "mjlab.")
"""Beginnings of what a dump calls for values that settings have: ranges, paths, members of the libraries' own enums."""


class _PlainLoader(yaml.SafeLoader):
    """Reads the tags of saved configurations as plain data."""


def _construct_mapping(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> object:
    return loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else suffix


def _construct_list(loader: yaml.SafeLoader, node: yaml.Node) -> list[Any]:
    return loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else []


def _construct_ordered_dict(loader: yaml.SafeLoader, node: yaml.Node) -> dict[Any, Any]:
    try:
        return dict(*_construct_list(loader, node))
    except (TypeError, ValueError):
        raise InputError("The saved configuration is not a list of names and values.") from None


def _construct_call(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> str:
    if not suffix.startswith(_PLAIN_CALLS):
        problem = f"could not determine a constructor for the tag '{_PYTHON}object/apply:{suffix}'"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return f"{suffix}({', '.join(map(repr, _construct_list(loader, node)))})"


for _tag in ("tuple", "list"):
    _PlainLoader.add_constructor(f"{_PYTHON}{_tag}", _construct_list)
_PlainLoader.add_multi_constructor(f"{_PYTHON}dict", _construct_mapping)
_PlainLoader.add_constructor(_ORDERED_DICT, _construct_ordered_dict)
_PlainLoader.add_multi_constructor(f"{_PYTHON}name:", lambda _, suffix, __: suffix)
_PlainLoader.add_multi_constructor(f"{_PYTHON}object:", _construct_mapping)
_PlainLoader.add_multi_constructor(f"{_PYTHON}object/apply:", _construct_call)


def load_yaml(text: str) -> Document:
    """The values of one mapping; nothing in the text is evaluated."""
    if len(text) > MOST_BYTES:
        raise InputError(f"The file has {len(text)} characters: at most {MOST_BYTES} are read.")
    try:
        _check_values(text)
        document = yaml.load(text, Loader=_PlainLoader)
    except yaml.YAMLError as error:
        raise InputError(_explain_yaml_error(error, text)) from error
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # PyYAML lets these through for values that contradict their tag, such as '!!float abc'.
        raise InputError(f"The YAML holds a value that its tag does not allow: {error}.") from error
    if document is None:
        raise InputError("The file is empty; expected names with their values.")
    if not isinstance(document, dict):
        raise InputError(f"The file is {document!r:.40}; expected a mapping of names to values.")
    return document


def is_saved_ordered_dict(text: str) -> bool:
    """Whether it is what the RL Zoo saves beside a trained agent."""
    return text.lstrip("\ufeff").startswith("!!python/object/apply:collections.OrderedDict")


def _explain_yaml_error(error: yaml.YAMLError, text: str) -> str:
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return f"Line {line} is not valid YAML: the character {chr(int(error.character))!r} is not allowed."
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"Line {mark.line + 1}" if mark else "The file"
    problem = str(getattr(error, "problem", None) or error).replace("\n", " ")
    if getattr(error, "context", None) == "expected a single document in the stream":
        return f"{where} starts a second YAML document ('---'); expected one document."
    if problem.startswith("could not determine a constructor"):
        tag = problem.rpartition(" tag ")[2]
        return f"{where} has the tag {tag}, which is refused: only plain YAML is read, nothing executed."
    return f"{where} is not valid YAML: {problem}."


@dataclass(frozen=True)
class YamlSpan:
    """Where one key or value is written in the text."""

    start: int
    """Index of its first character, an anchor or tag included."""
    end: int
    """Index after its last own character; the parser's own mark of a block runs on to the next entry."""
    column: int
    """Its first character's column, from 0."""
    anchor: str | None
    """``name`` in ``&name``, if it has one."""
    alias: str | None
    """``name`` if all that is written here is ``*name``."""
    scalar: str | None
    flow: bool
    """Whether it is a list or mapping in brackets."""
    children: tuple[YamlSpan, ...]
    """A list's items; a mapping's keys and values in turn."""
    is_mapping: bool = False

    @property
    def is_plain_scalar(self) -> bool:
        """Whether it is a value that stands here alone, and that nobody shares."""
        return self.scalar is not None and self.anchor is None and self.start < self.end

    def pairs(self) -> Iterable[tuple[YamlSpan, YamlSpan]]:
        """The own keys and values of a mapping, without what it merges."""
        return () if not self.is_mapping else zip(self.children[::2], self.children[1::2], strict=False)

    def own(self, key: str | int) -> YamlSpan | None:
        if isinstance(key, int):
            return next(iter(self.children[key : key + 1]), None)
        return next((value for name, value in self.pairs() if name.scalar == key), None)

    def column_of_keys(self) -> int:
        return self.children[0].column if self.is_mapping else self.column

    def walk(self) -> Iterator[YamlSpan]:
        """This place and all in it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()

    def inherits(self) -> set[str]:
        """The anchors that a mapping takes values from, directly."""
        merged = [value for key, value in self.pairs() if key.scalar == MERGE]
        sources = [self, *merged, *(item for value in merged for item in value.children)]
        return {place.alias for place in sources if place.alias}


def read_spans(text: str) -> YamlSpan:
    """Where everything stands, from the parser's events: its composed nodes forget where an alias is written."""
    events = yaml.parse(text, Loader=yaml.SafeLoader)
    nodes = (event for event in events if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent))
    return _read_span(text, next(nodes), nodes)


def _read_span(text: str, event: yaml.Event, following: Iterator[yaml.Event]) -> YamlSpan:
    first, last = event.start_mark, event.end_mark
    assert first is not None, "the type allows None, the parser always sets it"
    assert last is not None, "the type allows None, the parser always sets it"
    children: list[YamlSpan] = []
    end = last.index
    flow = bool(getattr(event, "flow_style", False))
    if isinstance(event, yaml.CollectionStartEvent):
        while not isinstance(child := next(following), yaml.CollectionEndEvent):
            children.append(_read_span(text, child, following))
        end = child.end_mark.index if flow and child.end_mark else children[-1].end
    elif isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">"):
        written = text[first.index : end]
        # The blank lines after a block scalar are its own only under the indicator '+'.
        end = end if "+" in written.partition("\n")[0] else first.index + len(written.rstrip())
    name = event.anchor if isinstance(event, yaml.NodeEvent) else None
    is_alias = isinstance(event, yaml.AliasEvent)
    return YamlSpan(
        start=first.index,
        end=end,
        column=first.column,
        anchor=None if is_alias else name,
        alias=name if is_alias else None,
        scalar=event.value if isinstance(event, yaml.ScalarEvent) else None,
        flow=flow,
        children=tuple(children),
        is_mapping=isinstance(event, yaml.MappingStartEvent),
    )


def repeated_keys(mapping: YamlSpan) -> list[str]:
    """The own keys of a mapping that stand in it twice: which counts is an accident."""
    times = Counter(key.scalar for key, _ in mapping.pairs() if key.scalar is not None)
    return [key for key, count in times.items() if count > 1 and key != MERGE]
