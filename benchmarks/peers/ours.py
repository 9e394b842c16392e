"""Our compiled loop on Reacher: python -m benchmarks.peers.ours ppo|sac DT [ENVIRONMENTS]."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from benchmarks.peers.worker import Cases, serve
from cycletime.agents import Agent, PPOAgent, SACAgent
from cycletime.tasks import Reacher
from cycletime.training.algorithm_1 import ChunkOutput, LoopState, advance_with_draws, draw_for_periods
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.machine import keep_compiled_programs

ENV_STEPS = 10_000_000
AGENTS: dict[str, Agent] = {"ppo": PPOAgent(), "sac": SACAgent(replay_capacity=62_500)}


def prepare(name: str, dt: str, num_envs: str = "1") -> tuple[Cases, dict[str, object]]:
    """Compile; for SAC also fill the replay, so that its samples come from all of it."""
    keep_compiled_programs()
    agent = AGENTS[name]
    loop = CompiledLoop(task=Reacher(), agent=agent, dt=dt, env_steps=ENV_STEPS, num_envs=int(num_envs))
    start = time.process_time()
    shape, state = loop.shape, loop.start([0]).state
    rates = jax.tree.map(jnp.float32, agent)

    def program(*, learns: bool) -> Callable[[LoopState], tuple[LoopState, ChunkOutput]]:
        draws = draw_for_periods(shape, rates, state, jnp.int32(0), learns=learns)
        advance = advance_with_draws.lower(shape, rates, state, draws, jnp.int32(0), learns=learns).compile()

        def chunk(state: LoopState) -> tuple[LoopState, ChunkOutput]:
            periods = jnp.int32(shape.periods)
            told: tuple[LoopState, ChunkOutput] = advance(
                rates, state, draw_for_periods(shape, rates, state, periods, learns=learns), periods
            )
            return told

        return chunk

    # PPO learns from its first period on, and never needs the program without learning.
    fills = program(learns=False) if agent.learns_from > agent.period else None
    start_longest = time.process_time()
    learns = program(learns=True)
    longest_s = time.process_time() - start_longest
    compile_s = time.process_time() - start
    while fills and int(state.agent_steps) < shape.capacity:
        state, _ = fills(state)

    def periods() -> float:
        """Seconds of one learning period, in a full chunk."""
        nonlocal state
        start = time.perf_counter()
        state, report = learns(state)
        jax.block_until_ready((state, report))  # type: ignore[no-untyped-call]
        return (time.perf_counter() - start) / shape.periods

    def whole() -> float:
        """Seconds of a whole run by the loop that users call, with what it compiles or loads."""
        start = time.perf_counter()
        finished = [lane for chunk in loop.run([1]) for lane in chunk.finished]
        assert finished == [0]
        return time.perf_counter() - start

    def memory() -> float:
        """The most bytes that this process ever held."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    periods()
    facts = {"compile_s": compile_s, "longest_s": longest_s, "jax": jax.__version__}
    return {"periods": periods, "whole": whole, "memory": memory}, facts


if __name__ == "__main__":
    serve(lambda: prepare(*sys.argv[1:]))
