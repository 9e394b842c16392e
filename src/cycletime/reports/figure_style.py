"""How Matplotlib figures look and are written: style, axes, legend, caption; the same figure gives the same bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from cycletime.training.atomic_files import write_whole

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "cycletime",  # else ids in the file are random
    "svg.fonttype": "none",  # text stays text
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titley": 1.0,  # else all numbers beside an axis are measured in each drawing, to find out that it is 1
    "grid.alpha": 0.25,
    "figure.dpi": 150,
}
_METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
"""Without the date and the version of the library."""
_BACKENDS = {"pdf": "pdf", "svg": "svg", "png": "agg"}
_COMPRESSION = {"png": {"pil_kwargs": {"compress_level": 3}}}
"""Of PNGs, in two thirds of the time and at most a tenth more bytes."""
FORMATS = tuple(_METADATA)
_LABEL_DISTANCE = 20.0
"""Points from a horizontal axis to its label: a tick and its number, with their distances, of `STYLE`'s letters."""
TITLE_PAD = _LABEL_DISTANCE + 13.0
"""Points from an axis of seconds to a title above it, as its `pad`."""


def label_steps(axes: Axes) -> None:
    _label_axis(axes, "environment steps", -_LABEL_DISTANCE)


def add_seconds_axis(axes: Axes, env_dt_s: float) -> None:
    top = axes.secondary_xaxis("top", functions=(partial(np.multiply, env_dt_s), partial(np.multiply, 1 / env_dt_s)))
    top.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 2.5, 5, 10)))
    top.xaxis.set_major_formatter(lambda x, _: f"{x:,.6g}")
    _label_axis(top, "environment time (s)", _LABEL_DISTANCE)
    top.spines["top"].set_visible(True)


def _label_axis(axes: Any, words: str, away: float) -> None:  # noqa: ANN401 - Matplotlib has no common type of axes
    """Label a horizontal axis at a distance in points: else all its numbers are measured in each drawing for that."""
    below = ScaledTranslation(0, away / 72, axes.get_figure().dpi_scale_trans)
    axes.set_xlabel(words)
    axes.xaxis.set_label_coords(0.5, 0, axes.transAxes + below)


def save_figure(figure: Figure, folder: Path, stem: str, formats: Sequence[str]) -> list[Path]:
    """Write a figure that was drawn with `STYLE`, which must still hold; the files in the order of the formats."""
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
    figure.set_layout_engine("none")  # which is found now, and would be sought again for each format
    for axes in figure.axes:  # of which the layout's last bits change from process to process, and ids with them
        axes.set_position(tuple(np.round(axes.get_position(original=True).bounds, 9)))
    paths = []
    for suffix in formats:
        path = folder / f"{stem}.{suffix}"
        write_whole(path, partial(_write, figure, suffix))
        paths.append(path)
    return paths


def _write(figure: Figure, suffix: str, file: Path) -> None:
    """By the format's own canvas: `Figure.savefig` draws everything twice, the first time for nothing."""
    canvas, dpi = import_module(f"matplotlib.backends.backend_{_BACKENDS[suffix]}").FigureCanvas(figure), figure.dpi
    getattr(canvas, f"print_{suffix}")(file, metadata=_METADATA[suffix], **_COMPRESSION.get(suffix, {}))
    figure.dpi = dpi  # of which SVG and PDF have their own


_CAPTION_SIZE, _LEGEND_SIZE = 7.5, 8.0
"""Of letters, in points."""
_LEGEND_ROW = 0.2
"""The height of a row of the legend, in inches; that of a caption's line follows from its letters."""
_CAPTION_LINE = 1.3 * _CAPTION_SIZE / 72
_MARGIN = 0.08
"""Around them, in inches."""
_LETTER_WIDTH = 0.55
"""Of a letter, as a share of its size."""
_HANDLE_LETTERS = 10
"""The room of a handle and the space beside it, in letters."""


def add_footer(figure: Figure, legend: Iterable[Sequence[Artist]], caption: str) -> None:
    """Make a figure higher, and fill what is new with groups of handles, each in new rows, and a caption.

    Layout engines know of no two things below the axes.
    """
    width, height = figure.get_size_inches()
    rows = [row for group in legend for row in _legend_rows(group, _letters_per_line(width, _LEGEND_SIZE))]
    lines = wrap(caption, _letters_per_line(width, _CAPTION_SIZE), break_on_hyphens=False)
    below = len(lines) * _CAPTION_LINE + len(rows) * _LEGEND_ROW + 3 * _MARGIN
    whole = height + below
    figure.set_size_inches(width, whole)
    figure.set_layout_engine("constrained", rect=(0, below / whole, 1, height / whole))
    figure.text(0.5, _MARGIN / whole, "\n".join(lines), ha="center", va="bottom", fontsize=_CAPTION_SIZE)
    for index, row in enumerate(rows):
        top = below - _MARGIN - index * _LEGEND_ROW
        place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, top / whole), "borderaxespad": 0}
        look: dict[str, Any] = {"frameon": False, "fontsize": _LEGEND_SIZE, "handlelength": 3, "borderpad": 0}
        figure.legend(handles=row, ncols=len(row), **place, **look)


def _letters_per_line(width: float, size: float) -> int:
    return int(width * 72 / (_LETTER_WIDTH * size))


def _legend_rows(group: Sequence[Artist], letters: int) -> list[list[Artist]]:
    """Handles in as few rows as have room for them."""
    rows: list[list[Artist]] = []
    left = 0
    for handle in group:
        needed = _HANDLE_LETTERS + len(re.sub(r"\\[a-z]+|[${}^_,\\]", "", str(handle.get_label())))
        if needed > left:
            rows.append([])
            left = letters
        rows[-1].append(handle)
        left -= needed
    return rows
