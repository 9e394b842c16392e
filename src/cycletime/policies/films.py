"""Films of moments that are a cycle apart: GIFs at the right speed, by Pillow (extra ``film``)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

from cycletime.errors import InputError
from cycletime.extras import require_extras
from cycletime.tasks.render import Frame

_TICK_S, _FEWEST_TICKS = Fraction(1, 100), 2
"""GIF counts in hundredths of a second, and players slow a film down that shows a frame for less than two."""


def check_film(path: Path) -> None:
    if path.suffix.lower() != ".gif":
        raise InputError(f"{str(path)!r} is not a film: give a name that ends in .gif.")
    if not path.parent.is_dir():
        raise InputError(f"{str(path.parent)!r} is not a folder: make it first, or give another place for the film.")
    _import_pillow()


def write_gif(path: Path, moments: Iterable[int], draw: Callable[[], Frame], cycle_s: Fraction) -> None:
    """A film of moments, each the agent steps since its episode's start, which can be drawn until the next one."""
    pillow = _import_pillow()

    def images() -> Iterator[Any]:
        film_s, shown_ticks = Fraction(0), 0
        for frame, cycles in film_shots(moments, draw, ceil(_FEWEST_TICKS * _TICK_S / cycle_s)):
            film_s += cycles * cycle_s
            # From the film's start, so that rounding does not add up.
            ticks = max(_FEWEST_TICKS, round(film_s / _TICK_S) - shown_ticks)
            shown_ticks += ticks
            # Slower than an octree, and keeps faint lines.
            image = pillow.fromarray(frame).quantize(method=pillow.Quantize.MEDIANCUT, dither=pillow.Dither.NONE)
            image.info["duration"] = int(1000 * ticks * _TICK_S)
            yield image

    pictures = images()
    # Pillow takes the rest one by one, so that only the small forms of all pictures are in memory at once.
    next(pictures).save(path, format="GIF", save_all=True, append_images=pictures, loop=0)


def film_shots(moments: Iterable[int], draw: Callable[[], Frame], stride: int) -> Iterator[tuple[Frame, int]]:
    """Every so many-th picture of each episode, and for how many cycles it stands."""
    frame, cycles = None, 0
    for agent_steps in moments:
        if agent_steps % stride == 0:
            if frame is not None:
                yield frame, cycles
            frame, cycles = draw(), 0
        cycles += 1
    if frame is not None:
        yield frame, cycles


def _import_pillow() -> Any:  # noqa: ANN401 - a module of an extra
    with require_extras("A film"):
        importlib.import_module("PIL")
        return importlib.import_module("PIL.Image")
