"""How fast the closed-form tasks are on one core, as ratios to PyBullet measured in the same run; or on one GPU.

    python benchmarks/tasks.py            # about a minute

One copy and 4096 copies in a compiled loop, in the standard loop (k = 1) and at 16 and 64 ms, without an agent: random
actions, and an episode that ends begins anew. PyBullet runs the same task as a Gymnasium environment (extra `bullet`).
Then the same at 16 ms as people have it who step environments from Python, `gym.make`: PyBullet's, ours, and ours as it
would be with a call that takes and gives each number of the state by itself; in a process as JAX starts it, and in one
where calls on a CPU return when they are done, as in cycletime's own commands. All on one core and one thread. Each
number is the best of several repetitions, since other load can only slow it down.
On a machine whose JAX has a GPU, more copies run there instead, and there is nothing to compare with.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from cycletime.duration import cycle_steps
from cycletime.tasks import DoublePendulum, Reacher
from cycletime.tasks.closed_form_env import PackedStep

REPETITIONS = 7
WANTED = {1: 300, 4096: 500}
"""The least ratio to PyBullet, by the number of copies."""


def best_time_s(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of several repetitions, after one to warm up."""
    run()
    times = []
    for _ in range(REPETITIONS):
        start = clock()
        run()
        times.append(clock() - start)
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


def env_steps_per_s(env: Any) -> tuple[float, float]:  # noqa: ANN401
    """Environment steps per second of a Gymnasium environment that is stepped from Python, and microseconds a cycle."""
    actions = np.random.default_rng(0).uniform(-0.1, 0.1, (4000, *env.action_space.shape)).astype(np.float32)
    env_steps = 0

    def run() -> None:
        nonlocal env_steps
        env.reset(seed=0)
        env_steps = 0
        for action in actions:
            _, _, terminated, truncated, info = env.step(action)
            env_steps += info["cycle_steps"]
            if terminated or truncated:
                env.reset()

    time_s = best_time_s(run, time.process_time)
    return env_steps / time_s, 1e6 * time_s / len(actions)


class EachNumberByItself:
    """What a packed task does, with a call that takes and gives one array for each number."""

    def __init__(self, task: Any, cycle_steps: int) -> None:  # noqa: ANN401
        """Prepare the programs."""
        self._start = jax.jit(lambda *numbers: (state := task.start(*numbers), task.observe(state)))
        self._cycle = jax.jit(lambda state, action: task.cycle(state, action, cycle_steps))

    def start(self, numbers: tuple[float, ...]) -> PackedStep:
        """Begin an episode."""
        state, observation = self._start(*numbers)
        return PackedStep(state, np.array(observation), 0.0, False, 0)

    def cycle(self, state: Any, action: list[float]) -> PackedStep:  # noqa: ANN401
        """Hold an action."""
        step = self._cycle(state, np.array(action, np.float32))
        told = float(step.reward), bool(step.terminated), int(step.state.env_steps)
        return PackedStep(step.state, np.array(step.observation), *told)


def report_on_gymnasium() -> None:
    """Print what a user of `gym.make` gets at 16 ms."""
    print("  environment                    us/cycle      steps/s   ratio")
    for name in ("Reacher", "DoublePendulum"):
        bullet, ours, former = (gym.make(f"cycletime/{form}-v0", dt="16ms") for form in (f"Bullet{name}", name, name))
        unpacked: Any = former.unwrapped
        unpacked._packed = EachNumberByItself(unpacked.task, cycle_steps("16ms", unpacked.task.env_dt))
        bullet_steps = None
        for label, env in ((f"PyBullet's {name}", bullet), ("  ours, number by number", former), ("  ours", ours)):
            steps_per_s, cycle_us = env_steps_per_s(env)
            bullet_steps = bullet_steps or steps_per_s
            print(f"  {label:28s} {cycle_us:9.1f} {steps_per_s:14,.0f} {steps_per_s / bullet_steps:6.1f}x")


def report_on_gymnasium_in_processes() -> None:
    """Print the same with both ways of JAX to call programs, of which a process has one."""
    for words, way in (("as JAX starts", "later"), ("with jax_cpu_enable_async_dispatch off", "at-once")):
        print(f"\ngym.make at 16 ms, stepped from Python, {words} (CPU time)", flush=True)
        subprocess.run([sys.executable, __file__, "gymnasium", way], check=True)


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
    report_on_gymnasium_in_processes()
    return 0 if reached else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["gymnasium"]:
        jax.config.update("jax_cpu_enable_async_dispatch", sys.argv[2] == "later")  # type: ignore[no-untyped-call]
        report_on_gymnasium()
        sys.exit(0)
    sys.exit(main())
