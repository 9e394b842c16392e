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
FORMATS = tuple(_METADATA)
"""That figures can be written in, each the ending of a file."""


def add_seconds(axes: Axes, env_dt_s: float) -> None:
    """Above an axis of environment steps, one of the environment's time."""
    top = axes.secondary_xaxis("top", functions=(partial(np.multiply, env_dt_s), partial(np.multiply, 1 / env_dt_s)))
    top.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 2.5, 5, 10)))
    top.xaxis.set_major_formatter(lambda x, _: f"{x:,.6g}")
    top.set_xlabel("environment time (s)")
    top.spines["top"].set_visible(True)


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
    getattr(canvas, f"print_{suffix}")(file, metadata=_METADATA[suffix])
    figure.dpi = dpi  # of which SVG and PDF have their own
