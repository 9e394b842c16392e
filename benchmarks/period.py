"""Where the time of a learning period of PPO goes on one core.

    python benchmarks/period.py          # about a minute

CPU milliseconds, the least of several turns: of Reacher at 16 ms with b = 2000, m = 50 and ten epochs, whose periods
have 2000 agent steps, 16,000 environment steps and 400 gradient steps.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.agents import PPOAgent
from cycletime.agents.ppo import Sample, shuffles
from cycletime.tasks import Reacher
from cycletime.training.algorithm_1 import advance_with_draws, draw_for_periods
from cycletime.training.compiled_loop import CompiledLoop

TURNS = 7
RUN_PERIODS = 625
"""Those of ten million environment steps."""


def parts_of(agent: PPOAgent) -> tuple[int, dict[str, Callable[[], Any]]]:
    """How many periods a chunk has, and what computes the parts of it; of gradient steps, one period's."""
    loop = CompiledLoop(task=Reacher(), agent=agent, dt="16ms", env_steps=10_000_000)
    shape, state = loop.shape, loop.start([0]).state
    rates, periods = jax.tree.map(np.float32, agent), np.int32(loop.shape.periods)
    draws = {learns: draw_for_periods(shape, rates, state, periods, learns=learns) for learns in (True, False)}

    def advance(learns: bool) -> Any:  # noqa: ANN401 - all that a chunk gives
        own = jax.tree.map(jnp.copy, state)  # which it takes over
        return advance_with_draws(shape, rates, own, draws[learns], periods, learns=learns)

    order = shuffles(jax.random.key(1), agent.epochs, agent.batch)
    descend, data = jax.jit(agent.descend), samples(agent.batch)
    return int(periods), {
        "drawn": lambda: draw_for_periods(shape, rates, state, periods, learns=True),
        "rolled out": lambda: advance(learns=False),
        "learned": lambda: advance(learns=True),
        "descended": lambda: descend(state.psi, data, order),
    }


def samples(count: int) -> Sample:
    """Any numbers."""
    keys, normal = jax.random.split(jax.random.key(0), 5), jax.random.normal
    wide, narrow = (normal(key, (count, width)) for key, width in zip(keys, (9, 2), strict=False))
    advantage, lambda_return, log_probability = (normal(key, (count,)) for key in keys[2:])
    return Sample(wide, narrow, advantage, lambda_return, log_probability - 3)


def took_ms(function: Callable[[], Any]) -> float:
    """The CPU milliseconds of a call."""
    start = time.process_time()
    jax.block_until_ready(function())  # type: ignore[no-untyped-call]
    return 1e3 * (time.process_time() - start)


def main() -> int:
    """Measure and print."""
    periods, parts = parts_of(PPOAgent())
    best: dict[str, float] = {}
    for turn in range(1 + TURNS):
        for part, function in parts.items():
            took = took_ms(function) / (1 if part == "descended" else periods)
            if turn:  # the first one compiles
                best[part] = min(took, best.get(part, took))
    print(f"jax {jax.__version__}, one core, one thread; CPU ms of a learning period")
    rows = {
        "random numbers": best["drawn"],
        "2000 agent steps": best["rolled out"],
        "values, advantages and metrics": best["learned"] - best["rolled out"] - best["descended"],
        "400 gradient steps": best["descended"],
        "all": best["drawn"] + best["learned"],
    }
    for name, ms in rows.items():
        print(f"  {name:40s}{ms:10.2f}")
    print(f"  {'10,000,000 environment steps, s':40s}{rows['all'] * RUN_PERIODS / 1e3:10.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
