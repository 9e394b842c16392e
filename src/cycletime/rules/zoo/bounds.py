"""How large a Zoo file may be: the Zoo's own have 20 kB and a few thousand values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import yaml

from cycletime.errors import InputError

MOST_BYTES = 256 * 1024
_MOST_VALUES = 10_000
_DEEPEST = 50
_MOST_DIGITS = 60
_NUMBER = re.compile(r"[-+.]?[0-9][0-9a-zA-Z_.:+-]*")


def refuse_what_is_too_large(text: str) -> None:
    """Count what the text would become, with every alias written out, while it is parsed.

    Raises:
        InputError: if that is more than any Zoo file needs.
        yaml.YAMLError: if the text is not YAML.
    """
    if len(text) > MOST_BYTES:
        raise InputError(f"The file has {len(text)} characters: at most {MOST_BYTES} are read.")
    tally = _Tally()
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        where = f"Line {event.start_mark.line + 1}" if event.start_mark else "The file"
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > _MOST_DIGITS and _NUMBER.fullmatch(event.value):
            raise InputError(f"{where} has a number of {len(event.value)} digits: at most {_MOST_DIGITS} are read.")
        tally.add(event)
        if len(tally.around) > _DEEPEST:
            raise InputError(f"{where} is nested {len(tally.around)} levels deep: at most {_DEEPEST} are read.")
        if tally.values > _MOST_VALUES:
            raise InputError(
                f"{where} and what is before it are more than {_MOST_VALUES} values: a Zoo file has fewer."
            )


@dataclass
class _Tally:
    """How many values there are so far, with every alias written out."""

    values: int = 0
    sizes: dict[str | None, int] = field(default_factory=dict)
    """By anchor, the values in what it names."""
    around: list[tuple[str | None, int]] = field(default_factory=list)
    """The collections that are not ended: the anchor of each, and how many values came before it."""

    def add(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in self.around):
                raise InputError(f"The value named &{event.anchor} has *{event.anchor} in itself: it would never end.")
            self.values += self.sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            self.values += 1
            self.sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            self.around.append((event.anchor, self.values))
            self.values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = self.around.pop()
            self.sizes[anchor] = self.values - before
