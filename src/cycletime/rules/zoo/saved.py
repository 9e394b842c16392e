"""The ``config.yml`` that the Zoo saves beside a trained agent, as an entry of a Zoo file.

It is a dump of one OrderedDict, with tags that name Python's classes. Those of plain data are read as plain data;
nothing is imported or called, and every other tag is refused where the text is loaded as a Zoo file.
"""

from __future__ import annotations

from typing import Any

import yaml

from cycletime.errors import InputError
from cycletime.rules.zoo.bounds import refuse_what_is_too_large

_PYTHON = "tag:yaml.org,2002:python/"
_ORDERED_DICT = f"{_PYTHON}object/apply:collections.OrderedDict"


class _SavedLoader(yaml.SafeLoader):
    """A safe loader that knows the tags of plain data."""


def as_zoo_file(text: str, env_id: str) -> tuple[str, tuple[str, ...]]:
    """The text, or if it is a saved configuration a Zoo file with that as the environment's entry; and a note then.

    Raises:
        InputError: if a saved configuration asks for code to be executed.
    """
    if not text.lstrip("\ufeff").startswith("!!python/object/apply:collections.OrderedDict"):
        return text, ()
    try:
        refuse_what_is_too_large(text)
        saved = yaml.load(text, Loader=_SavedLoader)
    except yaml.YAMLError as error:
        tag = str(getattr(error, "problem", error)).rpartition(" ")[2]
        raise InputError(f"The saved configuration cannot be read: {tag} is refused, nothing is executed.") from error
    note = f"A saved configuration has no environment's name: it is written as the entry {env_id} of a Zoo file."
    return yaml.safe_dump({env_id: saved}, sort_keys=False, allow_unicode=True), (note,)


def _ordered_dict(loader: yaml.SafeLoader, node: yaml.Node) -> dict[Any, Any]:
    arguments = loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else []
    try:
        return dict(*arguments)
    except (TypeError, ValueError):
        raise InputError("The saved configuration is not a list of names and values.") from None


def _tuple(loader: yaml.SafeLoader, node: yaml.Node) -> list[Any]:
    return loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else []


_SavedLoader.add_constructor(_ORDERED_DICT, _ordered_dict)
_SavedLoader.add_constructor(f"{_PYTHON}tuple", _tuple)
