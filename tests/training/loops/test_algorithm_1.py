"""What the compiled loop hands to XLA, and what XLA makes of it, as users have it."""

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import pytest

from cycletime.agents import Buffer, SACAgent
from cycletime.agents.agent import Metrics, pytree_of_rates
from cycletime.agents.sac import SACDraws, SACState
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.training.algorithm_1 import LoopState, advance_with_draws, draw_for_periods
from cycletime.training.compiled_loop import CompiledLoop


def shapes_of(loop: CompiledLoop) -> tuple[Any, LoopState]:
    """Of the rates and the state of lanes of the loop's own agent."""
    seeds = list(range(loop.width))
    rates, state = jax.eval_shape(lambda: (loop._lanes(seeds, None)[0], loop.start(seeds).state))
    return rates, state


def lowered(loop: CompiledLoop) -> Any:  # noqa: ANN401 - JAX's
    """The program that learns."""
    (rates, state), periods = shapes_of(loop), jnp.int32(1)
    draws = jax.eval_shape(partial(draw_for_periods, loop.shape, learns=True), rates, state, periods)
    return advance_with_draws.lower(loop.shape, rates, state, draws, periods, learns=True)


@pytree_of_rates
@dataclass(frozen=True, kw_only=True)
class Sampler(SACAgent):
    """Samples as SAC does, and learns nothing, which is compiled in no time."""

    def learn(self, psi: SACState, buffer: Buffer, draws: SACDraws) -> tuple[SACState, Metrics]:
        return psi, {"reward": buffer.sample(draws.samples).reward.mean()}


@pytest.mark.parametrize(("agent", "width"), [(Sampler, 1), pytest.param(SACAgent, 3, marks=pytest.mark.slow)])
def test_the_replay_is_changed_in_place(wander: ClosedFormTask, agent: type[SACAgent], width: int) -> None:
    small = agent(hidden=(), minibatch=8)
    loop = CompiledLoop(task=wander, agent=small, dt="10ms", env_steps=100_000, width=width)
    rows = shapes_of(loop)[1].buffer.rows
    replay_bytes = rows.size * rows.dtype.itemsize
    memory = lowered(loop).compile().memory_analysis()
    assert memory
    assert memory.temp_size_in_bytes < replay_bytes / 4
    assert memory.alias_size_in_bytes > replay_bytes


@pytest.mark.parametrize(("matmul", "precision"), [("fastest", "HIGH"), ("float32", "HIGHEST")])
def test_the_precision_of_products_is_the_loops_own(
    wander: ClosedFormTask, matmul: Literal["fastest", "float32"], precision: str
) -> None:
    loop = CompiledLoop(
        task=wander, agent=SACAgent(minibatch=8, hidden=(4,)), dt="40ms", env_steps=1000, width=2, matmul=matmul
    )
    with jax.default_matmul_precision("bfloat16"):
        text = lowered(loop).as_text()
    products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert len(products) >= 20
    assert all(f"precision = [{precision}, {precision}]" in line for line in products)


def test_learning_is_traced_once(wander: ClosedFormTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the shapes of its metrics are needed before the loop in which it learns."""
    traced, learn = [], Sampler.learn

    def told(agent: Sampler, *given: Any) -> tuple[SACState, Metrics]:  # noqa: ANN401
        traced.append(agent)
        return learn(agent, *given)

    monkeypatch.setattr(Sampler, "learn", told)
    lowered(CompiledLoop(task=wander, agent=Sampler(hidden=(), minibatch=9), dt="10ms", env_steps=100))
    assert len(traced) == 1


STARTED = """
import jax
from cycletime.agents import PPOAgent
from cycletime.training.compiled_loop import CompiledLoop
from tests.training.loops.conftest import Wander

events = []
jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
loop = CompiledLoop(task=Wander(), agent=PPOAgent(batch=4, minibatch=4, epochs=1, hidden=()), dt="10ms", env_steps=4)
for _ in loop.run([0]):
    print(events.count("/jax/core/compile/backend_compile_duration"))
"""


def test_a_start_needs_five_programs() -> None:
    """The key, counts and buffer; Psi; the walk; random numbers; learning. Each costs a start 10 ms and more."""
    told = subprocess.run([sys.executable, "-c", STARTED], stdout=subprocess.PIPE, text=True, check=True)
    assert told.stdout == "5\n"
