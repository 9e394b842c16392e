"""What short work costs on one core before and after a change: compiling, another budget, short runs, a command.

    python benchmarks/beginnings.py --before OTHER_CLONE          # some minutes

Both are processes of their own, on one core and one thread, and take turns; numbers are the least CPU seconds of all
turns, since other load on the machine can only add to them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TURNS = 2
SHORT_RUNS = 20
COMMANDS = 6
CASES = {
    "import and the five programs of examples/quick.toml, CPU s": "programs",
    "the same again, from the disk": "programs from disk",
    "SAC, two programs": "sac",
    "SAC, another env_steps, from the disk": "sac another budget",
    "a run of 2,000 environment steps, b 50, m 12, CPU ms": "short run",
    "`cycletime train` that learns once, from the disk, CPU s": "command",
}
COMMAND = "train --task reacher --dt 16ms --env-steps 1600 --batch 200 --minibatch 50 --out"
"""A whole process: Python, imports, options, programs, one learning, and a run on disk."""


def measure(kind: str) -> None:
    """Print the CPU seconds of a kind of work, in this process."""
    start = time.process_time()
    from cycletime.agents import PPOAgent, SACAgent
    from cycletime.tasks import Reacher
    from cycletime.training.compiled_loop import CompiledLoop

    def trained(agent: PPOAgent | SACAgent, dt: str, env_steps: int, seed: int = 0) -> None:
        for _ in CompiledLoop(task=Reacher(), agent=agent, dt=dt, env_steps=env_steps).run([seed]):
            pass

    if kind == "programs":
        for dt, batch, minibatch in (("16ms", 2000, 50), ("32ms", 2000, 50), ("64ms", 2000, 50)):
            trained(PPOAgent(batch=batch, minibatch=minibatch), dt, 1)
        for dt, batch, minibatch in (("32ms", 1000, 25), ("64ms", 500, 12)):
            trained(PPOAgent(batch=batch, minibatch=minibatch), dt, 1)
    elif kind.startswith("sac "):
        trained(SACAgent(), "16ms", 8 * int(kind.removeprefix("sac ")))
    else:
        agent = PPOAgent(batch=50, minibatch=12)
        trained(agent, "16ms", 2000)
        start = time.process_time()
        for seed in range(SHORT_RUNS):
            trained(agent, "16ms", 2000, seed)
    print(json.dumps(time.process_time() - start))


def settings_of(clone: Path, cache: str) -> dict[str, str]:
    """The environment of a process with a clone's code; its bytecode is kept, as that of installed packages is."""
    settings = {
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        "OMP_NUM_THREADS": "1",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(clone / "src"),
        "CYCLETIME_CACHE": cache,
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": f"{cache}-bytecode",
    }
    return os.environ | settings


def asked(clone: Path, kind: str, cache: str) -> float:
    """What a process with a clone's code measures."""
    command = [sys.executable, __file__, "--measure", kind]
    told = subprocess.run(command, env=settings_of(clone, cache), stdout=subprocess.PIPE, text=True, check=True)
    return float(told.stdout)


def warm_command(clone: Path, cache: str) -> float:
    """The least CPU seconds of the command, from the second time on."""
    times_s = []
    for _ in range(COMMANDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, "-m", "cycletime", *COMMAND.split(), out]
            subprocess.run(command, env=settings_of(clone, cache), capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times_s[1:])


def turn(clone: Path) -> dict[str, float]:
    """All cases once, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        cache = f"{folder}/programs"
        return {
            "programs": asked(clone, "programs", cache),
            "programs from disk": asked(clone, "programs", cache),
            "sac": asked(clone, "sac 300", cache),
            "sac another budget": asked(clone, "sac 320", cache),
            "short run": 1e3 * asked(clone, "short", cache) / SHORT_RUNS,
            "command": warm_command(clone, cache),
        }


def main() -> None:
    """Let both take turns, and print their best."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="a clone of the project at another commit")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    clones = ([options.before] if options.before else []) + [ROOT]
    turns = [[turn(clone) for clone in clones] for _ in range(TURNS)]
    print(f"{platform.processor() or platform.machine()}, one core, one thread; the least of {TURNS} turns")
    print(f"  {'':62s}" + "".join(f"{name:>9s}" for name in ("before", "after")[-len(clones) :]))
    for label, case in CASES.items():
        best = [min(each[place][case] for each in turns) for place in range(len(clones))]
        print(f"  {label:62s}" + "".join(f"{number:9.2f}" for number in best))


if __name__ == "__main__":
    main()
