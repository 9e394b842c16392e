# mypy: disable-error-code="import-not-found"
"""Load every task at its three cycle times and step it: python -m benchmarks.robots.check_tasks [--trace] [TASK ...].

Prints a line of JSON for each: mass, sizes, substeps, a step's reward, whether all numbers are finite. Takes minutes
on a CPU, and seconds with --trace, which compiles and runs nothing.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from benchmarks.robots.environments import load_environment
from benchmarks.robots.shims import install_stand_ins
from benchmarks.robots.trial import Task, read_preregistration, tasks_of

MASS_TOLERANCE = 0.02


def checked(task: Task, dt_ms: float, trace_only: bool = False) -> dict[str, Any]:
    """What a task is at a cycle time; traced only, its programs are neither compiled nor run."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    env = load_environment(task, dt_ms)
    began = time.monotonic()
    mass_kg = float(env.mj_model.body_mass.sum())
    if task.mass_kg is not None and abs(mass_kg / task.mass_kg - 1) > MASS_TOLERANCE:
        raise ValueError(f"{task.name} weighs {mass_kg:.2f} kg, not {task.mass_kg}: another model was loaded.")
    found = {
        "task": task.name,
        "dt_ms": dt_ms,
        "substeps": env.n_substeps,
        "physics_dt_ms": round(float(env.mj_model.opt.timestep) * 1000, 6),
        "mass_kg": round(mass_kg, 3),
        "action_size": env.action_size,
    }
    if trace_only:
        state = jax.eval_shape(env.reset, jax.random.PRNGKey(0))
        state = jax.eval_shape(env.step, state, jnp.zeros(env.action_size))
        numbers = []
    else:
        state = jax.jit(env.reset)(jax.random.PRNGKey(0))
        step = jax.jit(env.step)
        state = step(state, jnp.zeros(env.action_size))
        state = step(state, jnp.full(env.action_size, 0.1))
        numbers = [leaf for leaf in jax.tree.leaves((state.obs, state.reward, state.data.qpos)) if leaf.size]
        found["reward"] = float(state.reward)
    found |= {
        "observation": jax.tree.map(lambda leaf: leaf.shape[0], state.obs),
        "finite": None if trace_only else all(bool(np.isfinite(leaf).all()) for leaf in numbers),
        "seconds": round(time.monotonic() - began, 1),
    }
    return found


def main(names: list[str]) -> int:
    """Check the named tasks, or all."""
    install_stand_ins()
    failed, trace_only = 0, "--trace" in names
    names = [name for name in names if name != "--trace"]
    for name, task in tasks_of(read_preregistration()).items():
        if names and name not in names:
            continue
        for dt_ms in task.cycle_times_ms:
            try:
                found = checked(task, dt_ms, trace_only)
            except Exception as error:
                found = {"task": name, "dt_ms": dt_ms, "error": f"{type(error).__name__}: {error}"}
            failed += "error" in found or found["finite"] is False
            print(json.dumps(found), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
