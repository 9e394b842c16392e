"""What stands below the axes of a figure: the legend, row by row, and the caption."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import wrap

from matplotlib.artist import Artist
from matplotlib.figure import Figure

_CAPTION_SIZE, _LEGEND_SIZE = 7.5, 8.0
"""Of letters, in points."""
_ROW = 0.2
"""The height of a row of the legend, in inches; that of a caption's line follows from its letters."""
_LINE = 1.3 * _CAPTION_SIZE / 72
_SPACE = 0.08
"""Around them, in inches."""
_WIDTH = 0.55
"""Of a letter, as a share of its size."""
_HANDLE = 10
"""The room of a handle and the space beside it, in letters."""


def add_footer(figure: Figure, legend: Iterable[Sequence[Artist]], caption: str) -> None:
    """Make a figure higher, and fill what is new. Layout engines know of no two things below the axes.

    Args:
        figure: Its size is what it should be without a footer.
        legend: Groups of handles; each begins a new row.
        caption: A text of any length.
    """
    width, height = figure.get_size_inches()
    rows = [row for group in legend for row in _rows(group, _letters(width, _LEGEND_SIZE))]
    lines = wrap(caption, _letters(width, _CAPTION_SIZE), break_on_hyphens=False)
    below = len(lines) * _LINE + len(rows) * _ROW + 3 * _SPACE
    whole = height + below
    figure.set_size_inches(width, whole)
    figure.set_layout_engine("constrained", rect=(0, below / whole, 1, height / whole))
    figure.text(0.5, _SPACE / whole, "\n".join(lines), ha="center", va="bottom", fontsize=_CAPTION_SIZE)
    for index, row in enumerate(rows):
        top = below - _SPACE - index * _ROW
        figure.legend(
            handles=row,
            loc="upper center",
            bbox_to_anchor=(0.5, top / whole),
            ncols=len(row),
            frameon=False,
            fontsize=_LEGEND_SIZE,
            handlelength=3,
            borderpad=0,
            borderaxespad=0,
        )


def _letters(width: float, size: float) -> int:
    """How many letters stand beside each other."""
    return int(width * 72 / (_WIDTH * size))


def _rows(group: Sequence[Artist], letters: int) -> list[list[Artist]]:
    """Handles in as few rows as have room for them."""
    rows: list[list[Artist]] = []
    left = 0
    for handle in group:
        needed = _HANDLE + len(re.sub(r"\\[a-z]+|[${}^_,\\]", "", str(handle.get_label())))
        if needed > left:
            rows.append([])
            left = letters
        rows[-1].append(handle)
        left -= needed
    return rows
