"""Films of moments that are a cycle apart: GIF by Pillow, MP4 by ffmpeg (extra ``film``), both at the right speed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from importlib.util import find_spec
from itertools import chain
from math import ceil
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np

from cycletime.errors import InputError
from cycletime.tasks.render import Frame

_TICK_S, _FEWEST_TICKS = Fraction(1, 100), 2
"""GIF counts in hundredths of a second, and players slow a film down that shows a frame for less than two."""
_SHORTEST_FRAME_S, _LONGEST_FRAME_S = Fraction(1, 60), Fraction(1, 10)
"""Of an MP4: screens show no more than 60 a second, and players stumble over very few."""


class CycleStart(NamedTuple):
    """A cycle's beginning, which can be drawn until the next one is asked for."""

    agent_steps: int
    """Since the episode's start."""
    draw: Callable[[], Frame]


FilmWriter: TypeAlias = Callable[[Path, Iterable[CycleStart], Fraction], None]
"""Writes a film of moments that are so many seconds apart."""


def film_writer(path: Path) -> FilmWriter:
    writers: dict[str, tuple[FilmWriter, str]] = {
        ".gif": (write_gif, "PIL.Image"),
        ".mp4": (write_mp4, "imageio_ffmpeg"),
    }
    if path.suffix.lower() not in writers:
        raise InputError(f"{str(path)!r} is not a film: give a name that ends in .gif or .mp4.")
    if not path.parent.is_dir():
        raise InputError(f"{str(path.parent)!r} is not a folder: make it first, or give another place for the film.")
    write, package = writers[path.suffix.lower()]
    _import(package)
    return write


def write_gif(path: Path, moments: Iterable[CycleStart], cycle_s: Fraction) -> None:
    pillow = _import("PIL.Image")

    def images() -> Iterator[Any]:
        film_s, shown_ticks = Fraction(0), 0
        for frame, cycles in film_shots(moments, ceil(_FEWEST_TICKS * _TICK_S / cycle_s)):
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


def write_mp4(path: Path, moments: Iterable[CycleStart], cycle_s: Fraction) -> None:
    stride = ceil(_SHORTEST_FRAME_S / cycle_s)
    repeats = ceil(stride * cycle_s / _LONGEST_FRAME_S)
    pictures = (_in_blocks(frame) for frame, _ in film_shots(moments, stride))
    first = next(pictures)
    with _ffmpeg(path, first.shape[1], first.shape[0], repeats / (stride * cycle_s)) as video:
        for picture in chain([first], pictures):
            for _ in range(repeats):
                video.write(picture.tobytes())


@contextmanager
def _ffmpeg(path: Path, width: int, height: int, frames_per_s: Fraction) -> Iterator[IO[bytes]]:
    """A pipe that takes raw frames. A program of our own call, since imageio-ffmpeg's rounds the rate, and forks."""
    command = [
        *(_import("imageio_ffmpeg").get_ffmpeg_exe(), "-y", "-loglevel", "error"),
        *("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(frames_per_s), "-i", "-"),
        *("-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart", str(path)),
    ]
    with TemporaryFile() as complaints, Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=complaints) as process:
        assert process.stdin is not None, "it was asked for"
        try:
            with suppress(BrokenPipeError):  # it has given up, and its complaint says why
                yield process.stdin
        except BaseException:
            process.kill()
            raise
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
        if process.wait():
            complaints.seek(0)
            raise OSError(f"ffmpeg says {complaints.read().decode(errors='replace').strip()!r}")


def _in_blocks(frame: Frame) -> Frame:
    """H.264 as players expect it has whole blocks of two by two pixels."""
    return np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)), mode="edge")


def film_shots(moments: Iterable[CycleStart], stride: int) -> Iterator[tuple[Frame, int]]:
    """Every so many-th picture of each episode, and for how many cycles it stands."""
    frame, cycles = None, 0
    for moment in moments:
        if moment.agent_steps % stride == 0:
            if frame is not None:
                yield frame, cycles
            frame, cycles = moment.draw(), 0
        cycles += 1
    if frame is not None:
        yield frame, cycles


def _import(package: str) -> Any:  # noqa: ANN401 - a module of an extra
    try:
        return importlib.import_module(package)
    except ImportError:
        # pygame draws most tasks, and who installs Pillow alone would be asked for it next.
        missing = [package.split(".")[0], *(["pygame"] if find_spec("pygame") is None else [])]
        are = "is not installed: pip install 'cycletime[film]'."
        if len(missing) > 1:
            are = "are not installed: pip install 'cycletime[film]' brings both."
        raise InputError(f"{' and '.join(missing)} {are}") from None
