"""How fast the engine cuda is on this card, and whether it learns as the compiled loop does.

    PYTHONPATH=src:. python benchmarks/kernel.py                          # all figures but the last: about 7 minutes
    PYTHONPATH=src:. python benchmarks/kernel.py speed reacher-16ms       # some of them
    PYTHONPATH=src:. python benchmarks/kernel.py --shared-memory 99KB     # the form of the kernel for a smaller card
    PYTHONPATH=src:. python benchmarks/kernel.py forms                    # all forms, side by side: about a minute
    PYTHONPATH=src:. python benchmarks/kernel.py parity                   # whether both engines learn alike
    PYTHONPATH=src:. python benchmarks/kernel.py jax --jax FILE           # JAX's side anew: hours of two cores; goes on
    PYTHONPATH=src:. compute-sanitizer --tool racecheck python benchmarks/kernel.py brief  # or memcheck, synccheck

Needs Python, NumPy, JAX and, but for the part jax, CuPy and a GPU. Compilation is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import ceil
from multiprocessing import get_context
from pathlib import Path

import jax
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.cuda.card import Card
from cycletime.cuda.device import Device
from cycletime.cuda.kernels import FORMS, PPO
from cycletime.cuda.layout import TASKS, timed_task_of
from cycletime.cuda.ppo import PPO_KERNEL, initial_state
from cycletime.cuda.run_batch import CudaRunBatch
from cycletime.duration import cycle_steps
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.engine import Chunk
from cycletime.training.learning_curve import EpisodeBins, Episodes
from cycletime.training.machine import code_version, prepare_jax, processor
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.cuda.device_checks.limits import limited_device
from tests.cuda.device_checks.ppo_checks import full_sizes
from tests.cuda.device_checks.replay import slice_of
from tests.cuda.device_checks.replay import train_runs as train_without_files

PRODUCTS = 27_456
"""Multiply-adds for each sample and epoch, forwards and backwards, of both networks."""
WHOLE = {"reacher-16ms": 8.0, "reacher-4ms": 26.0, "double-pendulum-16ms": 15.0}
"""By setting, the seconds that 132 runs may take."""
GRID_S = 340.0
DTS = ("4ms", "8ms", "16ms", "32ms", "64ms")
BATCHES, MINIBATCHES = (500, 1000, 2000, 4000, 8000), (12, 25, 50, 100, 200)
PARITY = (("reacher", "16ms"), ("reacher", "32ms"), ("double-pendulum", "16ms"), ("double-pendulum", "32ms"))
JAX = Path(__file__).parents[1] / "results/kernel-parity-jax.jsonl"
RUNS, SEEDS, GRID_RUNS, ENV_STEPS = 132, 30, 3750, 10**7
_ENGINE = EngineSpec("cuda", "gpu")
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Trained:
    """What became of many runs."""

    wall_s: float
    scores: Scores
    """[runs, 2] average return over learning, and over its last tenth."""


def spec_of(task: str, dt: str, seed: int, env_steps: int, **agent: int) -> RunSpec:
    """A run with the paper's baseline values."""
    values = PPOAgent(**agent)  # type: ignore[arg-type]
    return RunSpec(world=ClosedFormWorld(task), agent=values, dt=dt, env_steps=env_steps, seed=seed, engine=_ENGINE)


def train(device: Device, specs: Sequence[RunSpec]) -> Trained:
    """Train runs as a study does, without its files."""
    began = time.perf_counter()
    curves = [EpisodeBins.none(spec.env_steps) for spec in specs]
    for told in CudaRunBatch(specs, device).chunks(dict.fromkeys(range(len(specs)))):
        for run, chunk in told.items():
            assert isinstance(chunk, Chunk), chunk
            curves[run] = curves[run].plus(chunk.episodes)
    wall_s = time.perf_counter() - began
    means = np.stack([curve.means() for curve in curves])
    return Trained(wall_s, np.stack([means.mean(axis=1), means[:, -10:].mean(axis=1)], axis=1))


def told(scores: Scores) -> str:
    """Means with their standard errors."""
    means, errors = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    return f"{means[0]:.3f} +- {errors[0]:.3f}, last tenth {means[1]:.3f} +- {errors[1]:.3f}, {len(scores)} seeds"


def verdict(found: float, most: float, *, counts: bool = True) -> str:
    """PASS or FAIL; nothing where less was measured than the limit is for."""
    if not counts:
        return "(smaller than what the limit is for)"
    return f"{'PASS' if found <= most else 'FAIL'} (at most {most:g})"


def operations(spec: RunSpec) -> float:
    """Floating-point operations of a run's learning."""
    agent, k = spec.agent, timed_task_of(spec).cycle_steps
    assert isinstance(agent, PPOAgent), "the kernel has no other"
    return 2.0 * PRODUCTS * agent.epochs * agent.batch * ceil(spec.env_steps / (k * agent.batch))


def speed(device: Device) -> bool:
    """Microseconds of one gradient step and of one agent step, with all multiprocessors busy."""
    by_m = {m: _learning_us(device, m) for m in MINIBATCHES}
    print(f"us per update, m = {' '.join(map(str, by_m))}: {' '.join(f'{each:.2f}' for each in by_m.values())}")
    rate = 2 * PRODUCTS * 50 * device.card.blocks / by_m[50] / 1e6
    print(f"  at m = 50: {rate:.1f} TFLOP/s of learning on the whole card")
    for task in TASKS:
        env_dt = ClosedFormWorld(task).env_dt
        by_k = {cycle_steps(dt, env_dt): _acting_us(device, task, dt) for dt in ("4ms", "16ms", "64ms")}
        each, alone = np.polyfit(list(by_k), list(by_k.values()), 1)
        found = " ".join(f"{step_us:.3f}" for step_us in by_k.values())
        print(f"us per agent step, {task}, k = {' '.join(map(str, by_k))}: {found}, about {alone:.3f} + {each:.3f} k")
    return True


def forms() -> bool:
    """All forms of the kernel: the bits of runs of all kinds, and how long learning and whole runs take."""
    specs, bits = full_sizes().ordered, None
    print(f"by form, reacher: us per update with m = {' '.join(map(str, MINIBATCHES))}, us per agent step with k = 8,")
    print(f"  seconds of {RUNS} runs of {ENV_STEPS:,} environment steps at 16 ms")
    for form in FORMS[PPO]:
        device = Device(PPO_KERNEL, Card(PPO, form))
        found = [each.bits for each in train_without_files(device, specs)]
        bits = bits or found
        by_m = [_learning_us(device, m) for m in MINIBATCHES]
        step_us = _acting_us(device, "reacher", "16ms")
        whole_s = train(device, [spec_of("reacher", "16ms", seed, ENV_STEPS) for seed in range(RUNS)]).wall_s
        differ = sum(one != other for one, other in zip(bits, found, strict=True))
        print(f"{form.shared_bytes:,} bytes, {form.about}")
        print(f"  {' '.join(f'{each:.2f}' for each in by_m)}, {step_us:.3f}, {whole_s:.2f} s")
        print(f"  {differ} of {len(specs)} runs differ from the first form's in a bit", flush=True)
    return True


def _busy(device: Device, task: str, dt: str, minibatch: int) -> list[RunSpec]:
    """A run for each multiprocessor."""
    return [spec_of(task, dt, seed, 10**9, minibatch=minibatch) for seed in range(device.card.blocks)]


def _learning_us(device: Device, minibatch: int) -> float:
    specs = _busy(device, "reacher", "16ms", minibatch)
    return _microseconds(device, specs, counts=(2, 102), vary="epochs", per=3 * ceil(2000 / minibatch))


def _acting_us(device: Device, task: str, dt: str) -> float:
    # With many more periods, the room for records of short episodes is full, and runs are left.
    return _microseconds(device, _busy(device, task, dt, 50), counts=(2, 32), vary="periods", per=2000)


def _microseconds(device: Device, specs: list[RunSpec], *, counts: tuple[int, int], vary: str, per: int) -> float:
    """From the difference between many and few, so that the launch itself does not count; the best of three."""
    walls = []
    for count in counts:
        state = initial_state(specs[0])
        # Simulation alone learns in no epochs; nothing is reported.
        work = slice_of(specs, [state] * len(specs), most_periods=3 if vary == "epochs" else count)
        for run in work.runs:
            run.record["epochs"], run.record["metrics_every"] = count if vary == "epochs" else 0, 10**6
        work = replace(work, most_records=min(work.most_records, 20_000))
        tries = []
        for _ in range(3):
            began = time.perf_counter()
            device.train(work)
            tries.append(time.perf_counter() - began)
        walls.append(min(tries))
    return (walls[1] - walls[0]) / ((counts[1] - counts[0]) * per) * 1e6


def whole(device: Device, name: str, env_steps: int, runs: int) -> bool:
    """Many runs at one setting."""
    task, _, dt = name.rpartition("-")
    specs = [spec_of(task, dt, seed, env_steps) for seed in range(runs)]
    trained = train(device, specs)
    rate = sum(map(operations, specs)) / trained.wall_s / 1e12
    counts = (runs, env_steps) == (RUNS, ENV_STEPS)
    says = verdict(trained.wall_s, WHOLE[name], counts=counts)
    print(f"{name}, {runs} runs: {trained.wall_s:.2f} s {says}, {rate:.1f} TFLOP/s of learning")
    print(f"  average return {told(trained.scores)}")
    return not counts or trained.wall_s <= WHOLE[name]


def brief(device: Device) -> bool:
    """A little of everything that the kernel does, for tools that make it a thousand times slower."""
    specs = [
        spec_of(task, dt, 1, 1200, batch=128, minibatch=minibatch, epochs=2)
        for task, dt in (("reacher", "6ms"), ("double-pendulum", "12ms"))
        for minibatch in (12, 25, 37, 50, 64, 100)
    ]
    specs += [spec_of(task, "500ms", 1, 26_000, batch=128, minibatch=50, epochs=2) for task in TASKS]
    trained = train(device, specs)
    finite = bool(np.isfinite(trained.scores).all())
    print(f"brief: {len(specs)} runs, all of them {'numbers' if finite else 'NOT numbers'}")
    return finite


def grid(device: Device, dts: Sequence[str], env_steps: int, seeds: int) -> bool:
    """The paper's grid of batch and mini-batch sizes, all its runs in one queue."""
    cells = list(product(dts, BATCHES, MINIBATCHES))
    specs = [
        spec_of("reacher", dt, seed, env_steps, batch=batch, minibatch=minibatch)
        for dt, batch, minibatch in cells
        for seed in range(seeds)
    ]
    trained = train(device, specs)
    rate = sum(map(operations, specs)) / trained.wall_s / 1e12
    counts = (len(specs), env_steps) == (GRID_RUNS, ENV_STEPS)
    says = verdict(trained.wall_s, GRID_S, counts=counts)
    print(f"grid, {len(specs):,} runs: {trained.wall_s:.1f} s {says}, {rate:.1f} TFLOP/s of learning")
    scores = trained.scores.reshape(len(cells), seeds, 2)
    for dt in dts:
        best = max((index for index, cell in enumerate(cells) if cell[0] == dt), key=lambda i: scores[i, :, 0].mean())
        print(f"  best at {dt}: b {cells[best][1]}, m {cells[best][2]}, average return {told(scores[best])}")
    return not counts or trained.wall_s <= GRID_S


def parity(device: Device, file: Path, env_steps: int, runs: int) -> bool:
    """Both engines at four settings: means within two standard errors of their difference."""
    theirs, well = read_scores(file, env_steps), True
    for task, dt in PARITY:
        ours = train(device, [spec_of(task, dt, seed, env_steps) for seed in range(runs)]).scores
        other = theirs[task, dt]
        if len(other) < 2:
            print(f"{task}-{dt}: kernel {told(ours)}; {file} has too few seeds of JAX's")
            well = False
            continue
        error = np.sqrt(ours.var(axis=0, ddof=1) / len(ours) + other.var(axis=0, ddof=1) / len(other))
        apart = np.abs(ours.mean(axis=0) - other.mean(axis=0)) / error
        print(f"{task}-{dt}: {apart[0]:.2f} standard errors apart {verdict(apart[0], 2)}; last tenth {apart[1]:.2f}")
        print(f"  kernel {told(ours)}\n  JAX    {told(other)}")
        well &= bool(apart[0] <= 2)
    return well


def read_scores(file: Path, env_steps: int) -> Mapping[tuple[str, str], Scores]:
    """What the part jax wrote."""
    found: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for line in file.read_text().splitlines() if file.exists() else []:
        each = json.loads(line)
        if each["env_steps"] == env_steps:
            found[each["task"], each["dt"]].append([each["average"], each["last_tenth"]])
    return defaultdict(lambda: np.zeros((0, 2)), {key: np.array(scores) for key, scores in found.items()})


def in_jax(task: str, dt: str, seed: int, env_steps: int) -> dict[str, object]:
    """One run in the compiled loop, on a CPU's core of its own."""
    prepare_jax("cpu")
    spec = spec_of(task, dt, seed, env_steps)
    loop = CompiledLoop(task=timed_task_of(spec).task, agent=spec.own_agent, dt=spec.dt, env_steps=env_steps)
    curve = Episodes.joined(chunk.episodes[0] for chunk in loop.run([seed]))
    means = curve.binned(env_steps)
    scores = {"average": float(means.mean()), "last_tenth": float(means[-10:].mean())}
    return {"task": task, "dt": dt, "seed": seed, "env_steps": env_steps, **scores}


def all_in_jax(file: Path, env_steps: int, seeds: int, workers: int) -> None:
    """The JAX side of the parity, a line for each run as soon as it is there; what is there is not run again."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    lines = file.read_text().splitlines() if file.exists() else []
    done = {tuple(json.loads(line)[name] for name in ("task", "dt", "seed", "env_steps")) for line in lines}
    wanted = [(task, dt, seed, env_steps) for seed in range(seeds) for task, dt in PARITY]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool, file.open("a") as out:
        left = [pool.submit(in_jax, *each) for each in wanted if each not in done]
        for number, ended in enumerate(as_completed(left), 1):
            out.write(json.dumps(ended.result()) + "\n")
            out.flush()
            print(f"{number} of {len(left)} runs", flush=True)


def header(device: Device, commit: str) -> Iterator[str]:
    """Whose figures these are."""
    versions = f"python {sys.version.split()[0]}, numpy {np.__version__}, jax {jax.__version__}"
    yield f"cycletime {commit or code_version()}, {processor()}, {versions}"
    yield f"{device.card.name}: " + ", ".join(f"{name} {value}" for name, value in device.card.about.items())
    asked = "driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu"
    command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        yield f"{asked}: {ran.stdout.splitlines()[0]}"
    except (OSError, subprocess.CalledProcessError, IndexError):
        yield "nvidia-smi does not tell the clock"
    yield time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())


def main() -> int:
    """Measure; status 1 if something does not hold."""
    parts = ("speed", *WHOLE, "grid", "forms", "parity", "brief", "jax")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=parts, default=parts[:-4], help="what to measure")
    parser.add_argument("--dts", nargs="+", choices=DTS, default=DTS, help="cycle times of the grid")
    parser.add_argument("--shared-memory", help="what a thread block may take at most, such as 99KB")
    parser.add_argument("--jax", type=Path, default=JAX, help="the file of the part jax")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes of the part jax")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of a grid's cell, and of the part jax")
    parser.add_argument("--env-steps", type=int, default=ENV_STEPS)
    parser.add_argument("--commit", default="", help="for the header, where there is no checkout")
    given = parser.parse_args()
    chosen = [part for part in parts if part in given.parts]
    if "jax" in chosen:
        all_in_jax(given.jax, given.env_steps, given.seeds, given.workers)
        chosen.remove("jax")
    if not chosen:
        return 0
    prepare_jax("cpu")
    device = limited_device(PPO_KERNEL, given.shared_memory)
    for line in header(device, given.commit):
        print(line, flush=True)
    train(device, [spec_of("reacher", "64ms", 1, 1, batch=64, minibatch=64)])  # what is compiled is compiled now
    measures: dict[str, Callable[[], bool]] = {
        "speed": partial(speed, device),
        **{name: partial(whole, device, name, given.env_steps, given.runs) for name in WHOLE},
        "grid": partial(grid, device, given.dts, given.env_steps, given.seeds),
        "forms": forms,
        "parity": partial(parity, device, given.jax, given.env_steps, given.runs),
        "brief": partial(brief, device),
    }
    holds = True
    for part in chosen:
        holds &= measures[part]()
        sys.stdout.flush()
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
