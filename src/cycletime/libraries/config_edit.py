"""Files of a configuration with other values in them: as they were wherever nothing changed, whatever their format."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from cycletime.errors import InputError
from cycletime.libraries.config_files import ConfigFile, is_pickled
from cycletime.libraries.plain_yaml import KeyPath, is_saved_ordered_dict
from cycletime.libraries.yaml_edit import NO_WRAP, Edit, differences, rewrite_yaml, span_at, splice, with_values


def rewrite_file(file: ConfigFile, changes: Mapping[KeyPath, object]) -> tuple[str, tuple[str, ...]]:
    """The file's text with these values, and notes for the user; refused where its structure cannot hold them."""
    if file.kind == "yaml":
        return rewrite_yaml(file.text, changes)
    if file.kind == "json":
        return _rewrite_json(file, changes), ()
    if file.kind == "flags":
        return _rewrite_flags(file, changes), ()
    raise InputError(f"{file.path} is a model that was trained, and stays as it is: use --as overrides, yaml or json.")


def changed_document(file: ConfigFile, changes: Mapping[KeyPath, object]) -> Any:  # noqa: ANN401 - a document
    document: Any = file.document
    if file.kind == "zip":
        document = {name: value for name, value in document.items() if not is_pickled(value)}
    return with_values(document, changes)


def as_yaml(document: object) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=NO_WRAP)


def is_editable(file: ConfigFile) -> bool:
    return file.kind != "zip" and not is_saved_ordered_dict(file.text)


def _rewrite_json(file: ConfigFile, changes: Mapping[KeyPath, object]) -> str:
    edits = []
    for path, value in differences((), file.document, changed_document(file, changes)):
        written = json.dumps(value)
        span, around = span_at(file.root, path), span_at(file.root, path[:-1])
        if span is not None:
            edits.append(Edit(span.start, span.end, written))
        elif around is not None and around.children:
            last_key = around.children[-2]
            line = file.text[: last_key.start].rpartition("\n")
            gap = f"\n{line[2]}" if line[1] and not line[2].strip() else " "
            end = around.children[-1].end
            edits.append(Edit(end, end, f",{gap}{json.dumps(str(path[-1]))}: {written}"))
        else:
            raise InputError(f"{file.path}: there is no place for {'.'.join(map(str, path))}: set it to {written}.")
    text = splice(file.text, edits)
    if json.loads(text.lstrip("\ufeff")) != changed_document(file, changes):
        raise InputError(f"{file.path} could not be rewritten unharmed, so nothing was written: use --as overrides.")
    return text


def _rewrite_flags(file: ConfigFile, changes: Mapping[KeyPath, object]) -> str:
    is_table = file.text.lstrip().startswith("|")
    edits, added = [], []
    for path, value in changes.items():
        place = file.flag_places.get(path)
        if place is not None and place[0] >= 0:
            edits.append(Edit(*place, str(value)))
        else:
            added.append(f"|{path[0]}|{value}|" if is_table else f"--{str(path[0]).replace('_', '-')} {value}")
    text = splice(file.text, edits)
    body = re.sub(r"[\s\\]*\Z", "", text)
    return body + ("\n" if is_table else " ").join(["", *added]) + text[len(body) :]
