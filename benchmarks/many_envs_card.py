"""How fast thousands of environments of one run are on a GPU, beside brax's PPO on the very same closed-form task.

    PYTHONPATH=src:. python -m benchmarks.many_envs_card       # on a machine with a GPU and brax

Our Reacher at 16 ms with 2,048 and 4,096 environments: rollouts of 16 steps, 32 mini-batches, 4 epochs, two layers of
64, normalised observations. An update is such a rollout with all its learning. The parties take turns, each in a
process of its own; seconds of an update are the best and the median of several turns of ten, compilation left out.
The exit status tells whether ours makes at least twice as many updates a second.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
NUM_ENVS = (2048, 4096)
ROUNDS = 2
GOAL = 2.0


@dataclass(frozen=True)
class Size:
    num_envs: int
    rollout: int = 16
    minibatches: int = 32
    epochs: int = 4
    updates: int = 10
    turns: int = 8


def ours(size: Size) -> tuple[list[float], float]:
    """Seconds of an update in each turn but the first, which compiles; and the mean return of the last episodes."""
    from cycletime.agents import PPOAgent
    from cycletime.tasks import Reacher
    from cycletime.training.compiled_loop import CompiledLoop

    agent = PPOAgent(
        batch=size.num_envs * size.rollout,
        minibatches=size.minibatches,
        epochs=size.epochs,
        normalize_observations=True,
    )
    loop = CompiledLoop(task=Reacher(), agent=agent, dt="16ms", env_steps=2**30, num_envs=size.num_envs)
    position, times, returns = loop.start([0]), [time.perf_counter()], [0.0]
    for turn in range(1, size.turns + 1):
        for chunk in loop.run([0], position=position, until=turn * size.updates):
            position = chunk.position
            if len(chunk.episodes[0]):
                returns = chunk.episodes[0].returns.tolist()
        times.append(time.perf_counter())
    return [(end - start) / size.updates for start, end in pairwise(times[1:])], sum(returns) / len(returns)


def brax(size: Size) -> tuple[list[float], float]:
    from benchmarks.peers.with_brax import seconds_per_update

    return seconds_per_update(**asdict(size))


PARTIES = {"ours": ours, "brax": brax}


def measured(party: str, size: Size) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.many_envs_card", "--party", party, "--size", json.dumps(asdict(size))]
    found = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True)
    if found.returncode:
        sys.exit(found.stderr)
    return json.loads(found.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-envs", type=int, nargs="+", default=NUM_ENVS)
    parser.add_argument("--party", choices=PARTIES, help=argparse.SUPPRESS)
    parser.add_argument("--size", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.party:
        each_update, last_return = PARTIES[options.party](Size(**options.size))
        import jax

        facts = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
        print(json.dumps({"seconds": each_update, "return": last_return, **facts}))
        return 0
    reached = True
    for num_envs in options.num_envs:
        size = Size(num_envs)
        seconds: dict[str, list[float]] = {party: [] for party in PARTIES}
        for _ in range(ROUNDS):
            for party in PARTIES:
                found = measured(party, size)
                seconds[party] += found["seconds"]
                print(f"{party}: mean return {found['return']:.1f}; {found['device']}, JAX {found['jax']}", flush=True)
        print(f"{num_envs:,} environments, an update of {num_envs * size.rollout:,} agent steps")
        for party, each in seconds.items():
            speed = num_envs * size.rollout / min(each)
            best, middle = 1e3 * min(each), 1e3 * median(each)
            print(f"  {party:5} {best:8.2f} ms at the best, median {middle:8.2f}: {speed:12,.0f} agent steps a second")
        ratio = min(seconds["brax"]) / min(seconds["ours"])
        print(f"  {ratio:.2f} times as fast as brax (goal {GOAL})", flush=True)
        reached &= ratio >= GOAL
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
