"""What makes the closed-form tasks fast: rolled or unrolled holds, and whose sine and cosine.

    python benchmarks/holds.py            # on the CPU about a minute, one core and one thread; or on JAX's GPU

Holds of k = 8 environment steps, many of them one after another in a compiled loop with random actions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp

from cycletime.tasks import DoublePendulum, Reacher, double_pendulum, reacher
from cycletime.tasks.physics import sine_and_cosine

HOLD = 8
CYCLES = 50
ON_GPU = jax.default_backend() == "gpu"


def xla_sine_and_cosine(angle: jax.Array) -> tuple[jax.Array, jax.Array]:
    """XLA's own."""
    return jnp.sin(angle), jnp.cos(angle)


def use_trigonometry(function: Callable[[jax.Array], tuple[jax.Array, jax.Array]]) -> None:
    """Let both tasks use these sines and cosines."""
    for module in (reacher, double_pendulum):
        setattr(module, sine_and_cosine.__name__, function)


def measure(task: Any, copies: int) -> tuple[float, float]:  # noqa: ANN401
    """Nanoseconds per environment step and copy, and seconds to compile."""

    def simulate(state: Any, actions: tuple[jax.Array, ...]) -> Any:  # noqa: ANN401
        def cycle(carry: Any, action: tuple[jax.Array, ...]) -> tuple[Any, None]:  # noqa: ANN401
            out = task.cycle(carry[0], jnp.stack(action), HOLD)
            return (out.state, carry[1] + out.reward), None

        return jax.lax.scan(cycle, (state, jnp.float32(0)), actions)[0]

    cycles = CYCLES if copies > 1 else 1000 * CYCLES
    states = jax.vmap(task.reset)(jax.random.split(jax.random.key(0), copies))
    actions = tuple(jax.random.uniform(jax.random.key(1), (task.action_size, cycles, copies), minval=-0.1, maxval=0.1))
    program: Callable[..., Any] = jax.vmap(simulate, in_axes=(0, 1))
    if copies == 1:
        states, actions, program = jax.tree.map(lambda x: x[0], states), tuple(a[:, 0] for a in actions), simulate
    start = time.perf_counter()
    compiled = jax.jit(program).lower(states, actions).compile()
    compile_s = time.perf_counter() - start
    times = []
    for _ in range(6):
        start = time.perf_counter()
        jax.block_until_ready(compiled(states, actions))  # type: ignore[no-untyped-call]
        times.append(time.perf_counter() - start)
    return min(times) / (cycles * HOLD * copies) * 1e9, compile_s


def main() -> None:
    """Print the table."""
    print(f"jax {jax.__version__} on {jax.devices()[0].device_kind}; holds of {HOLD} environment steps")
    print("  task             copies  unroll  sine and cosine   ns/step   compile")
    for task_type in (Reacher, DoublePendulum):
        for copies in (4096, 262_144) if ON_GPU else (1, 4096):
            for unroll, whose in ((1, "ours"), (2, "ours"), (4, "ours"), (8, "ours"), (1, "XLA's")):
                use_trigonometry(xla_sine_and_cosine if whose == "XLA's" else sine_and_cosine)
                ns, compile_s = measure(task_type(unroll=unroll), copies)
                row = f"{task_type.__name__:15s} {copies:7d} {unroll:7d}  {whose:15s} {ns:9.3f} {compile_s:7.1f} s"
                print(f"  {row}", flush=True)


if __name__ == "__main__":
    main()
