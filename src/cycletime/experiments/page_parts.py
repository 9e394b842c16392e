"""Pages written by people, with parts that follow from results: between <!-- made: NAME --> and <!-- end -->.

A part may have text before it, <!-- made: NAME; text -->. Of parts whose results are not there, the first of a group
says so, and its others are empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from cycletime.bounded import read_bounded_text
from cycletime.errors import InputError
from cycletime.experiments.outcome import NotRunError

NOT_RUN_TEXT = "What is missing here has not been run yet."
_PART = re.compile(r"(<!-- made: ([\w-]+)(?:; ([^\n]*))? -->\n).*?(<!-- end -->)", re.DOTALL)
_MAX_BYTES = 2**20


class PagePart(NamedTuple):
    group: str
    """Parts of a group follow from the same results."""
    make: Callable[[], str]


def read_page(page: Path) -> str:
    return read_bounded_text(page, _MAX_BYTES, encoding="utf-8")


def fill_parts(text: str, parts: Mapping[str, PagePart]) -> str:
    """A page's text with its parts made anew; NotRunError if there are results for none of them."""
    missing: dict[str, NotRunError] = {}
    filled = 0

    def made(match: re.Match[str]) -> str:
        nonlocal filled
        begin, name, words, end = match.groups()
        if name not in parts:
            raise InputError(f"The page has a part {name!r}: there are {', '.join(parts)}.")
        group, make = parts[name]
        try:
            content = [words, make()]
            filled += 1
        except NotRunError as error:
            content = [] if group in missing else [NOT_RUN_TEXT]
            missing.setdefault(group, error)
        return "\n".join([begin, *(f"{each}\n" for each in content if each), end])

    text = _PART.sub(made, text)
    if missing and not filled:
        raise next(iter(missing.values()))  # what is there must not be lost by looking in the wrong folder
    return text
