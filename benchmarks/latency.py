"""What a robot's program gets from JAX's calls in its own thread, and what acting loses beside a learner in another.

    python benchmarks/latency.py          # about two minutes

Agents of the paper's sizes on Reacher. Each row is a process of its own, since JAX takes the setting once. 'Beside' is
`act` while a second thread does one learning after another, as a learner in the background does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import jax

from cycletime.agents import Agent, PPOAgent, SACAgent
from cycletime.training.latency import CallTimes, act_call, learn_call, measure
from cycletime.training.machine import cores, processor

AGENTS: dict[str, Agent] = {"ppo": PPOAgent(), "sac": SACAgent()}
SIZES = (9, 2)
MEASURE_S = 5.0
USUAL, AT_ONCE = "as JAX starts", "in the calling thread"
"""How JAX's calls are made."""


@contextmanager
def learning_beside(agent: Agent) -> Iterator[None]:
    """One learning after another in a second thread."""
    learn, over, begun = learn_call(agent, *SIZES), Event(), Event()

    def learn_on() -> None:
        while not over.is_set():
            learn()
            begun.set()

    thread = Thread(target=learn_on)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        over.set()
        thread.join()


def row(name: str, way: str) -> str:
    """What one agent's calls take."""
    agent = AGENTS[name]
    learn, act = (measure(make_call(agent, *SIZES), MEASURE_S) for make_call in (learn_call, act_call))
    with learning_beside(agent):
        beside = measure(act_call(agent, *SIZES), MEASURE_S)
    return f"{name:5s} {way:22s} {told(learn, 1e3, 'ms')} {told(act, 1e6, 'us')} {told(beside, 1e6, 'us')}"


def told(times: CallTimes, unit: float, name: str) -> str:
    """The median and the 99th percentile."""
    return f"{times.median_s * unit:7.1f} {times.p99_s * unit:8.1f} {name}"


def main() -> None:
    """Print the table, each row from a process of its own."""
    print(f"{processor()}, {cores()} cores; JAX {jax.__version__}; medians and 99th percentiles")
    print(f"{'':28s} {'learn':>19s} {'act':>19s} {'act beside':>19s}", flush=True)
    for name in AGENTS:
        for way in (USUAL, AT_ONCE):
            subprocess.run([sys.executable, __file__, name, way], check=True)


if __name__ == "__main__":
    if not sys.argv[1:]:
        main()
    else:
        jax.config.update("jax_cpu_enable_async_dispatch", sys.argv[2] == USUAL)  # type: ignore[no-untyped-call]
        print(row(*sys.argv[1:3]), flush=True)
