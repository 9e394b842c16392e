"""One file of a configuration: YAML, JSON, Stable-Baselines3's zip or flags, as plain data with its places.

Sizes and depths are bounded, nothing is executed, and nothing that was pickled is opened.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from cycletime.bounded import open_regular, read_bounded_text
from cycletime.errors import InputError, quote
from cycletime.libraries import plain_yaml
from cycletime.libraries.parameters import plain_value

_MOST_DATA = 16 * plain_yaml.MOST_BYTES
"""Bytes of a zip's JSON, in which pickled values are long texts."""
_FLAG = re.compile(r"--([A-Za-z][\w.-]*)(?:(?:=|[ \t]+|[ \t]*\\?\r?\n[ \t]*)(?!--)(\"[^\"\n]*\"|'[^'\n]*'|[^\s\\]+))?")
_ROW = re.compile(r"^\|([A-Za-z][\w. -]*)\|([^|\n]*)\|\s*$", re.MULTILINE)
_COMMENT = re.compile(r"(?:^|(?<=\s))#")


@dataclass(frozen=True)
class ConfigFile:
    path: Path
    kind: Literal["yaml", "json", "flags", "zip"]
    text: str
    """As it is, a byte order mark and its line ends included; of a zip the JSON in it."""
    document: plain_yaml.Document

    @cached_property
    def root(self) -> plain_yaml.YamlSpan:
        """Where everything stands in the text of YAML and of JSON, which the same parser can place."""
        return plain_yaml.read_spans(self.text.replace("\t", " ") if self.kind != "yaml" else self.text)

    def line(self, path: plain_yaml.KeyPath) -> int | None:
        """The line of a value, from 1; that of what it is in where the value itself is inherited."""
        if self.kind in ("flags", "zip"):
            places = self.flag_places
            return None if path[:1] not in places else self.text.count("\n", 0, places[path[:1]][0]) + 1
        span = self.nearest_span(path)
        return None if span is self.root else self.text.count("\n", 0, span.start) + 1

    def nearest_span(self, path: plain_yaml.KeyPath) -> plain_yaml.YamlSpan:
        """Where a value stands, or the innermost that it is in."""
        span = self.root
        for key in path:
            if span.alias:
                span = next((other for other in self.root.walk() if other.anchor == span.alias), span)
            if (inner := span.own(key)) is None:
                break
            span = inner
        return span

    @cached_property
    def flag_places(self) -> dict[plain_yaml.KeyPath, tuple[int, int]]:
        """By flag, where its value starts and ends in the text."""
        if self.kind != "flags":
            return {}
        return {(name,): place for name, _, place in _find_flags(self.text)}

    @cached_property
    def comments(self) -> dict[int, str]:
        """By line, from 1, the comment on it, without its '#'."""
        if self.kind != "yaml":
            return {}
        bare = self.text
        for span in self.root.walk():
            if span.scalar is not None and "#" in bare[span.start : span.end]:  # it belongs to the text
                bare = bare[: span.start] + bare[span.start : span.end].replace("#", "_") + bare[span.end :]
        found = ((number, _COMMENT.search(line)) for number, line in enumerate(bare.splitlines(), start=1))
        return {number: comment.string[comment.end() :].lstrip("#").strip() for number, comment in found if comment}


def read_config_file(path: Path) -> ConfigFile:
    """One file, by what is in it: a zip, JSON, YAML, or flags."""
    with suppress(OSError), open_regular(path) as file:  # what cannot be opened is refused below
        if file.read(4) == b"PK\x03\x04":
            return _read_zip(path)
    if path.suffix == ".toml":
        raise InputError(f"{path} is TOML, as no library's configuration is: 'cycletime study plan' tells of a study.")
    if path.suffix == ".py":
        raise InputError(f"{path} is Python, which is not run: give the run's params/; 'cycletime explain' reads it.")
    text = read_bounded_text(path, plain_yaml.MOST_BYTES, encoding="utf-8")
    bare = text.lstrip("\ufeff").lstrip()
    try:
        if bare.startswith("{") and not path.suffix.startswith(".y"):
            return ConfigFile(path, "json", text, _load_json(bare))
        if flags := _flag_document(bare):
            return ConfigFile(path, "flags", text, flags)
        return ConfigFile(path, "yaml", text, plain_yaml.load_yaml(text))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _load_json(text: str) -> plain_yaml.Document:
    deepest = level = 0
    for mark in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', text):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark.group(), 0)
        deepest = max(deepest, level)
    if deepest > plain_yaml.MOST_LEVELS:
        raise InputError(f"It is nested {deepest} levels deep: at most {plain_yaml.MOST_LEVELS} are read.")
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats, parse_int=_bounded_int)
    except json.JSONDecodeError as error:
        raise InputError(f"Line {error.lineno} is not valid JSON: {error.msg}.") from error
    if not isinstance(document, dict):
        raise InputError(f"It is {quote(document)}; expected a mapping of names to values.")
    return document


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(f"{name!r} is there twice; keep one, as which counts is an accident.")
        found[name] = value
    return found


def _bounded_int(text: str) -> int:
    if len(text) > plain_yaml.MOST_DIGITS:
        raise InputError(f"A number of {len(text)} digits is there: at most {plain_yaml.MOST_DIGITS} are read.")
    return int(text)


def _read_zip(path: Path) -> ConfigFile:
    """Stable-Baselines3's `data`: JSON, in which what is pickled is text that nobody opens."""
    try:
        with open_regular(path) as opened, zipfile.ZipFile(opened) as archive:
            entry = next((each for each in archive.infolist() if each.filename == "data"), None)
            if entry is None:
                raise InputError(f"{path} has no 'data' in it, which Stable-Baselines3's model.zip has.")
            if entry.file_size > _MOST_DATA:
                raise InputError(f"{path} has {entry.file_size} bytes of 'data': at most {_MOST_DATA} are read.")
            with archive.open(entry) as data:
                content = data.read(_MOST_DATA + 1)  # what the zip says of the size may be too little
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no zip file that can be read: {error}.") from error
    if len(content) > _MOST_DATA:
        raise InputError(f"{path} has more than {_MOST_DATA} bytes of 'data': at most so many are read.")
    try:
        text = content.decode()
        # What begins with _, such as _total_timesteps, is how far a training came, and no setting.
        settings = {name: value for name, value in _load_json(text).items() if not name.startswith("_")}
        return ConfigFile(path, "zip", text, settings)
    except UnicodeDecodeError:
        raise InputError(f"{path}: 'data' is no text.") from None


def _flag_document(text: str) -> plain_yaml.Document:
    """Flags such as --num-steps 2048, or rows |num_steps|2048| as TensorBoard has them; empty for anything else."""
    found: plain_yaml.Document = {}
    for name, value, _ in _find_flags(text):
        if name in found:
            raise InputError(f"--{name.replace('_', '-')} is there twice; keep one.")
        found[name] = value
    return found


def _find_flags(text: str) -> Iterator[tuple[str, Any, tuple[int, int]]]:
    rows = list(_ROW.finditer(text))
    if rows:
        matches = [row for row in rows if row.group(1) != "param"]
    else:
        matches = list(_FLAG.finditer(text)) if re.search(r"(^|\s)--[A-Za-z]", text) and ": " not in text else []
    for match in matches:
        written = match.group(2)
        value = True if written is None else plain_value(written.strip("\"'"))
        yield match.group(1).strip().replace("-", "_"), value, match.span(2)


def is_pickled(value: object) -> bool:
    """Whether it is what Stable-Baselines3 writes for an object that JSON cannot hold."""
    return isinstance(value, dict) and ":serialized:" in value
