"""Read a Zoo file twice: its values as the Zoo reads them, and where in the text each of them stands.

What a file could fill the memory or the day with (aliases of aliases, endless nesting, huge numbers) is counted while
it is parsed, before anything is built of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

import yaml

from cycletime.errors import InputError
from cycletime.rules.zoo.bounds import refuse_what_is_too_large

Document: TypeAlias = dict[object, object]

MERGE = "<<"


def load(text: str) -> Document:
    """The values, by the loader that the Zoo itself uses; nothing in the text is evaluated.

    Raises:
        InputError: if it is not YAML, or no mapping from environment ids.
    """
    try:
        refuse_what_is_too_large(text)
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(_explain(error, text)) from error
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # PyYAML lets these through for values that contradict their tag, such as '!!float abc'.
        raise InputError(f"The YAML holds a value that its tag does not allow: {error}.") from error
    if document is None:
        raise InputError("The file is empty; expected environment ids with their hyper-parameters.")
    if not isinstance(document, dict):
        raise InputError(f"The file is {document!r:.40}; expected a mapping from environment ids.")
    return document


def _explain(error: yaml.YAMLError, text: str) -> str:
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
class Place:
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
    """Its content if it is a scalar."""
    flow: bool
    """Whether it is a list or mapping in brackets."""
    children: tuple[Place, ...]
    """A list's items; a mapping's keys and values in turn."""

    def pairs(self) -> Iterable[tuple[Place, Place]]:
        """The own keys and values of a mapping, without what it merges."""
        return zip(self.children[::2], self.children[1::2], strict=False)

    def own(self, key: str) -> Place | None:
        """The value that a mapping itself has under a key."""
        return next((value for name, value in self.pairs() if name.scalar == key), None)

    def column_of_keys(self) -> int:
        """How far the keys of a block mapping are indented."""
        return self.children[0].column

    def walk(self) -> Iterator[Place]:
        """This place and all in it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()

    def inherits(self) -> set[str]:
        """The anchors that a mapping takes values from, directly."""
        merged = [value for key, value in self.pairs() if key.scalar == MERGE]
        sources = [self, *merged, *(item for value in merged for item in value.children)]
        return {place.alias for place in sources if place.alias}


def read_places(text: str) -> Place:
    """Where everything stands, from the parser's events: its composed nodes forget where an alias is written."""
    events = yaml.parse(text, Loader=yaml.SafeLoader)
    nodes = (event for event in events if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent))
    return _read_place(text, next(nodes), nodes)


def _read_place(text: str, event: yaml.Event, following: Iterator[yaml.Event]) -> Place:
    first, last = event.start_mark, event.end_mark
    assert first is not None, "the type allows None, the parser always sets it"
    assert last is not None, "the type allows None, the parser always sets it"
    children: list[Place] = []
    end = last.index
    flow = bool(getattr(event, "flow_style", False))
    if isinstance(event, yaml.CollectionStartEvent):
        while not isinstance(child := next(following), yaml.CollectionEndEvent):
            children.append(_read_place(text, child, following))
        end = child.end_mark.index if flow and child.end_mark else children[-1].end
    elif isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">"):
        written = text[first.index : end]
        # The blank lines after a block scalar are its own only under the indicator '+'.
        end = end if "+" in written.partition("\n")[0] else first.index + len(written.rstrip())
    name = event.anchor if isinstance(event, yaml.NodeEvent) else None
    is_alias = isinstance(event, yaml.AliasEvent)
    return Place(
        start=first.index,
        end=end,
        column=first.column,
        anchor=None if is_alias else name,
        alias=name if is_alias else None,
        scalar=event.value if isinstance(event, yaml.ScalarEvent) else None,
        flow=flow,
        children=tuple(children),
    )


def effective_entry(document: Document, root: Place, env_id: str) -> dict[str, object]:
    """One environment's settings with all that it inherits.

    Raises:
        InputError: if it is not in the file, or has no hyper-parameters that are clear.
    """
    if env_id not in document:
        close = get_close_matches(env_id, map(str, document), n=3, cutoff=0.3)
        hint = f"; the closest are {', '.join(close)}" if close else ""
        raise InputError(f"There is no environment {env_id!r} in the file{hint}.")
    entry = document[env_id]
    if not isinstance(entry, dict):
        raise InputError(f"{env_id} is {entry!r}; expected a mapping of hyper-parameters.")
    place = root.own(env_id)
    if place is not None and place.alias:
        place = next(other for other in root.walk() if other.anchor == place.alias)
    twice = [name for name in _repeated(root) if name == env_id] + (_repeated(place) if place else [])
    if twice:
        raise InputError(f"{env_id}: {twice[0]!r} is there twice; keep one, as which counts is an accident.")
    return entry


def _repeated(mapping: Place) -> list[str]:
    times = Counter(key.scalar for key, _ in mapping.pairs() if key.scalar is not None)
    return [key for key, count in times.items() if count > 1]
