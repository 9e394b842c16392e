"""Draws the pictures of the docs that no study makes: python docs/pictures.py [tasks laws noise hold page calculator].

The last two are taken by Chromium: of `quick`, which README's study makes, and of the built site (`mkdocs build`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Any

import gymnasium as gym
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import cycletime.tasks
from cycletime.agents import OrnsteinUhlenbeck, Pink
from cycletime.reports.figure import COLOURS, DASHES
from cycletime.reports.figure_style import STYLE, save_figure
from cycletime.rules import PPO
from cycletime.tasks import ActionDelay, CycleTime

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
DTS_MS = (4, 8, 16, 32, 64)


def tasks() -> None:
    """The six closed-form tasks, each after a second of random pushes."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    for axes, (title, name) in zip(figure.subplots(2, 3).flat, cycletime.tasks.CLOSED_FORMS.items(), strict=True):
        env = gym.make(f"cycletime/{name}-v0", dt="20ms", render_mode="rgb_array")
        env.reset(seed=1)
        env.action_space.seed(1)
        for _ in range(50):
            if env.step(env.action_space.sample())[2]:
                break
        axes.imshow(np.asarray(env.render()))
        axes.set_title(title)
        axes.axis("off")
    save_figure(figure, FIGURES, "tasks", ["png"])


def laws() -> None:
    """What PPO's rules make of the paper's baseline at 16 ms: batch time, and horizons, in seconds."""
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    panels = (
        ("batch", "batch time (s)", (8, 32, 128)),
        ("discount", r"horizon of $\gamma$ (s)", (0.4, 1.6, 6.4)),
        ("trace_decay", r"horizon of $\lambda$ (s)", (0.08, 0.31, 1.25)),
    )
    for axes, (field, label, ticks) in zip(figure.subplots(1, 3), panels, strict=True):
        for rule, colour, dash in zip(("dt-aware", "scaled", "constant", "baseline"), COLOURS, DASHES, strict=False):
            seconds = [PPO(dt="16ms").at(f"{dt}ms", rule=rule).seconds()[field] for dt in DTS_MS]
            axes.plot(DTS_MS, seconds, color=colour, linestyle=dash, label=rule)
        axes.set(xscale="log", yscale="log", xlabel="cycle time (ms)", title=label)
        axes.set_xticks(DTS_MS, map(str, DTS_MS))
        axes.set_yticks(ticks, map(str, ticks))
        axes.minorticks_off()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    save_figure(figure, FIGURES, "laws", ["png"])


def noise() -> None:
    """One second of each exploration noise at 4 and at 16 ms."""
    processes = {
        "white": None,
        "Ornstein-Uhlenbeck": OrnsteinUhlenbeck("100ms"),
        "pink": Pink(),
    }
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    for row, dt_ms in zip(panels, (4, 16), strict=True):
        for axes, (name, process) in zip(row, processes.items(), strict=True):
            steps = 1000 // dt_ms
            axes.step(np.arange(steps) * dt_ms / 1000, _drawn(process, dt_ms, steps), linewidth=0.8)
            axes.set_title(f"{name}, {dt_ms} ms", fontsize=8)
    figure.supxlabel("seconds")
    save_figure(figure, FIGURES, "noise", ["png"])


def _drawn(process: OrnsteinUhlenbeck | Pink | None, dt_ms: int, steps: int) -> list[float]:
    normals = np.random.default_rng(1).standard_normal
    if process is None:
        return list(normals(steps))
    noise = process.at(f"{dt_ms}ms")
    carry, drive, read = np.array(noise.carry), np.array(noise.drive), np.array(noise.read)
    state, drawn = normals(noise.size), []
    for _ in range(steps):
        drawn.append(float(read @ state))
        state = carry * state + drive * normals(noise.size)
    return drawn


def hold() -> None:
    """What a pendulum's motor gets of one sine wave: at three cycle times, and late."""
    figure = Figure(figsize=(7, 2.2), layout="constrained")
    panels = figure.subplots(1, 4, sharey=True)
    times_s = np.arange(0, 1.6, 0.01)
    for axes, (dt_ms, delay_ms) in zip(panels, ((50, 0), (100, 0), (200, 0), (100, 150)), strict=True):
        axes.plot(times_s, _wanted(times_s), color="0.7")
        axes.step(*_applied(dt_ms, delay_ms), where="post")
        axes.set_title(f"{dt_ms} ms" + (f", {delay_ms} ms late" if delay_ms else ""))
    figure.supxlabel("seconds")
    panels[0].set_ylabel("torque")
    save_figure(figure, FIGURES, "hold", ["png"])


def _wanted(time_s: Any) -> Any:  # noqa: ANN401 - a number or an array
    return 2 * np.sin(2 * np.pi * time_s / 1.6)


def _applied(dt_ms: int, delay_ms: int) -> tuple[list[float], list[float]]:
    pendulum = gym.make("Pendulum-v1")
    late = ActionDelay(pendulum, f"{delay_ms}ms") if delay_ms else pendulum
    env = CycleTime(late, dt=f"{dt_ms}ms")
    env.reset(seed=0)
    torques: list[float] = []
    pendulum.unwrapped.step = _recording(pendulum.unwrapped.step, torques)  # type: ignore[method-assign]
    for cycle in range(1600 // dt_ms):
        env.step(np.array([_wanted(cycle * dt_ms / 1000)], np.float32))
    return [0.05 * at for at in range(len(torques))], torques


def _recording(step: Callable[..., Any], torques: list[float]) -> Callable[..., Any]:
    def recorded(action: Any) -> Any:  # noqa: ANN401 - Gymnasium's
        torques.append(float(action[0]))
        return step(action)

    return recorded


def page() -> None:
    """The beginning of the page of README's study, and its figure."""
    report = ROOT / "quick" / "report"
    _photograph(report / "report.html", FIGURES / "page.png", 900)
    copyfile(report / "reacher-ppo-performance.png", FIGURES / "quick.png")


def calculator() -> None:
    """The calculator of the built site."""
    _photograph(ROOT / "site" / "calculator" / "index.html", FIGURES / "calculator.png", 1010)


def _photograph(html: Path, picture: Path, height: int) -> None:
    window = [f"--window-size=1200,{height}", "--hide-scrollbars", "--virtual-time-budget=10000"]
    shot = ["chromium", "--headless", "--no-sandbox", *window, f"--screenshot={picture}", html.resolve().as_uri()]
    subprocess.run(shot, check=True)


PICTURES: dict[str, Callable[[], None]] = {f.__name__: f for f in (tasks, laws, noise, hold, page, calculator)}

if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        for wanted in sys.argv[1:] or PICTURES:
            PICTURES[wanted]()
