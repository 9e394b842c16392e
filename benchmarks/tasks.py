"""How fast the closed-form tasks are on one core, as ratios to PyBullet measured in the same run; or on one GPU.

    python benchmarks/tasks.py            # about a minute

One copy and 4096 copies in a compiled loop, in the standard loop (k = 1) and at 16 and 64 ms, without an agent: random
actions, and an episode that ends begins anew. PyBullet runs the same task as a Gymnasium environment (extra `bullet`).
All on one core and one thread. Each number is the best of several repetitions, since other load can only slow it down.
On a machine whose JAX has a GPU, more copies run there instead, and there is nothing to compare with.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.duration import cycle_steps
from cycletime.tasks import DoublePendulum, Reacher

REPETITIONS = 7
WANTED = {1: 300, 4096: 500}
"""The least ratio to PyBullet, by the number of copies."""


def best_time_s(run: Callable[[], object]) -> float:
    """The shortest of several repetitions, after one to warm up."""
    run()
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def bullet_steps_per_s(env: Any) -> float:  # noqa: ANN401
    """Environment steps per second of PyBullet's original, resets included."""
    actions = np.random.default_rng(0).uniform(-0.1, 0.1, (4000, env.task.action_size))

    def run() -> None:
        env.reset(seed=0)
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return len(actions) / best_time_s(run)


def closed_form_steps_per_s(task: Any, k: int, copies: int) -> tuple[float, float]:  # noqa: ANN401
    """Environment steps per second of the closed form in one compiled loop, and the seconds to compile it."""
    cycles = 400_000 // k if copies == 1 else max(50, 200 // k)

    def simulate(state: Any, actions: tuple[jax.Array, ...], fresh: Any) -> tuple[Any, jax.Array]:  # noqa: ANN401
        def cycle(carry: Any, action: tuple[jax.Array, ...]) -> tuple[Any, None]:  # noqa: ANN401
            state, total = carry
            out = task.cycle(state, jnp.stack(action), k)
            over = out.terminated | out.truncated
            return (jax.tree.map(lambda a, b: jnp.where(over, a, b), fresh, out.state), total + out.reward), None

        (state, total), _ = jax.lax.scan(cycle, (state, jnp.float32(0)), actions)
        return state, total

    keys = jax.random.split(jax.random.key(0), copies)
    # One array for each component: XLA does not vectorise a step that cuts its action out of one large array, which an
    # agent, whose actions come from its network, never asks for.
    shape = (task.action_size, cycles, copies)
    actions = tuple(jax.random.uniform(jax.random.key(1), shape, jnp.float32, -0.1, 0.1))
    states = jax.vmap(task.reset)(keys)
    if copies == 1:
        states, actions = jax.tree.map(lambda x: x[0], states), tuple(component[:, 0] for component in actions)
        program = jax.jit(simulate)
    else:
        program = jax.jit(jax.vmap(simulate, in_axes=(0, 1, 0)))
    start = time.perf_counter()
    compiled = program.lower(states, actions, states).compile()
    compile_s = time.perf_counter() - start
    return cycles * k * copies / best_time_s(
        lambda: jax.block_until_ready(compiled(states, actions, states))  # type: ignore[no-untyped-call]
    ), compile_s


def report_on_gpu(task: Any) -> None:  # noqa: ANN401
    """Print the speed of many copies."""
    print(f"\n{type(task).__name__}\n   copies   k        steps/s   compile")
    for copies in (4096, 65_536, 1_048_576):
        for k in (1, cycle_steps("16ms", task.env_dt)):
            ours, compile_s = closed_form_steps_per_s(task, k, copies)
            print(f"  {copies:7d} {k:3d} {ours:14,.0f} {compile_s:6.2f} s")


def report_on_cpu(task: Any, env: Any) -> bool:  # noqa: ANN401
    """Print the ratios to PyBullet; whether the wanted ones were reached."""
    bullet, reached = bullet_steps_per_s(env), True
    print(f"\n{type(task).__name__}: PyBullet {bullet:,.0f} steps/s")
    print("  copies   k   ns/step      steps/s   ratio   compile")
    for copies in (1, 4096):
        for k in (1, cycle_steps("16ms", task.env_dt), cycle_steps("64ms", task.env_dt)):
            ours, compile_s = closed_form_steps_per_s(task, k, copies)
            ratio = ours / bullet
            reached &= ratio >= WANTED[copies] or (copies == 1 and k > 1)
            print(f"  {copies:6d} {k:3d} {1e9 / ours:9.1f} {ours:12,.0f} {ratio:7,.0f}x {compile_s:6.2f} s")
    return reached


def main() -> int:
    """Print the table; the exit status tells whether the wanted ratios were reached."""
    device = jax.devices()[0]
    print(f"jax {jax.__version__} on {device.device_kind}; steps are environment steps")
    if device.platform == "gpu":
        for task in (Reacher(), DoublePendulum()):
            report_on_gpu(task)
        return 0
    from cycletime.tasks.bullet import BulletDoublePendulumEnv, BulletReacherEnv

    pairs: list[Any] = [(Reacher(), BulletReacherEnv()), (DoublePendulum(), BulletDoublePendulumEnv())]
    reached = [report_on_cpu(task, env) for task, env in pairs] == [True, True]
    wanted = " and ".join(f"{ratio}x for {copies}" for copies, ratio in WANTED.items())
    print(f"\nwanted in the standard loop: {wanted} copies: {'reached' if reached else 'NOT reached'}")
    print(
        "For one copy with k > 1 the reset, a choice after each cycle, takes most of the time; see benchmarks/holds.py."
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
