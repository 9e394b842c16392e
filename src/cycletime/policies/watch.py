"""Watching a policy: episodes in a window or as a film, at the pace of the real world."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from pathlib import Path
from traceback import walk_tb
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from cycletime.agents.checks import check_counts
from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError, RunError, first_line
from cycletime.extras import install_command
from cycletime.policies.films import check_film, write_gif
from cycletime.tasks.render import Frame, Window
from cycletime.training.atomic_files import write_whole
from cycletime.training.policy_file import SavedPolicy

Act: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]


def act_of(policy: SavedPolicy, seed: int, *, sampled: bool) -> Act:
    """Its mean, or actions that are drawn: not with the environment's numbers, so that episodes begin alike."""
    numpy_policy = policy.in_numpy()  # refuses what is not finite
    noise = np.random.default_rng([seed, 1]) if sampled else None

    def act(observation: NDArray[Any]) -> NDArray[Any]:
        try:
            return numpy_policy.act(observation, noise)
        except ValueError as error:
            raise InputError(f"The policy cannot act: {error}") from error

    return act


@dataclass(frozen=True)
class WatchedEpisode:
    number: int
    total_reward: float
    agent_steps: int
    terminated: bool


@dataclass(frozen=True, kw_only=True)
class Playback:
    env: gymnasium.Env[Any, Any]
    """Made with render_mode='rgb_array'; one step of it is one agent step."""
    act: Act
    dt: DurationLike
    episodes: int = 3
    seed: int = 0
    """The first episode is reset with it, the next with one more."""
    speed: float = 1.0
    tell: Callable[[WatchedEpisode], object] = lambda seen: None

    def __post_init__(self) -> None:
        check_counts(self, "episodes")
        check_counts(self, "seed", least=0)
        if not (isfinite(self.speed) and self.speed > 0):
            raise InputError(f"speed is {self.speed}: it must be a positive number, such as 0.5 for slow motion.")

    @property
    def cycle_s(self) -> Fraction:
        return Duration(self.dt).exact_s / Fraction(self.speed)

    def moments(self) -> Iterator[int]:
        """The agent steps of each episode so far; the moment can be drawn until the next one is asked for."""
        for number in range(self.episodes):
            observation, _ = self.env.reset(seed=self.seed + number)
            total_reward, agent_steps, terminated, truncated = 0.0, 0, False, False
            yield agent_steps
            while not (terminated or truncated):
                observation, reward, terminated, truncated, _ = self.env.step(self.act(observation))
                total_reward, agent_steps = total_reward + float(reward), agent_steps + 1
                yield agent_steps
            self.tell(WatchedEpisode(number, total_reward, agent_steps, bool(terminated)))

    def draw(self) -> Frame:
        with drawing_errors(self.env.spec.id if self.env.spec else str(self.env)):
            picture: Any = self.env.render()
        if not isinstance(picture, np.ndarray) or picture.ndim != 3 or picture.shape[2] != 3:
            raise InputError(f"{self.env} draws no pictures: make it with render_mode='rgb_array'.")
        return picture.astype(np.uint8, copy=False)


def write_film(showing: Playback, path: Path) -> None:
    check_film(path)
    write_whole(path, lambda unfinished: write_gif(unfinished, showing.moments(), showing.draw, showing.cycle_s))


def show_in_window(showing: Playback, title: str) -> None:
    """Show the episodes live and in real time. Whoever closes the window only stops watching."""
    refuse_without_display()
    with closing(Window(title)) as window:
        for agent_steps in showing.moments():
            window.show(showing.draw, float(agent_steps * showing.cycle_s))


def refuse_without_display() -> None:
    """Say so where no window can be opened, since pygame then draws where nobody sees it."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in names):
        raise InputError("There is no display for a window: give a film's name, such as --to film.gif.")


@contextmanager
def drawing_errors(name: str) -> Iterator[None]:
    """Tell in a sentence why an environment cannot be drawn, or not even be made for it."""
    try:
        with warnings.catch_warnings():  # what follows from it is said in a sentence
            warnings.filterwarnings("ignore", ".*not in the possible render_modes", UserWarning)
            yield
    except (InputError, RunError):
        raise
    except DependencyNotInstalled as error:
        raise InputError(f"{name} cannot be drawn: {first_line(error)}; {install_command('render')}.") from error
    except Exception as error:  # whatever a graphics library throws, or an environment of one's own
        modes = "its class must take render_mode='rgb_array' and have it in metadata['render_modes']"
        remedy = f"{modes}, and its render() give a picture then"
        modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
        if any(name.split(".")[0] in ("mujoco", "OpenGL", "glfw") or "mujoco_rendering" in name for name in modules):
            remedy = "without a display MuJoCo needs EGL or OSMesa: install one and set MUJOCO_GL to egl or osmesa"
        kind = f"{type(error).__name__}: " if str(error) else ""
        raise InputError(f"{name} cannot be drawn ({kind}{first_line(error)}): {remedy}.") from error
