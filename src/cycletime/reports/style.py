"""How figures look, and how they are written: the same figure gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from cycletime.runs.files import write_whole

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which people with any colour vision can tell apart."""
MARKERS = "osD^vPX"
DASHES: tuple[Literal["-", "--", "-.", ":"], ...] = ("-", "--", "-.", ":")
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
"""What draws a format."""
_COMPRESSION = {"png": {"pil_kwargs": {"compress_level": 3}}}
"""Of PNGs, in two thirds of the time and at most a tenth more bytes."""
FORMATS = tuple(_METADATA)
"""That figures can be written in, each the ending of a file."""
_TO_LABEL = 20.0
"""Points from a horizontal axis to its label: a tick and its number, with their distances, of `STYLE`'s letters."""
TO_TITLE = _TO_LABEL + 13.0
"""Points from an axis of seconds to a title above it, as its `pad`."""


def name_steps(axes: Axes) -> None:
    """Below an axis of environment steps, what it is."""
    _name(axes, "environment steps", -_TO_LABEL)


def add_seconds(axes: Axes, env_dt_s: float) -> None:
    """Above an axis of environment steps, one of the environment's time."""
    top = axes.secondary_xaxis("top", functions=(partial(np.multiply, env_dt_s), partial(np.multiply, 1 / env_dt_s)))
    top.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 2.5, 5, 10)))
    top.xaxis.set_major_formatter(lambda x, _: f"{x:,.6g}")
    _name(top, "environment time (s)", _TO_LABEL)
    top.spines["top"].set_visible(True)


def _name(axes: Any, words: str, away: float) -> None:  # noqa: ANN401 - Matplotlib has no common type of axes
    """Label a horizontal axis at a distance in points: else all its numbers are measured in each drawing for that."""
    below = ScaledTranslation(0, away / 72, axes.get_figure().dpi_scale_trans)
    axes.set_xlabel(words)
    axes.xaxis.set_label_coords(0.5, 0, axes.transAxes + below)


def save_figure(figure: Figure, folder: Path, stem: str, formats: Sequence[str]) -> list[Path]:
    """Write a figure that was drawn with `STYLE`, which must still hold; the files in the order of the formats."""
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
    figure.set_layout_engine("none")  # which is found now, and would be sought again for each format
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
