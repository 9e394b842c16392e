"""What draws pictures of tasks: colours, a canvas in metres, and a window.

pygame (extra ``render``) is loaded with the first picture. Pictures are drawn off screen and need no display.
"""

from __future__ import annotations

import importlib
import os
import weakref
from collections.abc import Callable
from math import hypot
from time import monotonic, sleep
from types import ModuleType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError
from cycletime.extras import require_extras

Frame: TypeAlias = NDArray[np.uint8]
"""A picture: height x width x (red, green, blue)."""
Point: TypeAlias = tuple[float, float]
Colour: TypeAlias = tuple[int, int, int]

PAPER, FLOOR, GRID = (238, 241, 245), (252, 252, 253), (232, 236, 241)
SLATE, SHADE, INK = (74, 85, 104), (221, 226, 233), (45, 55, 72)
BLUE, SKY, GREEN, RED, AMBER = (43, 98, 160), (76, 144, 205), (24, 165, 120), (226, 74, 72), (240, 160, 48)
WHITE = (255, 255, 255)

_SMOOTHING = 2
"""A picture is drawn so many times larger and then averaged: smooth edges for shapes of any width."""
_FRAME_S = 0.0159
"""Just below 16 ms: a whole number of steps of both tasks, and about one refresh of a screen."""


class Window:
    """Shows frames live, at the pace of the simulated time; whoever closes it only stops watching."""

    # pygame has one display for the whole process. Weak, so that a window that was dropped unclosed gives it up.
    _open: ClassVar[weakref.ref[Window] | None] = None

    def __init__(self, title: str) -> None:
        self._title = title
        self._watched = True
        self._shown_s: float | None = None
        self._wall_start_s = 0.0

    def show(self, draw: Callable[[], Frame], time_s: float) -> None:
        """Show the simulated instant ``time_s``, unless a frame of the same 16 ms was shown already."""
        restarted = self._shown_s is None or time_s < self._shown_s
        if not self._watched or (self._shown_s is not None and not restarted and time_s - self._shown_s < _FRAME_S):
            return
        pygame, screen = import_pygame(), self._display(frame := draw())
        screen.blit(pygame.image.frombuffer(frame.tobytes(), screen.get_size(), "RGB"), (0, 0))
        # The wall clock comes as far as the simulation; after a delay it does not hurry to catch up.
        wait_s = self._wall_start_s + time_s - monotonic()
        if restarted or wait_s < 0:
            self._wall_start_s = monotonic() - time_s
        else:
            sleep(wait_s)
        pygame.display.flip()
        self._shown_s = time_s
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.close()

    def close(self) -> None:
        self._watched = False
        if self._holder() is self:
            Window._open = None
            import_pygame().display.quit()

    @staticmethod
    def _holder() -> Window | None:
        return Window._open() if Window._open else None

    def _display(self, frame: Frame) -> Any:  # noqa: ANN401  # pygame's types are there only with pygame
        pygame, holder = import_pygame(), self._holder()
        if holder is None:
            pygame.display.init()
            pygame.display.set_caption(self._title)
            pygame.display.set_mode((frame.shape[1], frame.shape[0]))
            Window._open = weakref.ref(self)
        elif holder is not self:
            raise InputError("A window is open already in this process: close that environment, or use 'rgb_array'.")
        return pygame.display.get_surface()


class Canvas:
    """A picture in the making, measured in metres with y upwards."""

    def __init__(self, width: int, height: int, pixels_per_m: float, origin: Point) -> None:
        """An empty picture; the origin is in pixels from its upper left corner."""
        self._pygame = import_pygame()
        self._size = (width, height)
        self._scale = pixels_per_m * _SMOOTHING
        self._origin = (origin[0] * _SMOOTHING, origin[1] * _SMOOTHING)
        self._surface = self._pygame.Surface((width * _SMOOTHING, height * _SMOOTHING), 0, 32)
        self._surface.fill(PAPER)

    def _pixel(self, point: Point) -> Point:
        return self._origin[0] + self._scale * point[0], self._origin[1] - self._scale * point[1]

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        self._pygame.draw.circle(self._surface, colour, self._pixel(centre), self._scale * radius)

    def ring(self, centre: Point, radius: float, colour: Colour) -> None:
        """A disc with a white middle, such as a joint."""
        self.disc(centre, radius, colour)
        self.disc(centre, 0.4 * radius, WHITE)

    def bar(self, start: Point, end: Point, radius: float, colour: Colour) -> None:
        length = hypot(end[0] - start[0], end[1] - start[1])
        if length > 0:
            nx, ny = radius * (start[1] - end[1]) / length, radius * (end[0] - start[0]) / length
            outline = [
                (p[0] + side * nx, p[1] + side * ny) for side, p in ((1, start), (1, end), (-1, end), (-1, start))
            ]
            self._pygame.draw.polygon(self._surface, colour, [self._pixel(corner) for corner in outline])
        self.disc(start, radius, colour)
        self.disc(end, radius, colour)

    def box(self, low: Point, high: Point, margin: float, colour: Colour) -> None:
        """A rectangle, enlarged by a margin that is also the radius of its corners."""
        left, top = self._pixel((low[0] - margin, high[1] + margin))
        right, bottom = self._pixel((high[0] + margin, low[1] - margin))
        rectangle = self._pygame.Rect(round(left), round(top), round(right - left), round(bottom - top))
        self._pygame.draw.rect(self._surface, colour, rectangle, border_radius=round(self._scale * margin))

    def picture(self, caption: str) -> Frame:
        small = self._pygame.transform.smoothscale(self._surface, self._size)
        if caption:
            self._pygame.font.init()
            text = self._pygame.font.Font(None, 24).render(caption, True, INK)
            small.blit(text, (42, 42))
        rows = np.frombuffer(self._pygame.image.tobytes(small, "RGB"), np.uint8)
        return rows.reshape(self._size[1], self._size[0], 3).copy()  # what a buffer of bytes gives is read-only


def frame_rate(dt: float) -> int:
    """Frames per second that show steps of ``dt`` seconds in real time: whole, as video writers want, and not 0."""
    return max(1, round(1 / dt))


def import_pygame() -> ModuleType:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # a greeting on standard output, among a program's results
    with require_extras("Drawing"):
        return importlib.import_module("pygame")
