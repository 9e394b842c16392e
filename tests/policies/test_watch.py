"""Films and the window play at the pace of the real world, and nothing half-written is left."""

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from numpy.typing import NDArray
from PIL import Image

from cycletime.errors import InputError
from cycletime.policies.films import check_film, film_shots, write_gif
from cycletime.policies.watch import Playback, WatchedEpisode, drawing_errors, show_in_window, write_film
from cycletime.tasks import CycleTime, render

ROWS, COLUMNS = 17, 31


class Lamp(gymnasium.Env[Any, Any]):
    """A picture of one grey, brighter with each step; episodes end after so many steps, the odd ones by themselves."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as Gymnasium

    def __init__(self, steps: int = 20) -> None:
        self.observation_space, self.action_space = Box(0, 1000, (1,)), Box(-1.0, 1.0, (1,))
        self.length, self.seeds, self.drawn, self.steps = steps, list[int | None](), list[int](), 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.seeds.append(seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        self.steps += 1
        ended, odd = self.steps == self.length, len(self.seeds) % 2 == 1
        return np.full(1, self.steps, np.float32), float(action[0]), ended and odd, ended and not odd, {}

    def render(self) -> Any:  # noqa: ANN401
        self.drawn.append(self.steps)
        return np.full((ROWS, COLUMNS, 3), 2 * self.steps, np.uint8)


def half(observation: NDArray[Any]) -> NDArray[Any]:
    return np.full(1, 0.5)


def showing(env: gymnasium.Env[Any, Any] | None = None, **others: Any) -> Playback:  # noqa: ANN401
    return Playback(**{"env": env or Lamp(), "act": half, "dt": "40ms", "episodes": 1, **others})


def gif_of(path: Path) -> tuple[list[int], list[int]]:
    """The durations of a GIF's frames in milliseconds, and their greys."""
    durations, greys = [], []
    with Image.open(path) as image:
        for index in range(getattr(image, "n_frames", 1)):
            image.seek(index)
            durations.append(int(image.info["duration"]))
            greys.append(int(np.asarray(image.convert("RGB"))[0, 0, 0]))
    return durations, greys


@pytest.mark.parametrize(
    ("dt", "speed", "stride"),
    [("40ms", 1, 1), ("20ms", 1, 1), ("16ms", 1, 2), ("4ms", 1, 5), ("2ms", 1, 10), ("8ms", 0.25, 1), ("1s", 1, 1)],
)
def test_a_gif_lasts_as_long_as_the_episode(dt: str, speed: float, stride: int, tmp_path: Path) -> None:
    env = Lamp(100)
    shown = showing(env, dt=dt, speed=speed)
    write_film(shown, tmp_path / "film.gif")
    durations, greys = gif_of(tmp_path / "film.gif")
    assert greys == [2 * step for step in range(0, 101, stride)]
    assert env.drawn == list(range(0, 101, stride))  # and nothing is drawn in vain
    assert min(durations) >= 20
    episode_ms = float(1000 * 100 * shown.cycle_s)
    assert episode_ms - 10 <= sum(durations) <= episode_ms + max(durations)
    so_far = np.cumsum(durations)[:-1]
    np.testing.assert_allclose(
        so_far, [1000 * stride * k * float(shown.cycle_s) for k in range(1, len(greys))], atol=5.1
    )


def test_several_episodes_follow_one_another_in_one_film(tmp_path: Path) -> None:
    env, seen = Lamp(), list[WatchedEpisode]()
    write_film(showing(env, episodes=3, seed=7, tell=seen.append), tmp_path / "film.gif")
    durations, greys = gif_of(tmp_path / "film.gif")
    assert greys == 3 * [2 * step for step in range(21)]
    assert sum(durations) == 3 * 21 * 40
    assert env.seeds == [7, 8, 9]
    assert seen == [
        WatchedEpisode(0, 10.0, 20, True),
        WatchedEpisode(1, 10.0, 20, False),
        WatchedEpisode(2, 10.0, 20, True),
    ]


def test_one_picture_is_drawn_for_each_cycle_of_many_steps(tmp_path: Path) -> None:
    env = Lamp(22)
    write_film(showing(CycleTime(env, "40ms", env_dt="10ms")), tmp_path / "film.gif")
    assert env.drawn == [0, 4, 8, 12, 16, 20, 22]
    assert sum(gif_of(tmp_path / "film.gif")[0]) == 7 * 40


@pytest.mark.parametrize("lengths", [[4], [5, 3], [0]])
def test_shots_stand_for_all_cycles(lengths: list[int]) -> None:
    moments = [step for length in lengths for step in range(length + 1)]
    stands_for = [cycles for _, cycles in film_shots(moments, lambda: np.zeros((1, 1, 3), np.uint8), 3)]
    assert stands_for == {4: [3, 2], 5: [3, 3, 3, 1], 0: [1]}[lengths[0]]


@pytest.mark.parametrize("there_already", [True, False])
def test_a_film_that_fails_is_not_left(there_already: bool, tmp_path: Path) -> None:
    name = "film.gif"

    class Broken(Lamp):
        def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            if self.steps == 10:
                raise KeyError("motor")
            return super().step(action)

    if there_already:
        (tmp_path / name).write_bytes(b"before")
    with pytest.raises(KeyError):
        write_film(showing(Broken()), tmp_path / name)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"before")] * there_already


@pytest.mark.parametrize("name", ["film.avi", "film.mp4", "film", "gif"])
def test_other_endings_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{name}' is not a film: give a name that ends in \.gif\.$"):
        check_film(tmp_path / name)


def test_a_missing_folder_and_missing_packages_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"none' is not a folder"):
        check_film(tmp_path / "none" / "film.gif")
    monkeypatch.delitem(sys.modules, "PIL.Image", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(
        InputError, match=r"A film needs Pillow, which is not installed: pip install 'cycletime\[film\]'"
    ):
        check_film(tmp_path / "film.GIF")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"episodes": 0}, "episodes is 0: it must be a whole number of at least 1"),
        ({"seed": -1}, "seed is -1"),
        ({"speed": 0.0}, "speed is 0.0: it must be a positive number"),
        ({"speed": float("nan")}, "speed is nan"),
        ({"speed": float("inf")}, "speed is inf"),
    ],
)
def test_values_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        showing(**wrong)


@pytest.mark.parametrize("picture", [None, [np.zeros((2, 2, 3), np.uint8)], np.zeros((2, 2), np.uint8)])
def test_an_environment_that_draws_no_picture_is_refused(picture: object, tmp_path: Path) -> None:
    class Dark(Lamp):
        def render(self) -> Any:  # noqa: ANN401
            return picture

    with pytest.raises(InputError, match="draws no pictures: make it with render_mode='rgb_array'"):
        write_film(showing(Dark()), tmp_path / "film.gif")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            gymnasium.error.DependencyNotInstalled("no pygame."),
            r"Lamp cannot be drawn: no pygame; .*cycletime\[render\]",
        ),
        (
            KeyError("colour"),
            r"^Lamp cannot be drawn \(KeyError: colour\): its class must take render_mode='rgb_array'",
        ),
        (RuntimeError(), r"Lamp cannot be drawn \(RuntimeError\): its class"),
        (InputError("Its own."), r"^Its own\.$"),
    ],
)
def test_why_it_cannot_be_drawn_is_told_in_a_sentence(error: Exception, message: str) -> None:
    with pytest.raises(InputError, match=message), drawing_errors("Lamp"):
        raise error


def test_an_environment_that_draws_nothing_is_told_in_that_sentence_alone() -> None:
    """Warnings are errors in these tests; Gymnasium warns of render modes that an environment does not have."""

    def make() -> None:
        gymnasium.logger.warn("initialised with render_mode='rgb_array' that is not in the possible render_modes ([])")
        raise TypeError("none")

    says = r"^Lamp cannot be drawn \(TypeError: none\): .* have it in metadata\['render_modes'\]"
    with pytest.raises(InputError, match=says), drawing_errors("Lamp"):
        make()


@pytest.mark.parametrize("module", ["OpenGL.GL.images", "mujoco.egl", "gymnasium.envs.mujoco.mujoco_rendering"])
def test_only_what_mujoco_draws_with_speaks_of_its_setting(module: str) -> None:
    names: dict[str, Any] = {"__name__": module}
    exec("def draw(): raise AttributeError('no glGetError')", names)
    expected = r"^Lamp cannot be drawn \(AttributeError: no glGetError\): .* set MUJOCO_GL to egl or osmesa\.$"
    with pytest.raises(InputError, match=expected), drawing_errors("Lamp"):
        names["draw"]()


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_the_window_keeps_the_pace(speed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0

    def pass_time(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(render, "monotonic", lambda: now_s)
    monkeypatch.setattr(render, "sleep", pass_time)
    seen, env = list[WatchedEpisode](), Lamp(20)
    show_in_window(showing(env, dt="40ms", speed=speed, tell=seen.append), "Lamp")
    assert now_s == pytest.approx(100 + 0.8 / speed, abs=0.02)
    assert env.drawn == list(range(21)) if speed == 1 else len(env.drawn) < 21
    assert len(seen) == 1


def test_without_a_display_there_is_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(InputError, match="There is no display for a window: give a film's name"):
        show_in_window(showing(), "Lamp")


def test_an_episode_of_one_picture_is_a_film(tmp_path: Path) -> None:
    write_gif(tmp_path / "film.gif", [0], lambda: np.full((8, 8, 3), 9, np.uint8), Fraction(1, 25))
    assert gif_of(tmp_path / "film.gif")[1] == [9]
