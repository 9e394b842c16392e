"""Whether the agents learn the paper's tasks as well as they should, over seeds that were fixed beforehand.

    python benchmarks/learning.py                       # all of it; more than an hour on two cores
    python benchmarks/learning.py ppo-reacher           # one of them

Baseline values at 16 ms. 'Average' is the mean over 100 bins of environment steps of the mean episodic return (the
paper's performance), 'last tenth' that of the last ten bins, each with its standard error over seeds. On a CPU every
seed is a process with one thread; on a GPU the seeds of a case are the lanes of one program. The exit status tells
whether all wanted figures were reached.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from multiprocessing import get_context
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import numpy as np

from cycletime.agents import PPOAgent, SACAgent
from cycletime.tasks import DoublePendulum, Reacher
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.learning_curve import Episodes


@dataclass(frozen=True)
class Case:
    """An agent on a task, and what it should reach."""

    task: Any
    agent: Any
    env_steps: int
    seeds: int
    average: tuple[float, float] | None = None
    """The wanted average and how far from it is allowed; None if it is only recorded."""
    last_tenth: tuple[float, float] | None = None
    """The same for the end of learning."""


CASES = {
    "ppo-reacher": Case(Reacher(), PPOAgent(), 10_000_000, 40, average=(9.2, 0.9), last_tenth=(14.8, 0.9)),
    "ppo-reacher-pytorch": Case(
        Reacher(), PPOAgent(initial_weights="pytorch"), 10_000_000, 40, average=(9.2, 0.9), last_tenth=(14.8, 0.9)
    ),
    "sac-reacher": Case(Reacher(), SACAgent(discount=0.8515), 500_000, 10, average=(11.2, 0.6)),
    "ppo-double-pendulum": Case(DoublePendulum(), PPOAgent(), 10_000_000, 10),
    "sac-double-pendulum": Case(DoublePendulum(), SACAgent(discount=0.9987), 1_000_000, 4),
}


def train(name: str, seeds: list[int]) -> list[tuple[int, float, float, float, float]]:
    """Train the seeds in one program; for each its average, last tenth, plain mean over episodes, and seconds."""
    case = CASES[name]
    loop = CompiledLoop(task=case.task, agent=case.agent, dt="16ms", env_steps=case.env_steps, width=len(seeds))
    start = time.perf_counter()
    parts: list[list[Episodes]] = [[] for _ in seeds]
    for chunk in loop.run(seeds):
        for run, episodes in zip(parts, chunk.episodes, strict=True):
            run.append(episodes)
    took_s, figures = time.perf_counter() - start, []
    for seed, run in zip(seeds, parts, strict=True):
        episodes = Episodes.joined(run)
        bins = episodes.binned(case.env_steps)
        figures.append((seed, bins.mean(), bins[-10:].mean(), episodes.returns.mean(), took_s))
    return figures


def named(agent: Any) -> str:  # noqa: ANN401 - any dataclass
    """The agent, with what differs from its defaults."""
    other = {
        each.name: getattr(agent, each.name) for each in fields(agent) if getattr(agent, each.name) != each.default
    }
    return f"{type(agent).__name__}({', '.join(f'{key}={value}' for key, value in other.items())})"


def report(name: str, figures: list[tuple[int, float, float, float, float]]) -> bool:
    """Print the seeds and their summary; whether it is what was wanted."""
    case, reached = CASES[name], True
    print(f"\n{name}: {named(case.agent)}, 16 ms, {case.env_steps:,} environment steps, {len(figures)} seeds")
    print("  seed  average  last tenth  mean over episodes  seconds")
    for seed, average, last, plain, took_s in figures:
        print(f"  {seed:4d} {average:8.2f} {last:11.2f} {plain:19.2f} {took_s:8.0f}")
    table = np.array(figures)
    for column, label, wanted in ((1, "average", case.average), (2, "last tenth", case.last_tenth), (3, "plain", None)):
        mean, error = table[:, column].mean(), table[:, column].std(ddof=1) / len(table) ** 0.5
        line = f"  {label}: {mean:.2f} +- {error:.2f}"
        if wanted:
            good = abs(mean - wanted[0]) <= wanted[1]
            line += f" (wanted {wanted[0]} within {wanted[1]}: {'reached' if good else 'MISSED'})"
            reached &= good
        print(line, flush=True)
    return reached


def commit() -> str:
    """The code's version, where it can be known."""
    try:
        told = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return told.stdout.strip() or "unknown"


def main() -> int:
    """Run the cases that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; by default all")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="seeds at once on a CPU")
    parser.add_argument("--first-seed", type=int, default=0, help="for other seeds than those fixed beforehand")
    options = parser.parse_args()
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        parser.error(f"{unknown[0]!r} is not a case: give some of {', '.join(CASES)}.")
    device = jax.devices()[0]
    print(f"jax {jax.__version__} on {device.device_kind} ({platform.machine()}), commit {commit()}")
    reached = True
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for name in options.cases or CASES:
            seeds = [options.first_seed + index for index in range(CASES[name].seeds)]
            if device.platform == "gpu":
                figures = train(name, seeds)
            else:
                figures = [each for part in pool.map(train, [name] * len(seeds), [[s] for s in seeds]) for each in part]
            reached &= report(name, figures)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
