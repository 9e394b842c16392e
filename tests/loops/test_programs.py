"""What the compiled loop hands to XLA, and what XLA makes of it, as users have it."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import pytest

from cycletime.agents import SACAgent
from cycletime.loops import CompiledLoop
from cycletime.loops.program import advance
from cycletime.tasks.closed_form import ClosedFormTask


def lowered(loop: CompiledLoop) -> Any:  # noqa: ANN401 - JAX's
    """The program that learns, for lanes of the loop's own agent."""
    seeds = list(range(loop.width))
    state, rates = loop.start(seeds).state, loop._lanes(seeds, None)[0]
    return advance.lower(loop.shape, rates, state, jnp.int32(1), learns=True)


@pytest.mark.parametrize("width", [1, 3])
def test_the_replay_is_changed_in_place(wander: ClosedFormTask, width: int) -> None:
    loop = CompiledLoop(
        task=wander, agent=SACAgent(hidden=(4,), minibatch=8), dt="10ms", env_steps=100_000, width=width
    )
    replay = loop.start(list(range(width))).state.buffer.rows
    memory = lowered(loop).compile().memory_analysis()
    assert memory
    assert memory.temp_size_in_bytes < replay.nbytes / 4
    assert memory.alias_size_in_bytes > replay.nbytes


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
