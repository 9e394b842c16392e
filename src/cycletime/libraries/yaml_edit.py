"""Change a few values in a YAML file, and not one other byte.

Mappings may inherit from each other by anchors and merges: only the one that is meant changes. The result is loaded
again and compared with the old document plus the changes: what cannot be rewritten without damage is refused.
Read and write the file with ``newline=""``, or Python changes its line ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

import yaml

from cycletime.errors import InputError
from cycletime.libraries.plain_yaml import MERGE, Document, KeyPath, YamlSpan, load_yaml, read_spans, repeated_keys


def effective_entry(document: Document, root: YamlSpan, env_id: str) -> dict[str, object]:
    """One environment's settings with all that it inherits by anchors and merges."""
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
    twice = [name for name in repeated_keys(root) if name == env_id] + (repeated_keys(place) if place else [])
    if twice:
        raise InputError(f"{env_id}: {twice[0]!r} is there twice; keep one, as which counts is an accident.")
    return entry


_Rewritten: TypeAlias = tuple[str, tuple[str, ...]]

_LINE_END = re.compile("[\r\n\x85\u2028\u2029]|\\Z")
NO_WRAP = 2**31


def read_entry(text: str, env_id: str) -> dict[str, object]:
    return effective_entry(load_yaml(text), read_spans(text), env_id)


def rewrite_yaml(text: str, changes: Mapping[KeyPath, object]) -> tuple[str, tuple[str, ...]]:
    """The text with these values at these paths and all other bytes unchanged; and notes for the user."""
    document = load_yaml(text)
    new = {path: each if isinstance(each, list | dict) else _plain_number(path, each) for path, each in changes.items()}
    least = [each for path, value in new.items() for each in differences(path, value_at(document, path), value)]
    with suppress(InputError):  # where others share a part of a list, all of it is written
        return _rewrite_yaml(text, dict(least))
    return _rewrite_yaml(text, new)


def _rewrite_yaml(text: str, new: Mapping[KeyPath, object]) -> tuple[str, tuple[str, ...]]:
    document, root = load_yaml(text), read_spans(text)
    olds = {path: value_at(document, path) for path in new}
    wanted = {path: value for path, value in new.items() if isinstance(olds[path], bool) or olds[path] != value}
    if not wanted:  # 8.0 is as good as 8
        return text, ()
    for path, value in wanted.items():
        if isinstance(old := olds[path], list | dict) and not isinstance(value, list | dict):
            raise InputError(f"{_dotted(path)} is {old!r}, but only a single value can become a number.")
    expected = with_values(document, wanted)
    spans = {path: span for path in wanted if (span := span_at(root, path)) and span.is_plain_scalar}
    result = splice(text, [Edit(span.start, span.end, _as_yaml(wanted[path])) for path, span in spans.items()])
    if not _same(load_yaml(result), with_values(document, {path: wanted[path] for path in spans})):
        result, spans = text, {}  # others share some of these values
    shared: dict[KeyPath, dict[str | int, object]] = {}
    for path, value in wanted.items():
        if path not in spans:
            shared.setdefault(path[:-1], {})[path[-1]] = value
    notes: tuple[str, ...] = ()
    for parent, values in shared.items():
        result, more = _rewrite_mapping(result, parent, values)
        notes += more
    if not _same(load_yaml(result), expected):
        raise _unsupported((), {_dotted(path): value for path, value in wanted.items()})
    return result, notes


def differences(path: KeyPath, old: object, new: object) -> Iterator[tuple[KeyPath, object]]:
    """The innermost values that differ, or are not there yet."""
    before, after = (dict(enumerate(each)) if isinstance(each, list) else each for each in (old, new))
    if isinstance(before, dict) and isinstance(after, dict) and before and before.keys() <= after.keys():
        for key, value in after.items():
            yield from differences((*path, key), before.get(key), value)
    elif not _same(old, new):
        yield path, new


def _rewrite_mapping(text: str, parent: KeyPath, values: Mapping[str | int, object]) -> _Rewritten:
    """Set values of one mapping, of which some are not there yet, or are shared with others."""
    document, root = load_yaml(text), read_spans(text)
    expected = with_values(document, {(*parent, key): value for key, value in values.items()})
    written = {str(key): value for key, value in values.items()}
    for rewrite in (_set_and_pin, _set_beside_anchor):
        # A splice that the parser refuses is one more structure that this way of rewriting does not cover.
        with suppress(InputError, RecursionError):
            result = rewrite(text, root, parent, written, expected)
            if result is not None and _same(load_yaml(result[0]), expected):
                return result
    raise _unsupported(parent, written)


def _unsupported(parent: KeyPath, written: Mapping[str, object]) -> InputError:
    where = f"{_dotted(parent)}: the" if parent else "The"
    return InputError(
        f"{where} file's structure around this entry is not supported, so nothing was written; "
        f"set {', '.join(_lines(written))} by hand."
    )


def value_at(document: Any, path: KeyPath) -> Any:  # noqa: ANN401 - whatever stands there
    for key in path:
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and isinstance(key, int) and key < len(document):
            document = document[key]
        else:
            return None
    return document


def _with_value(document: Any, path: KeyPath, value: object) -> Any:  # noqa: ANN401 - a document
    if not path:
        return value
    head, *rest = path
    if isinstance(document, list) and isinstance(head, int):
        inside = document[head] if head < len(document) else {}
        return [*document[:head], _with_value(inside, tuple(rest), value), *document[head + 1 :]]
    inside = document if isinstance(document, dict) else {}
    return {**inside, head: _with_value(inside.get(head, {}), tuple(rest), value)}


def with_values(document: Any, values: Mapping[KeyPath, object]) -> Any:  # noqa: ANN401 - a document
    """The document with other values at some paths; what others share with it stays as it is."""
    for path, value in values.items():
        document = _with_value(document, path, value)
    return document


def span_at(root: YamlSpan, path: KeyPath) -> YamlSpan | None:
    """Where a value stands itself; None where it is inherited or is not there."""
    span: YamlSpan | None = root
    for key in path:
        if span is None or span.alias:
            return None
        span = span.own(key)
    return span


def _dotted(path: KeyPath) -> str:
    return ".".join(map(str, path))


def _plain_number(path: KeyPath, value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(f"{_dotted(path)}: {value!r} is not a finite number; expected an int or a float.")
    # Subclasses such as NumPy's float64 have a repr of their own.
    return int(value) if isinstance(value, int) else float(value)


def _as_yaml(value: object) -> str:
    # In brackets the emitter quotes whatever a flow mapping would misread; a block can read that as well.
    # It writes 1.0e-05: without the dot YAML 1.1 reads a string.
    return yaml.safe_dump([value], default_flow_style=True, width=NO_WRAP, allow_unicode=True).strip()[1:-1]


def _same(left: object, right: object) -> bool:
    """Equality that tells 1 from 1.0 and True, and lets NaN equal itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right or (left != left and right != right)


def _set_and_pin(
    text: str, root: YamlSpan, parent: KeyPath, written: Mapping[str, object], expected: Document
) -> _Rewritten | None:
    """Set the values in the mapping, and pin the old ones in those beside it that inherit from it."""
    edits = _mapping_edits(text, root, parent, written)
    notes = [edit.note for edit in edits if edit.note]
    text = splice(text, edits)
    if not parent:
        return text, tuple(notes)
    around, env_id = parent[:-1], str(parent[-1])
    pinned: dict[str, str] = {}
    while strays := _wrong_entries(value_at(load_yaml(text), around), value_at(expected, around)):
        root = read_spans(text)
        beside = span_at(root, around)
        places = {name: place for name in strays if beside and (place := beside.own(name)) is not None}
        anchors = {place.anchor for place in places.values()}
        # Who inherits from an entry that is still to be pinned may be right once that is done.
        ready = [name for name, place in places.items() if not place.inherits() & anchors]
        hopeless = None in strays.values() or {env_id, *pinned} & {*ready}
        if hopeless or not ready:
            return None
        edits = []
        for name in ready:
            pins = strays[name] or {}
            edits += _mapping_edits(text, root, (*around, name), pins)
            pinned[name] = ", ".join(_lines(pins))
        text = splice(text, edits)
    for pins_text in dict.fromkeys(pinned.values()):
        names = ", ".join(name for name, pins in pinned.items() if pins == pins_text)
        notes.append(f"Pinned {pins_text} in {names}: inherited from {env_id}, it would have changed there.")
    return text, tuple(notes)


def _wrong_entries(document: object, expected: object) -> dict[str, dict[str, object] | None]:
    """The entries that are not as expected, with what to pin in them; None where pinning cannot help."""
    strays: dict[str, dict[str, object] | None] = {}
    if not isinstance(document, dict) or not isinstance(expected, dict):
        return strays
    for name, right in expected.items():
        now = document.get(name)
        if isinstance(now, dict) and isinstance(right, dict) and now.keys() <= right.keys():
            wrong = {key for key in right if key not in now or not _same(now[key], right[key])}
            if wrong:
                strays[str(name)] = {key: right[key] for key in right if key in wrong}
        elif not _same(now, right):
            strays[str(name)] = None
    return strays


def _set_beside_anchor(
    text: str, root: YamlSpan, parent: KeyPath, written: Mapping[str, object], expected: Document
) -> _Rewritten | None:
    """Leave the anchor to the old values, one level down under ``<<: &name``, and set the new ones beside.

    Needed where an entry inherits and lacks a key that is new here: a merge can add keys, not take any away.
    """
    entry, around = span_at(root, parent), span_at(root, parent[:-1])
    if entry is None or around is None or entry.anchor is None or not entry.children:
        return None
    merge = f"{MERGE}: &{entry.anchor}"
    note = f"{_dotted(parent)} keeps its old values under '{merge}' for those who inherit them, new ones beside it."
    if entry.flow:
        old = text[entry.start : entry.end]
        new = f"{{{', '.join([f'{MERGE}: {old}', *_lines(written)])}}}"
        return splice(text, [Edit(entry.start, entry.end, new)]), (note,)
    # Between the columns of the environment's id and of its settings the old lines can stay as they are.
    column = (around.column_of_keys() + entry.column_of_keys()) // 2
    start = text.index(f"&{entry.anchor}", entry.start)
    end = start + 1 + len(entry.anchor)
    edits = _onto_next_line(text, start, end, column, [merge])
    return splice(text, [*edits, _insert_lines(text, entry.end, column, _block_lines(written))]), (note,)


class Edit(NamedTuple):
    start: int
    end: int
    new: str
    note: str = ""


def splice(text: str, edits: Iterable[Edit]) -> str:
    parts, done = [], 0
    for edit in sorted(edits, key=lambda each: each.start):
        parts += [text[done : edit.start], edit.new]
        done = edit.end
    return "".join([*parts, text[done:]])


def _mapping_edits(text: str, root: YamlSpan, parent: KeyPath, written: Mapping[str, object]) -> list[Edit]:
    entry, around = span_at(root, parent), span_at(root, parent[:-1])
    if entry is None or around is None:
        raise InputError(f"{_dotted(parent)} has no entry of its own.")
    if entry.alias:
        merge = f"{MERGE}: *{entry.alias}"
        if around.flow:
            return [Edit(entry.start, entry.end, f"{{{', '.join([merge, *_lines(written)])}}}")]
        siblings = [value.column_of_keys() for _, value in around.pairs() if value.children and not value.flow]
        column = siblings[0] if siblings else around.column_of_keys() + 2
        return _onto_next_line(text, entry.start, entry.end, column, [merge, *_block_lines(written)])
    own = {key: value for key in written if (value := entry.own(key)) is not None}
    edits = [edit for key in own for edit in _value_edits(text, root, entry, written, key)]
    new = {key: value for key, value in written.items() if key not in own}
    lines = _lines(new) if entry.flow else _block_lines(new)
    if not entry.is_mapping:
        lines = [_as_yaml(value) if entry.flow else f"- {_as_yaml(value)}" for value in written.values()]
    if lines and entry.flow:
        at = entry.children[-1].end if entry.children else entry.end - 1
        edits.append(Edit(at, at, ", ".join([""] * bool(entry.children) + lines)))
    elif lines:
        edits.append(_insert_lines(text, entry.end, entry.column_of_keys(), lines))
    return edits


def _value_edits(text: str, root: YamlSpan, entry: YamlSpan, written: Mapping[str, object], key: str) -> list[Edit]:
    old, new = entry.own(key), _as_yaml(written[key])
    assert old is not None, "asked for what the entry has"
    below = [] if entry.flow else _block_lines({key: written[key]})[1:]
    if old.start == old.end and not below:  # nothing is written: 'key:' in a block, 'key' in brackets
        return [Edit(old.end, old.end, f" {new}" if text[old.start - 1] == ":" else f": {new}")]
    own = [entry.own(each) for each in written]
    users = [each for each in root.walk() if old.anchor and each.alias == old.anchor and each not in own]
    note = f"{key} is written out, since it differs now from what it shares as *{old.alias}." if old.alias else ""
    edits = []
    if users:  # who shares it keeps its value
        edits.append(Edit(users[0].start, users[0].end, text[old.start : old.end]))
        note = f"The anchor &{old.anchor} of {key} moved to its next use, so that who shares it keeps its value."
    start = old.start
    if old.children and not old.flow:
        if "#" in text[old.start : old.end] and not users:
            return []  # its comments would be lost
        start, new = len(text[:start].rstrip()), f" {new}"
    elif old.anchor and not users:
        new = f"&{old.anchor} {new}"
    if below:
        replaced, lines = _onto_next_line(text, start, old.end, entry.column_of_keys(), below)
        return [replaced._replace(note=note), lines, *edits]
    return [Edit(start, old.end, new, note), *edits]


def _onto_next_line(text: str, start: int, end: int, column: int, lines: list[str]) -> list[Edit]:
    """Take a part of a line away, with the blanks before it, and put lines below; a comment stays."""
    blanks = start - len(text[:start].rstrip(" \t"))
    return [Edit(start - blanks, end, ""), _insert_lines(text, end, column, lines)]


def _insert_lines(text: str, after: int, column: int, lines: list[str]) -> Edit:
    newline = "\r\n" if "\r\n" in text else "\n"
    indented = [" " * column + line for line in lines]
    if text[after - 1] in "\r\n":  # only after a block scalar that keeps its blank lines
        return Edit(after, after, "".join(line + newline for line in indented))
    line_end = _LINE_END.search(text, after)
    at = line_end.start() if line_end else len(text)
    return Edit(at, at, "".join(newline + line for line in indented))


def _lines(written: Mapping[str, object]) -> list[str]:
    """One for each value, as brackets need it and a block can read it."""
    return [f"{_as_yaml(key)}: {_as_yaml(value)}" for key, value in written.items()]


def _block_lines(written: Mapping[str, object]) -> list[str]:
    """The same for a block, in which what is nested stands below its key."""
    lines: list[str] = []
    for key, value in written.items():
        text = yaml.safe_dump({key: value}, default_flow_style=None, sort_keys=False, width=NO_WRAP, allow_unicode=True)
        lines += text.splitlines() if isinstance(value, list | dict) else _lines({key: value})
    return lines
