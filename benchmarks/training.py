"""How fast training is on one core, as ratios to other libraries measured in the same run, and to what the core can do.

    python benchmarks/training.py --peers PYTHON [--before FOLDER]            # about ten minutes

PYTHON is an interpreter that has the other libraries, which need an older JAX than we do: `./check training` makes
one, .venv-peers/bin/python, with the versions in requirements/pins.txt. Without it only we are measured. FOLDER is a
checkout of an older version, such as `git worktree add FOLDER COMMIT` makes: its stepped loop is measured beside this
one's. Every party is a process of its own, all on one core and one thread, and they take turns, so that other load on
the machine meets all of them. Numbers are CPU seconds of the processes, the best of several repetitions, since other
load can only slow them down; the medians stand beside them. The exit status tells whether our goals were reached.
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
TURNS, COLD_REPETITIONS = 9, 2
STEPPED_PPO = ("Pendulum-v1", "Reacher-v5", "cycletime/Reacher-v0")


class Worker:
    """A party: a process that waits on the core while others are measured."""

    def __init__(self, name: str, python: str, *arguments: str, cache: str = "", source: str = "") -> None:
        """Start it, and wait until it is ready; it may import another version of us than the one that is installed."""
        self.name, self.times = name, dict[str, list[float]]()
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the worker
        settings = {
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "JAX_PLATFORMS": "cpu",
            "CYCLETIME_CACHE": cache,
            **({"PYTHONPATH": source} if source else {}),
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
        """One repetition of a case: its CPU seconds."""
        assert self._process.stdin
        print(case, file=self._process.stdin, flush=True)
        seconds, share = self._answer()
        self.times.setdefault(case, []).append(seconds * share)
        return float(seconds * share)

    def tell(self, what: str) -> float:
        """A number that is no time."""
        assert self._process.stdin
        print(what, file=self._process.stdin, flush=True)
        return float(self._answer()[0])

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
def workers(peers: str | None, before: str | None) -> Iterator[dict[str, Worker]]:
    """All parties, ready; our programs were compiled into an empty cache, and then loaded by another process."""
    parties: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:

        def start(name: str, python: str, module: str, *arguments: str, cache: str = "", source: str = "") -> Worker:
            print(f"  preparing {name}", file=sys.stderr)
            parties[name] = Worker(name, python, f"benchmarks.peers.{module}", *arguments, cache=cache, source=source)
            ends.callback(parties[name].stop)
            return parties[name]

        if peers:  # first, so that what is missing there shows at once
            start("rejax", peers, "with_rejax")
            start("sbx", peers, "with_sb3", "sbx")
            start("sb3", peers, "with_sb3", "sb3")
        for name in OURS:
            cold_s, longest_s, memory, cache = [], [], [], ""
            for number in range(COLD_REPETITIONS):
                cache = f"{folder}/{name} {number}"
                cold = start(name, sys.executable, "ours", *name.split(), cache=cache)
                cold_s.append(cold.facts["compile_s"])
                longest_s.append(cold.facts["longest_s"])
                memory.append(cold.tell("memory"))
                cold.stop()
            loaded = start(name, sys.executable, "ours", *name.split(), cache=cache)
            loaded.facts |= {
                "cold_s": min(cold_s),
                "cold_longest_s": min(longest_s),
                "cold_memory": max(memory),
            }
        start("stepped", sys.executable, "stepped", cache=f"{folder}/stepped")
        if before:
            start("before", sys.executable, "stepped", cache=f"{folder}/before", source=f"{before}/src")
        start("products", sys.executable, "products")
        yield parties


def measure(parties: dict[str, Worker], turns: int) -> None:
    """Let all parties take turns."""
    cases = {name: ["periods"] for name in OURS} | {"products": parties["products"].facts["cases"]}
    on_steps = [*(f"ppo {name}" for name in STEPPED_PPO), "sac Pendulum-v1"]
    cases |= {name: [*on_steps, "update", "update scanned"] for name in ("stepped", "before")}
    cases["sb3"] = [*on_steps, "ppo cycletime/BulletReacher-v0", "sac"]
    cases |= {"sbx": [*cases["sb3"], "sac scanned"], "rejax": ["1 copy", "8 copies"]}
    for turn in range(turns):
        print(f"  turn {turn + 1} of {turns}", file=sys.stderr)
        for name, party in parties.items():
            for case in cases[name]:
                party.ask(case)
    parties["ppo 16ms"].ask("whole")
    for name in OURS:
        parties[name].facts["memory"] = parties[name].tell("memory")


class Table:
    """Prints one line for each party, with its ratio to us."""

    def __init__(self, parties: dict[str, Worker], peak: float) -> None:
        """The highest rate of this core is in floating-point operations per second."""
        self._parties, self._peak = parties, peak

    def row(self, label: str, party: str, case: str, operations: int, to: tuple[str, str], iterations: int = 0) -> None:
        """Milliseconds, the rate and its part of the peak, the seconds for so many, and the ratio to a case of ours."""
        if party not in self._parties:
            print(f"  {label:38s} {'not measured':>19s}")
            return
        times = self._parties[party].times[case]
        best, rate = min(times), operations / min(times)
        run = f"{iterations * best:9,.1f}" if iterations else ""
        ratio = f"{best / self._parties[to[0]].best(to[1]):7.2f}x" if (party, case) != to else ""
        print(
            f"  {label:38s} {1e3 * best:9.2f} {1e3 * median(times):9.2f} {rate / 1e9:8.2f} {rate / self._peak:6.1%}"
            f" {run:9s} {ratio}".rstrip()
        )


def report_ppo(table: Table) -> None:
    """The iterations of PPO in the compiled loop, and what others take for them."""
    updates = EPOCHS * BATCH // MINIBATCH
    print(f"\nPPO, b {BATCH}, m {MINIBATCH}, {EPOCHS} epochs, tanh 64-64: {BATCH} agent steps and {updates} updates")
    columns = f"{'best ms':>9s} {'median':>9s} {'GFLOP/s':>8s} {'peak':>6s} {'10M in s':>9s} {'/ ours':>8s}"
    print(f"  {'':38s} {columns}")
    operations = ppo_operations(9, 2, 64)
    for dt, k in STEPS.items():
        iterations, ours = ENV_STEPS // (k * BATCH), f"ppo {dt}"
        table.row(f"cycletime, Reacher {dt}", ours, "periods", operations, (ours, "periods"), iterations)
    iterations, ours = ENV_STEPS // (STEPS["16ms"] * BATCH), "ppo 16ms"
    for label, party, case, count in (
        ("rejax, Reacher 16ms", "rejax", "1 copy", iterations),
        ("rejax, 8 copies of Reacher 16ms", "rejax", "8 copies", 0),
        ("Stable-Baselines3, Reacher 16ms", "sb3", "ppo cycletime/Reacher-v0", iterations),
        ("Stable-Baselines3, PyBullet 16ms", "sb3", "ppo cycletime/BulletReacher-v0", iterations),
        ("SBX, Reacher 16ms", "sbx", "ppo cycletime/Reacher-v0", iterations),
        ("SBX, PyBullet 16ms", "sbx", "ppo cycletime/BulletReacher-v0", iterations),
    ):
        table.row(label, party, case, operations, (ours, "periods"), count)


def report_sac(table: Table) -> None:
    """The updates of SAC."""
    print(f"\nSAC, m {SAC_MINIBATCH}, ReLU 256-256, replay 62,500: an update; ours with its 8 environment steps")
    operations, ours = sac_operations(9, 2, 256), ("sac 16ms", "periods")
    table.row("cycletime, Reacher 16ms", *ours, operations, ours)
    table.row("SBX, an update per call, as it trains", "sbx", "sac", operations, ours)
    table.row("SBX, 50 updates per call", "sbx", "sac scanned", operations, ours)
    table.row("Stable-Baselines3", "sb3", "sac", operations, ours)


def report_stepped(parties: dict[str, Worker]) -> None:
    """The stepped loop on Gymnasium's environments, and what others take for the same."""
    print("\nThe stepped loop, agent steps a second with all learning (PPO as above), and ours / theirs")
    shown = {"stepped": "cycletime", "before": "before", "sb3": "SB3", "sbx": "SBX"}
    here = [name for name in shown if name in parties]
    print(f"{'':40s}" + " ".join(f"{shown[name]:>16s}" for name in here))
    rows = [(f"PPO, {name}", f"ppo {name}", BATCH) for name in STEPPED_PPO]
    for label, case, steps in [*rows, ("SAC, Pendulum-v1, an update each", "sac Pendulum-v1", 1)]:
        rates = {name: steps / parties[name].best(case) for name in here}
        cells = [f"{rate:8,.0f} {rates['stepped'] / rate:6.2f}x" for rate in rates.values()]
        print(f"  {label:38s}" + " ".join(f"{cell:>16s}" for cell in cells))
    for name in ("stepped", "before"):
        if name in parties:
            single, scanned = (parties[name].best(case) for case in ("update", "update scanned"))
            print(
                f"  {shown[name]}: an update of SAC by a call of its own {1e3 * single:.2f} ms, "
                f"in one call of 50 {1e3 * scanned:.2f} ms, {single / scanned:.3f}x"
            )


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
    print(f"\n{'':40s} {'compile s':>9s} {'longest':>9s} {'from disk':>9s} {'peak MB':>9s}")
    for name in OURS:
        facts, memory = parties[name].facts, peak_memory(parties[name])
        seconds = (facts[key] for key in ("cold_s", "cold_longest_s", "compile_s"))
        columns = " ".join(f"{each:9.1f}" for each in seconds)
        print(f"  {f'cycletime, {name}':38s} {columns} {memory / 1e6:9.0f}")
    whole = parties["ppo 16ms"].best("whole")
    print(f"  a whole run of PPO at 16ms, {ENV_STEPS:,} environment steps, programs from disk: {whole:.1f} s")


def peak_memory(party: Worker) -> float:
    """The most bytes that a process of ours held, compiling or loading its programs."""
    return max(float(party.facts["cold_memory"]), float(party.facts["memory"]))


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
        *(
            (f"stepped PPO on {name}, us a step", 1e6 * parties["stepped"].best(f"ppo {name}") / BATCH, 1e6 / rate)
            for name, rate in (("Pendulum-v1", 12_000), ("Reacher-v5", 7_000))
        ),
        (
            "stepped SAC's update / that in one scan",
            parties["stepped"].best("update") / parties["stepped"].best("update scanned"),
            1.05,
        ),
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
    parser.add_argument("--before", metavar="FOLDER", help="a checkout of an older version of this project")
    parser.add_argument("--turns", type=int, default=TURNS, help="how often all are measured")
    options = parser.parse_args()
    given, before = options.peers, options.before
    peers = shutil.which(given) if given else None
    if given and not peers:
        parser.error(f"--peers is {given!r}: it must be a Python interpreter that has the other libraries.")
    if before and not Path(before, "src/cycletime").is_dir():
        parser.error(f"--before is {before!r}: it must be a checkout of an older version, with src/cycletime in it.")
    if hasattr(os, "sched_setaffinity"):  # which all workers inherit
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with workers(*(str(Path(each).absolute()) if each else None for each in (peers, before))) as parties:
        measure(parties, options.turns)
    jax_version = parties["ppo 16ms"].facts["jax"]
    print(
        f"jax {jax_version} on {cpu_name()}; one core, one thread; CPU seconds, best and median of "
        f"{options.turns} turns"
    )
    beside = [parties[name].facts["versions"] for name in ("sb3", "sbx", "rejax") if name in parties]
    print(
        f"beside {'; '.join(beside)}"
        if beside
        else "peers not measured: --peers PYTHON, which './check training' makes"
    )
    peak = report_bounds(parties["products"])
    table = Table(parties, peak)
    report_ppo(table)
    report_sac(table)
    report_stepped(parties)
    report_start(parties)
    return 0 if goals_reached(parties) else 1


if __name__ == "__main__":
    sys.exit(main())
