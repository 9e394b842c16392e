"""SAC on one GPU: how long an update takes, the paper's sweep of discounts, and whether TF32 learns as float32 does.

    python benchmarks/sac_gpu.py                     # about seven minutes on an H200
    python benchmarks/sac_gpu.py --commit 1a2b3c4    # where the code is not a checkout

Reacher at 16 ms with the paper's values: runs of 500,000 environment steps, 62,500 updates of mini-batches of 256. All
times are of whole runs by the loop that users call: simulation, replay, learning and what goes back to the host, from
the first step to the last. Programs are compiled beforehand. 'Average' is the mean over 100 bins of environment steps
of the mean episodic return, with its standard error over seeds. The exit status tells whether the goals were reached.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.training import sac_operations
from cycletime.agents import SACAgent
from cycletime.tasks import Reacher
from cycletime.training.algorithm_1 import Matmul
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.learning_curve import Episodes

EXPONENTS = (128, 64, 32, 16, 8, 4, 2, 1, 1 / 2, 1 / 4, 1 / 8, 0)
"""The sweep's discounts are .99 to these powers."""
TUNED = 16
"""The exponent of the best discount at 16 ms, .8515."""
OPERATIONS = sac_operations(9, 2, 256)
"""Of one update, floating-point operations in products of matrices."""
MOST_US, MOST_SWEEP_S = 18.0, 290.0
SIZE = 8192


@dataclass(frozen=True)
class Group:
    """Runs side by side in one program."""

    name: str
    matmul: Matmul
    exponents: tuple[float, ...]
    seeds: range
    env_steps: int

    @property
    def runs(self) -> list[tuple[float, int]]:
        """The exponent and the seed of each lane."""
        return [(exponent, seed) for exponent in self.exponents for seed in self.seeds]

    @property
    def lanes(self) -> tuple[list[int], list[SACAgent]]:
        """What the loop takes."""
        return [seed for _, seed in self.runs], [SACAgent(discount=0.99**exponent) for exponent, _ in self.runs]

    @property
    def loop(self) -> CompiledLoop:
        """The program."""
        width = len(self.runs)
        return CompiledLoop(
            task=Reacher(), agent=SACAgent(), dt="16ms", env_steps=self.env_steps, width=width, matmul=self.matmul
        )

    def compile(self) -> None:
        """Go as far as the first updates, so that all programs are there."""
        for chunk in self.loop.run(*self.lanes):
            if chunk.metrics[0]:
                return


@dataclass(frozen=True)
class Outcome:
    """What a group's runs took and reached."""

    group: Group
    seconds: float
    updates: int
    """Of one run."""
    averages: NDArray[np.float64]
    """[exponents, seeds]."""
    last_tenths: NDArray[np.float64]

    @property
    def update_us(self) -> float:
        """Microseconds per update and run."""
        return 1e6 * self.seconds / (self.updates * self.averages.size)

    @property
    def rate(self) -> float:
        """Floating-point operations per second."""
        return OPERATIONS * self.updates * self.averages.size / self.seconds


def train(group: Group) -> Outcome:
    """Time whole runs."""
    seeds, agents = group.lanes
    parts: list[list[Episodes]] = [[] for _ in seeds]
    updates, told, start = 0, 0.0, time.perf_counter()
    for chunk in group.loop.run(seeds, agents):
        updates += len(chunk.metrics[0].get("alpha", ()))
        for run, episodes in zip(parts, chunk.episodes, strict=True):
            run.append(episodes)
        if (now := time.perf_counter() - start) > told + 20:
            told = now
            print(f"  {group.name}: {chunk.env_steps[0]:,} environment steps in {now:.0f} s", file=sys.stderr)
    seconds = time.perf_counter() - start
    bins = np.array([Episodes.joined(run).binned(group.env_steps) for run in parts])
    shape = (len(group.exponents), len(group.seeds))
    return Outcome(group, seconds, updates, bins.mean(1).reshape(shape), bins[:, -10:].mean(1).reshape(shape))


def matrix_rate(precision: str) -> float:
    """Floating-point operations per second of one large product."""
    matrix = jax.random.normal(jax.random.key(0), (SIZE, SIZE))
    product = jax.jit(lambda a: jnp.matmul(a, a, precision=precision))
    times = []
    for _ in range(8):
        start = time.perf_counter()
        product(matrix).block_until_ready()
        times.append(time.perf_counter() - start)
    return 2 * SIZE**3 / min(times)


def mean_and_error(numbers: NDArray[np.float64]) -> str:
    """Over seeds."""
    return f"{numbers.mean():6.2f} +- {numbers.std(ddof=1) / len(numbers) ** 0.5:.2f}"


def first_line(*command: str) -> str:
    """What a program answers, or that it is not there."""
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return (told.stdout.strip().splitlines() or ["unknown"])[0]


def card() -> str:
    """The card's state now."""
    return first_line("nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,power.draw", "--format=csv,noheader")


def report_time(outcome: Outcome, peak: float) -> None:
    """One line of the table of times."""
    name, runs = outcome.group.name, outcome.averages.size
    print(
        f"  {name:26s} {runs:5d} {outcome.seconds:8.1f} {outcome.update_us:20.2f} {outcome.rate / 1e12:8.1f}"
        f" {outcome.rate / peak:7.1%}",
        flush=True,
    )


def report_sweep(sweep: Outcome) -> None:
    """Returns by discount."""
    print(f"\nThe sweep, {len(sweep.group.seeds)} seeds each\n  discount           average         last tenth")
    for exponent, average, last in zip(sweep.group.exponents, sweep.averages, sweep.last_tenths, strict=True):
        print(f"  {0.99**exponent:8.5f} {mean_and_error(average):>17s} {mean_and_error(last):>18s}")


def report_precision(outcomes: Sequence[Outcome], tuned: int) -> None:
    """Returns of TF32 and float32 at the best discount, all seeds together."""
    print(f"\nPrecision, discount {0.99**TUNED:.4f}\n  products   seeds           average         last tenth")
    found: dict[str, NDArray[np.float64]] = {}
    for matmul, label in (("fastest", "TF32"), ("float32", "float32")):
        chosen = [each for each in outcomes if each.group.matmul == matmul]
        rows = [(each, each.group.exponents.index(tuned)) for each in chosen if tuned in each.group.exponents]
        average = np.concatenate([each.averages[row] for each, row in rows])
        last = np.concatenate([each.last_tenths[row] for each, row in rows])
        found[label] = average
        print(f"  {label:8s} {len(average):7d} {mean_and_error(average):>17s} {mean_and_error(last):>18s}")
    error = sum(each.var(ddof=1) / len(each) for each in found.values()) ** 0.5
    difference = found["TF32"].mean() - found["float32"].mean()
    print(f"  difference of the averages {difference:.2f}, its standard error {error:.2f}", flush=True)


def goals_reached(at_thirty: Outcome, sweep: Outcome) -> bool:
    """Print the goals, and whether each was reached."""
    goals = [
        ("microseconds per update and run, 30 seeds", at_thirty.update_us, MOST_US),
        ("seconds of the sweep", sweep.seconds, MOST_SWEEP_S),
    ]
    print("\nGoals")
    for label, value, most in goals:
        print(f"  {label:44s} {value:7.2f}  at most {most:g}   {'PASS' if value <= most else 'MISS'}")
    return all(value <= most for _, value, most in goals)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", default=first_line("git", "describe", "--always", "--dirty"), help="of this code")
    parser.add_argument("--seeds", type=int, default=30, help="of each discount")
    parser.add_argument("--env-steps", type=int, default=500_000, help="of each run")
    parser.add_argument("--most-discounts", type=int, default=len(EXPONENTS), help="for a shorter sweep")
    options: Any = parser.parse_args()
    device = jax.devices()[0]
    print(f"jax {jax.__version__} on {device.device_kind}, commit {options.commit}\nbefore: {card()}", flush=True)

    few = Group("TF32", "fastest", (TUNED,), range(options.seeds, 2 * options.seeds), options.env_steps)
    exact = replace(few, name="float32", matmul="float32", seeds=range(options.seeds))
    # The best discount first, so that a shorter sweep has it too.
    exponents = sorted(EXPONENTS, key=lambda each: each != TUNED)[: options.most_discounts]
    sweep = Group(
        "TF32, the sweep", "fastest", tuple(sorted(exponents, reverse=True)), range(options.seeds), few.env_steps
    )
    start = time.perf_counter()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(Group.compile, (few, exact, sweep)))
    print(f"compiled in {time.perf_counter() - start:.0f} s")
    peak, exact_peak = matrix_rate("high"), matrix_rate("highest")
    print(f"one product of {SIZE} x {SIZE} matrices: TF32 {peak / 1e12:.0f} TFLOP/s, float32 {exact_peak / 1e12:.0f}")

    print(f"\nAn update with its 8 environment steps: {OPERATIONS / 1e6:.0f} MFLOP in products of matrices")
    print(f"  {'':26s} {'runs':>5s} {'seconds':>8s} {'us, update and run':>20s} {'TFLOP/s':>8s} {'of rate':>7s}")
    states: list[str] = []
    outcomes = []
    for group in (few, exact, sweep):
        watch = Timer(5, lambda: states.append(card()))
        watch.start()
        outcomes.append(train(group))
        watch.cancel()
        report_time(outcomes[-1], exact_peak if group is exact else peak)
    print("  while running: " + "; ".join(states))
    report_precision(outcomes, TUNED)
    report_sweep(outcomes[-1])
    return 0 if goals_reached(outcomes[0], outcomes[-1]) else 1


if __name__ == "__main__":
    sys.exit(main())
