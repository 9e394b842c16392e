"""Where the time of one gradient step of PPO goes, on one core: its parts, and the products of matrices that it has.

    python benchmarks/update.py          # about three minutes

CPU microseconds, the least of several repetitions. First those of a step within a learning of 400, with all that
chooses its samples; then of a step by itself. Products are measured by themselves, in the form in which XLA finds them
in the step; below them is the time that their operations would take at the rate of [512, 512] by [512, 512].
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
from jax import lax

from cycletime.agents import PPOAgent
from cycletime.agents.networks import adam_step
from cycletime.agents.ppo import PPOState, Sample, shuffles

MINIBATCHES = (12, 50, 200)
OBSERVATION, ACTION, WIDTH = 9, 2, 64
REPEATED, REPETITIONS, TURNS = 2000, 5, 5

Step = Callable[[PPOState, Sample], PPOState]


def least_s(function: Callable[..., Any], *arguments: object) -> float:
    """The CPU seconds of a call, at the best."""
    jax.block_until_ready(function(*arguments))  # type: ignore[no-untyped-call]
    took = []
    for _ in range(REPETITIONS):
        start = time.process_time()
        jax.block_until_ready(function(*arguments))  # type: ignore[no-untyped-call]
        took.append(time.process_time() - start)
    return min(took)


def minibatch_of(size: int) -> Sample:
    """Any numbers."""
    keys = jax.random.split(jax.random.key(1), 5)
    normal = jax.random.normal
    return Sample(
        normal(keys[0], (size, OBSERVATION)),
        normal(keys[1], (size, ACTION)),
        normal(keys[2], (size,)),
        normal(keys[3], (size,)),
        normal(keys[4], (size,)) - 3,
    )


def learning_us(size: int) -> float:
    """Of a step within a learning."""
    own = PPOAgent(batch=40 * size, minibatch=size)
    data, order = minibatch_of(own.batch), shuffles(jax.random.key(2), own.epochs, own.batch)
    psi = own.initialize(jax.random.key(0), OBSERVATION, ACTION)
    learn = jax.jit(own.descend)
    return 1e6 * min(least_s(learn, psi, data, order) for _ in range(TURNS)) / (40 * own.epochs)


def steps_of(agent: PPOAgent) -> dict[str, Step]:
    """A whole step, and less of it."""

    def without_adam(psi: PPOState, minibatch: Sample) -> PPOState:
        gradient = jax.grad(agent.loss)(psi.parameters, minibatch)
        return psi._replace(parameters=jax.tree.map(lambda p, g: p - 1e-4 * g, psi.parameters, gradient))

    def adam(psi: PPOState, minibatch: Sample) -> PPOState:
        mean: Any = psi.optimizer.mean
        return PPOState(*adam_step(psi.parameters, mean, psi.optimizer, 3e-4))

    return {
        "a gradient step by itself": agent.update,
        "without Adam": without_adam,
        "Adam alone": adam,
    }


def step_s(step: Step, psi: PPOState, minibatch: Sample) -> float:
    """Seconds of one of many steps, each from where the last one led."""

    def body(_: jax.Array, psi: PPOState) -> PPOState:
        return step(psi, minibatch)

    return least_s(jax.jit(lambda psi: lax.fori_loop(0, REPEATED, body, psi)), psi) / REPEATED


def product_s(contracted: tuple[int, int], *shapes: tuple[int, int]) -> float:
    """Seconds of one of many products, each with a left factor that the last one changed."""
    left, right = (jax.random.normal(jax.random.key(each), shape) for each, shape in enumerate(shapes))

    def product(left: jax.Array, right: jax.Array) -> jax.Array:
        return lax.dot_general(left, right, (((contracted[0],), (contracted[1],)), ((), ())))

    def body(_: jax.Array, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, before = pair
        return left.at[0, 0].set(1e-9 * before[0, 0]), product(left, right)

    repeated = jax.jit(lambda left: lax.fori_loop(0, REPEATED, body, (left, product(left, right))))
    return least_s(repeated, left) / REPEATED


def products_of(size: int) -> dict[str, list[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]]:
    """The products of a step by kind: which axes are summed over, and the shapes of the factors."""
    forward, inputs, weights = [], [], []
    for outputs in (ACTION, 1):
        for number, (ins, outs) in enumerate(((OBSERVATION, WIDTH), (WIDTH, WIDTH), (WIDTH, outputs))):
            forward.append(((1, 0), (size, ins), (ins, outs)))
            weights.append(((0, 0), (size, ins), (size, outs)))
            if number:
                inputs.append(((1, 1), (size, outs), (ins, outs)))
    return {"forward": forward, "back, to inputs": inputs, "back, to weights": weights}


def operations_of(axes: tuple[int, int], left: tuple[int, int], right: tuple[int, int]) -> int:
    """The floating-point operations of a product."""
    return 2 * left[0] * left[1] * right[1 - axes[1]]


def main() -> int:
    """Measure and print."""
    peak = 2 * 512**3 / product_s_large()
    print(f"jax {jax.__version__}, one core, one thread; PPO's networks of {WIDTH}-{WIDTH} on Reacher; CPU us")
    print(f"  {'':28s}" + "".join(f"{f'm = {size}':>10s}" for size in MINIBATCHES))
    print(f"  {'in a learning':28s}" + "".join(f"{learning_us(size):10.1f}" for size in MINIBATCHES), flush=True)
    agent = PPOAgent()
    psi = agent.initialize(jax.random.key(0), OBSERVATION, ACTION)
    for name, step in steps_of(agent).items():
        took = [step_s(step, psi, minibatch_of(size)) for size in MINIBATCHES]
        print(f"  {name:28s}" + "".join(f"{1e6 * each:10.1f}" for each in took), flush=True)
    for kind in products_of(1):
        products = [products_of(size)[kind] for size in MINIBATCHES]
        took = [sum(product_s(*each) for each in of_size) for of_size in products]
        needed = [sum(operations_of(*each) for each in of_size) / peak for of_size in products]
        print(f"  {'products ' + kind:28s}" + "".join(f"{1e6 * each:10.1f}" for each in took))
        print(f"  {'  at the highest rate':28s}" + "".join(f"{1e6 * each:10.1f}" for each in needed), flush=True)
    return 0


def product_s_large() -> float:
    """Seconds of [512, 512] by [512, 512]."""
    square = jax.random.normal(jax.random.key(0), (512, 512))
    return least_s(jax.jit(lambda each: each @ each), square)


if __name__ == "__main__":
    sys.exit(main())
