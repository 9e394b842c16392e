"""How fast training is on one core, as ratios to other libraries measured in the same run, and to what the core can do.

    python benchmarks/training.py --peers PYTHON            # about seven minutes

PYTHON is an interpreter that has the other libraries, which need an older JAX than we do; to make one:

    python -m venv peers
    peers/bin/pip install -r requirements/peers.lock
    peers/bin/pip install --no-deps .

Without it only we are measured. Every party is a process of its own, all on one core and one thread, and they take
turns, so that other load on the machine meets all of them. Numbers are the best of several repetitions, since other
load can only slow them down; the medians stand beside them. Long repetitions cannot dodge that load as short ones do,
so there is a second ratio, of the processes' own CPU seconds: where the two differ, believe that one. The exit status
tells whether our goals were reached.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
ENV_STEPS = 10_000_000
STEPS = {"16ms": 8, "4ms": 2}
"""k, the environment steps of one agent step on Reacher, by the cycle time."""
BATCH, MINIBATCH, EPOCHS = 2000, 50, 10
SAC_MINIBATCH = 256
OURS = ("ppo 16ms", "ppo 4ms", "sac 16ms")
REPETITIONS, SLOW_REPETITIONS, COLD_REPETITIONS = 9, 3, 2
INSTALL = "pip install -r requirements/peers.lock; pip install --no-deps ."


class Worker:
    """A party: a process that waits on the core while others are measured."""

    def __init__(self, name: str, python: str, *arguments: str, cache: str = "") -> None:
        """Start it, and wait until it is ready."""
        self.name, self.times, self.cpu_times = name, dict[str, list[float]](), dict[str, list[float]]()
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the worker
        settings = {
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "JAX_PLATFORMS": "cpu",
            "CYCLETIME_CACHE": cache,
        }
        self._process = subprocess.Popen(
            [python, "-m", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env=os.environ | settings,
        )
        self.facts: dict[str, Any] = self._answer()

    def ask(self, case: str) -> float:
        """One repetition of a case."""
        assert self._process.stdin
        print(case, file=self._process.stdin, flush=True)
        seconds, share = self._answer()
        self.times.setdefault(case, []).append(seconds)
        self.cpu_times.setdefault(case, []).append(seconds * share)
        return float(seconds)

    def best(self, case: str) -> float:
        """The shortest repetition so far."""
        return min(self.times[case])

    def stop(self) -> None:
        """Let it end."""
        if self._process.poll() is None:
            self._process.communicate()
        self._errors.close()

    def _answer(self) -> Any:  # noqa: ANN401
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines()
            raise SystemExit(f"{self.name} could not be measured: {said[-1] if said else 'it said nothing'}")
        return json.loads(line)


def layers(*sizes: int) -> list[int]:
    """The multiply-adds of one sample in each dense layer of a network."""
    return [inputs * outputs for inputs, outputs in pairwise(sizes)]


def ppo_operations(observation: int, action: int, width: int) -> int:
    """The floating-point operations of an iteration's updates: all products of matrices, and nothing else.

    For each sample in each epoch, policy and value each pass forward through all layers, and back: the gradients of all
    weights, and of the inputs of all layers but the first.
    """
    networks = (layers(observation, width, width, action), layers(observation, width, width, 1))
    forward = sum(sum(network) for network in networks)
    to_inputs = sum(sum(network[1:]) for network in networks)
    return 2 * BATCH * EPOCHS * (forward + forward + to_inputs)


def sac_operations(observation: int, action: int, width: int) -> int:
    """The floating-point operations of an update, counted alike."""
    policy, critic = layers(observation, width, width, 2 * action), layers(observation + action, width, width, 1)
    backup = sum(policy) + 2 * sum(critic)
    critics = 2 * (sum(critic) + sum(critic) + sum(critic[1:]))
    # The policy's gradient passes back through both critics to the action, which is a part of their first input.
    through_critics = 2 * (sum(critic) + sum(critic[1:]) + action * width)
    return 2 * SAC_MINIBATCH * (backup + critics + through_critics + sum(policy) + sum(policy) + sum(policy[1:]))


@contextlib.contextmanager
def workers(peers: str | None) -> Iterator[dict[str, Worker]]:
    """All parties, ready; our programs were compiled into an empty cache, and then loaded by another process."""
    parties: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:

        def start(name: str, python: str, module: str, *arguments: str, cache: str = "") -> Worker:
            print(f"  preparing {name}", file=sys.stderr)
            parties[name] = Worker(name, python, f"benchmarks.peers.{module}", *arguments, cache=cache)
            ends.callback(parties[name].stop)
            return parties[name]

        if peers:  # first, so that what is missing there shows at once
            start("rejax", peers, "with_rejax")
            start("sbx", peers, "with_sb3", "sbx")
            start("sb3", peers, "with_sb3", "sb3")
        for name in OURS:
            cold_s, cold_cpu_s, longest_s, memory, cache = [], [], [], [], ""
            for number in range(COLD_REPETITIONS):
                cache = f"{folder}/{name} {number}"
                cold = start(name, sys.executable, "ours", *name.split(), cache=cache)
                cold_s.append(cold.facts["compile_s"])
                cold_cpu_s.append(cold.facts["compile_cpu_s"])
                longest_s.append(cold.facts["longest_s"])
                memory.append(cold.ask("memory"))
                cold.stop()
            loaded = start(name, sys.executable, "ours", *name.split(), cache=cache)
            loaded.facts |= {
                "cold_s": min(cold_s),
                "cold_cpu_s": min(cold_cpu_s),
                "cold_longest_s": min(longest_s),
                "cold_memory": max(memory),
            }
        start("products", sys.executable, "products")
        yield parties


def measure(parties: dict[str, Worker]) -> None:
    """Let all parties take turns."""
    cases = {name: ["periods"] for name in OURS} | {"products": parties["products"].facts["cases"]}
    cases |= {"sb3": ["sac"], "sbx": ["sac", "sac scanned"], "rejax": ["1 copy", "8 copies"]}
    slow = {"sb3": ["ppo 16ms", "ppo 4ms"], "sbx": ["ppo 16ms", "ppo 4ms"]}
    for turn in range(REPETITIONS):
        print(f"  turn {turn + 1} of {REPETITIONS}", file=sys.stderr)
        for name, party in parties.items():
            for case in cases[name] + (slow.get(name, []) if turn < SLOW_REPETITIONS else []):
                party.ask(case)
    parties["ppo 16ms"].ask("whole")
    for name in OURS:
        parties[name].ask("memory")


class Table:
    """Prints one line for each party, with its ratio to us."""

    def __init__(self, parties: dict[str, Worker], peak: float) -> None:
        """The highest rate of this core is in floating-point operations per second."""
        self._parties, self._peak = parties, peak

    def row(self, label: str, party: str, case: str, operations: int, ours: str, iterations: int = 0) -> None:
        """Milliseconds, the rate and its part of the peak, the seconds for so many, and the ratios to us."""
        if party not in self._parties:
            print(f"  {label:38s} {'not measured':>19s}")
            return
        times, cpu_s = self._parties[party].times[case], min(self._parties[party].cpu_times[case])
        best, rate = min(times), operations / min(times)
        run = f"{iterations * best:9,.1f}" if iterations else ""
        ours_s, ours_cpu_s = self._parties[ours].best("periods"), min(self._parties[ours].cpu_times["periods"])
        ratios = f"{best / ours_s:7.2f}x {cpu_s / ours_cpu_s:7.2f}x" if party != ours else ""
        print(
            f"  {label:38s} {1e3 * best:9.2f} {1e3 * median(times):9.2f} {rate / 1e9:8.2f} {rate / self._peak:6.1%}"
            f" {run:9s} {ratios}".rstrip()
        )


def report_ppo(table: Table) -> None:
    """The iterations of PPO."""
    updates = EPOCHS * BATCH // MINIBATCH
    print(f"\nPPO, b {BATCH}, m {MINIBATCH}, {EPOCHS} epochs, tanh 64-64: {BATCH} agent steps and {updates} updates")
    columns = f"{'best ms':>9s} {'median':>9s} {'GFLOP/s':>8s} {'peak':>6s} {'10M in s':>9s} {'/ ours':>8s} (CPU s)"
    print(f"  {'':38s} {columns}")
    operations = ppo_operations(9, 2, 64)
    for dt, k in STEPS.items():
        ours, iterations = f"ppo {dt}", ENV_STEPS // (k * BATCH)
        table.row(f"cycletime, Reacher {dt}", ours, "periods", operations, ours, iterations)
        table.row(f"Stable-Baselines3, PyBullet {dt}", "sb3", ours, operations, ours, iterations)
        table.row(f"SBX, PyBullet {dt}", "sbx", ours, operations, ours, iterations)
    operations = ppo_operations(3, 1, 64)
    table.row("rejax, Pendulum, to our 16ms", "rejax", "1 copy", operations, "ppo 16ms")
    table.row("rejax, 8 copies of Pendulum", "rejax", "8 copies", operations, "ppo 16ms")


def report_sac(table: Table) -> None:
    """The updates of SAC."""
    print(f"\nSAC, m {SAC_MINIBATCH}, ReLU 256-256, replay 62,500: an update; ours with its 8 environment steps")
    operations = sac_operations(9, 2, 256)
    table.row("cycletime, Reacher 16ms", "sac 16ms", "periods", operations, "sac 16ms")
    table.row("SBX, an update per call, as it trains", "sbx", "sac", operations, "sac 16ms")
    table.row("SBX, 50 updates per call", "sbx", "sac scanned", operations, "sac 16ms")
    table.row("Stable-Baselines3", "sb3", "sac", operations, "sac 16ms")


def report_bounds(products: Worker) -> float:
    """The products of matrices; the highest rate."""
    print("\nProducts of float32 matrices, GFLOP/s")
    rates = {}
    for case in products.facts["cases"]:
        rows, size = (int(number) for number in case.split()[1:])
        rates[case] = 2 * rows * size * size / products.best(case)
        print(f"  {f'{case.split()[0]}, [{rows}, {size}] by [{size}, {size}]':38s} {rates[case] / 1e9:9.1f}")
    return max(rates.values())


def report_start(parties: dict[str, Worker]) -> None:
    """What a run costs besides its steps."""
    print(f"\n{'':40s} {'compile s':>9s} {'CPU s':>9s} {'longest':>9s} {'from disk':>9s} {'peak MB':>9s}")
    for name in OURS:
        facts, memory = parties[name].facts, peak_memory(parties[name])
        seconds = (facts[key] for key in ("cold_s", "cold_cpu_s", "cold_longest_s", "compile_s"))
        columns = " ".join(f"{each:9.1f}" for each in seconds)
        print(f"  {f'cycletime, {name}':38s} {columns} {memory / 1e6:9.0f}")
    whole = parties["ppo 16ms"].best("whole")
    print(f"  a whole run of PPO at 16ms, {ENV_STEPS:,} environment steps, programs from disk: {whole:.1f} s")


def peak_memory(party: Worker) -> float:
    """The most bytes that a process of ours held, compiling or loading its programs."""
    return max(float(party.facts["cold_memory"]), *party.times["memory"])


def goals_reached(parties: dict[str, Worker]) -> bool:
    """Print our goals, and whether each was reached; one that was not measured counts as reached."""
    iteration, update = parties["ppo 16ms"].best("periods"), parties["sac 16ms"].best("periods")
    run_s = ENV_STEPS / (STEPS["16ms"] * BATCH) * iteration
    compile_s = max(parties[name].facts["cold_longest_s"] for name in OURS)
    memory = max(peak_memory(parties[name]) for name in OURS if name.startswith("ppo"))
    goals = [
        ("PPO at 16ms, 10M steps at the best, s", run_s, 25.0),
        ("PPO's iteration / rejax's (one copy)", _ratio(parties, iteration, "rejax", "1 copy"), 1.0),
        ("SAC's update / SBX's as it trains", _ratio(parties, update, "sbx", "sac"), 0.9),
        ("the longest compilation of a program, s", compile_s, 10.0),
        ("PPO's memory, MB", memory / 1e6, 1000.0),
    ]
    print("\nGoals")
    for label, value, most in goals:
        if value is None:
            print(f"  {label:40s} {'':9s}  at most {most:6g}   not measured")
        else:
            print(f"  {label:40s} {value:9.2f}  at most {most:6g}   {'PASS' if value <= most else 'MISS'}")
    return all(value is None or value <= most for _, value, most in goals)


def _ratio(parties: dict[str, Worker], ours_s: float, peer: str, case: str) -> float | None:
    return ours_s / parties[peer].best(case) if peer in parties else None


def cpu_name() -> str:
    """What the processor calls itself."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main() -> int:
    """Measure and print; the exit status tells whether the goals were reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", metavar="PYTHON", help="the interpreter that has the other libraries")
    given = parser.parse_args().peers
    peers = shutil.which(given) if given else None
    if given and not peers:
        parser.error(f"--peers is {given!r}: it must be a Python interpreter that has the other libraries.")
    if hasattr(os, "sched_setaffinity"):  # which all workers inherit
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with workers(str(Path(peers).absolute()) if peers else None) as parties:
        measure(parties)
    jax_version = parties["ppo 16ms"].facts["jax"]
    print(
        f"jax {jax_version} on {cpu_name()}; one core, one thread; best and median of {REPETITIONS} turns"
        f" ({SLOW_REPETITIONS} of PPO on PyBullet)"
    )
    beside = [parties[name].facts["versions"] for name in ("sb3", "sbx", "rejax") if name in parties]
    print(f"beside {'; '.join(beside)}" if beside else f"peers not measured: --peers PYTHON, after there: {INSTALL}")
    peak = report_bounds(parties["products"])
    table = Table(parties, peak)
    report_ppo(table)
    report_sac(table)
    report_start(parties)
    return 0 if goals_reached(parties) else 1


if __name__ == "__main__":
    sys.exit(main())
