"""The pictures of tasks, and the window that shows them."""

import gc
import sys
from collections.abc import Iterator
from math import cos, pi, sin
from time import monotonic

import numpy as np
import pygame
import pytest

from cycletime.errors import InputError
from cycletime.tasks import Acrobot, CartPole, DoublePendulum, MountainCar, Pendulum, Reacher, URReacher
from cycletime.tasks.render import Frame, Window
from cycletime.ur5 import flange_at

GREEN, RED, SLATE, AMBER, BLUE = (24, 165, 120), (226, 74, 72), (74, 85, 104), (240, 160, 48), (43, 98, 160)


def draw_reacher(q1: float, q2: float, target: tuple[float, float], caption: str = "") -> Frame:
    return Reacher().picture((q1, q2, 0.0, 0.0, *target), caption)


def draw_double_pendulum(x: float, th: float, ga: float) -> Frame:
    return DoublePendulum().picture((x, th, ga, 0.0, 0.0, 0.0))


@pytest.mark.parametrize(("q1", "q2"), [(0.0, 0.0), (pi / 2, 0.0), (0.5, 1.0), (-2.0, 2.5)])
def test_the_reacher_s_fingertip_is_where_its_angles_put_it(q1: float, q2: float) -> None:
    frame = draw_reacher(q1, q2, (-0.2, -0.2))
    x, y = 0.1 * cos(q1) + 0.11 * cos(q1 + q2), 0.1 * sin(q1) + 0.11 * sin(q1 + q2)
    assert near(centre(frame, GREEN), (240 + 700 * x, 240 - 700 * y))


@pytest.mark.parametrize("target", [(-0.27, 0.27), (0.1, -0.2), (0.27, 0.0)])
def test_the_reacher_s_target_is_where_it_was_put(target: tuple[float, float]) -> None:
    assert near(centre(draw_reacher(0.3, 0.2, target), RED), (240 + 700 * target[0], 240 - 700 * target[1]))


@pytest.mark.parametrize(("x", "th", "ga"), [(0.0, 0.0, 0.0), (-1.0, 0.1, -0.3), (1.0, -0.2, 0.9)])
def test_the_double_pendulum_s_poles_are_where_its_joints_put_them(x: float, th: float, ga: float) -> None:
    frame = draw_double_pendulum(x, th, ga)
    for lower, upper, colour in ((0.2, 0.0, BLUE), (0.5, 0.0, BLUE), (0.6, 0.1, AMBER), (0.6, 0.6, AMBER)):
        px = x + lower * sin(th) + upper * sin(th + ga)
        py = lower * cos(th) + upper * cos(th + ga)
        assert tuple(frame[round(340 - 222 * py), round(320 + 222 * px)]) == colour


def test_the_rail_s_ends_stand_where_the_cart_stops() -> None:
    for x in (-1.0, 1.0):
        touching, away = draw_double_pendulum(x, 0, 0), draw_double_pendulum(0, 0, 0)
        column = round(320 + 222 * (x + 0.16 * x))
        assert tuple(away[340, column]) == tuple(touching[340, column]) == SLATE


@pytest.mark.parametrize("angle", [0.0, 1.0, -2.5])
def test_a_pendulum_s_tip_is_where_its_angle_puts_it(angle: float) -> None:
    tip = centre(Pendulum().picture((angle, 0.0)), AMBER)
    assert near(tip, (240 - 180 * sin(angle), 240 - 180 * cos(angle)))


@pytest.mark.parametrize(("x", "angle"), [(0.0, pi), (1.8, 0.5), (-1.0, -2.0)])
def test_a_cart_pole_s_pole_stands_on_its_cart(x: float, angle: float) -> None:
    frame = CartPole().picture((x, angle, 0.0, 0.0))
    middle = x + 0.5 * sin(angle), 0.5 * cos(angle)
    assert tuple(frame[round(210 - 130 * middle[1]), round(320 + 130 * middle[0])]) == AMBER


@pytest.mark.parametrize("x", [-1.2, -0.5, 0.4])
def test_the_mountain_s_car_stands_on_its_slope(x: float) -> None:
    car = centre(MountainCar().picture((x, 0.0)), BLUE)
    assert near(car, (416 + 320 * x, 400 - 320 * (0.45 * sin(3 * x) + 0.55 + 0.035)))


@pytest.mark.parametrize(("upper", "lower"), [(0.0, 0.0), (1.0, 0.5), (-2.0, 2.5)])
def test_an_acrobot_s_links_are_where_its_joints_put_them(upper: float, lower: float) -> None:
    frame = Acrobot().picture((upper, lower, 0.0, 0.0))
    for first, second, colour in ((0.5, 0.0, BLUE), (1.0, 0.5, AMBER), (1.0, 1.0, AMBER)):
        x = first * sin(upper) + second * sin(upper + lower)
        y = -first * cos(upper) - second * cos(upper + lower)
        assert tuple(frame[round(240 - 95 * y), round(240 + 95 * x)]) == colour


@pytest.mark.parametrize(("shoulder", "elbow"), [(-2.4, 1.5), (-1.0, 0.5)])
def test_a_ur5_s_flange_is_where_its_joints_put_it(shoulder: float, elbow: float) -> None:
    frame = URReacher().picture((shoulder, elbow, 0.3, 0.9, 0.0, 0.0))
    _, y, z = flange_at((shoulder, elbow))
    assert near(centre(frame, GREEN), (280 + 270 * y, 440 - 270 * z))
    assert near(centre(frame, RED), (280 + 270 * 0.3, 440 - 270 * 0.9))


@pytest.mark.parametrize("frame", [draw_reacher(0, 0, (0, 0)), draw_double_pendulum(0, 0, 0)])
def test_a_picture_is_an_array_of_bytes_of_one_s_own(frame: Frame) -> None:
    assert frame.dtype == np.uint8
    assert frame.ndim == 3
    assert frame.shape[2] == 3
    assert frame.flags.c_contiguous
    assert frame.flags.writeable


def test_edges_are_smooth() -> None:
    colours = {tuple(colour) for colour in draw_double_pendulum(0.1, 0.2, 0.3).reshape(-1, 3).tolist()}
    assert len(colours) > 30  # ten without smoothing


def test_equal_joints_give_equal_pictures_and_a_caption_shows() -> None:
    plain, again, told = draw_reacher(1, 1, (0, 0)), draw_reacher(1, 1, (0, 0)), draw_reacher(1, 1, (0, 0), "1.20 s")
    assert np.array_equal(plain, again)
    changed = np.argwhere((plain != told).any(axis=2))
    assert len(changed) > 50
    assert changed.max(axis=0)[0] < 70


def test_joints_far_out_of_the_picture_do_no_harm() -> None:
    assert draw_double_pendulum(50.0, 3.0, -9.0).shape == draw_double_pendulum(0, 0, 0).shape


def test_drawing_needs_no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "none such")
    draw_reacher(0, 0, (0, 0), "caption")
    assert not pygame.display.get_init()


def test_without_pygame_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(InputError, match=r"pip install 'cycletime\[render\]'"):
        draw_reacher(0, 0, (0, 0))


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = Window("a task")
    yield window
    window.close()


def reacher() -> Frame:
    return draw_reacher(1, 1, (0, 0))


def pendulum() -> Frame:
    return draw_double_pendulum(0, 0, 0)


def test_the_window_shows_the_frame(window: Window) -> None:
    window.show(reacher, 0.0)
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    assert np.array_equal(shown, reacher())
    assert pygame.display.get_caption()[0] == "a task"


def test_the_window_draws_once_in_16_ms_of_simulated_time_and_keeps_its_pace(window: Window) -> None:
    start_s = monotonic()
    assert instants_drawn(window, [env_steps * 0.002 for env_steps in range(101)]) == [0.016 * n for n in range(13)]
    assert monotonic() - start_s >= 0.19


def test_the_window_starts_its_clock_anew_with_an_episode(window: Window) -> None:
    assert instants_drawn(window, [100.0, 100.002, 0.0, 0.008, 0.016]) == [100.0, 0.0, 0.016]


def instants_drawn(window: Window, instants: list[float]) -> list[float]:
    drawn = []
    for time_s in instants:

        def draw(now: float = time_s) -> Frame:
            drawn.append(now)
            return reacher()

        window.show(draw, time_s)
    return drawn


def test_who_closes_the_window_stops_watching(window: Window) -> None:
    window.show(reacher, 0.0)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.show(reacher, 0.016)
    assert not pygame.display.get_init()
    window.show(reacher, 0.032)
    assert not pygame.display.get_init()


def test_a_second_window_is_refused_until_the_first_is_closed(window: Window) -> None:
    window.show(reacher, 0.0)
    second = Window("another task")
    with pytest.raises(InputError, match="close that environment, or use 'rgb_array'"):
        second.show(pendulum, 0.0)
    window.close()
    second.show(pendulum, 0.0)
    assert pygame.display.get_surface().get_size() == (640, 440)
    second.close()
    second.close()


def test_a_window_dropped_unclosed_gives_its_place_up(window: Window) -> None:
    dropped = Window("dropped")
    dropped.show(pendulum, 0.0)
    del dropped
    gc.collect()
    window.show(reacher, 0.0)
    assert pygame.display.get_surface().get_size() == (480, 480)


def centre(frame: Frame, colour: tuple[int, int, int]) -> tuple[float, float]:
    rows, columns = np.nonzero((np.abs(frame.astype(int) - colour) < 12).all(axis=2))
    return float((columns.min() + columns.max()) / 2), float((rows.min() + rows.max()) / 2)


def near(seen: tuple[float, float], expected: tuple[float, float], pixels: float = 2.0) -> bool:
    return max(abs(seen[0] - expected[0]), abs(seen[1] - expected[1])) < pixels
