"""What return doing nothing and a scripted controller get, by task and cycle time: measured once, and kept.

``python -m cycletime.tasks.references`` measures all of it again, and writes references.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import ceil
from pathlib import Path
from typing import Any

from cycletime.duration import Duration, DurationLike, cycle_steps

FILE = "references.json"
EPISODES = 2000
DTS = {
    "reacher": ("2ms", "4ms", "8ms", "10ms", "16ms", "20ms", "32ms", "40ms", "64ms", "80ms", "120ms", "128ms"),
    "double-pendulum": ("4ms", "8ms", "12ms", "16ms", "20ms", "32ms", "40ms", "64ms", "80ms", "120ms", "128ms"),
    "ur-reacher": ("10ms", "20ms", "40ms", "80ms", "120ms"),
}
"""By task, the cycle times that are measured."""
NOTHING, SCRIPTED = "doing nothing", "a scripted controller"


@dataclass(frozen=True)
class Reference:
    """A mean return."""

    name: str
    mean: float
    error: float
    """Its standard error."""
    episodes: int


def references(task: str, dt: DurationLike) -> tuple[Reference, ...]:
    """What is known of a task at a cycle time; nothing of those that were not measured."""
    told = _load()
    found = told["returns"].get(task, {}).get(str(Duration(dt)), {})
    return tuple(Reference(name, mean, error, told["episodes"]) for name, (mean, error) in found.items())


@cache
def _load() -> Mapping[str, Any]:
    told: Mapping[str, Any] = json.loads((files(__package__) / FILE).read_text(encoding="utf-8"))
    return told


def measure(task: str, dt: DurationLike, episodes: int = EPISODES, seed: int = 0) -> dict[str, tuple[float, float]]:
    """By controller, the mean return over episodes and its standard error."""
    import jax
    import numpy as np

    from cycletime import tasks
    from cycletime.tasks import scripted

    world, dt = getattr(tasks, tasks.CLOSED_FORMS[task])(), Duration(dt)
    controllers = {
        NOTHING: scripted.do_nothing,
        **({SCRIPTED: scripted.SCRIPTED[task]} if task in scripted.SCRIPTED else {}),
    }
    keys = jax.random.split(jax.random.key(seed), episodes)
    found = {}
    for name, make in controllers.items():
        returns = np.asarray(jax.jit(jax.vmap(_episode(world, dt, make(world, dt))))(keys), np.float64)
        found[name] = float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(episodes))
    return found


def _episode(world: Any, dt: Duration, act: Any) -> Any:  # noqa: ANN401 - JAX's functions, and any task
    """The return of an episode, as a function of its random key."""
    import jax.numpy as jnp
    from jax import lax

    held = cycle_steps(dt, world.env_dt)
    cycles = ceil(Fraction(world.limit_steps, held))

    def cycle(carry: Any, _: None) -> tuple[Any, None]:  # noqa: ANN401
        state, observation, total, over = carry
        step = world.cycle(state, act(observation), held)
        total = total + jnp.where(over, 0.0, step.reward)
        return (step.state, step.observation, total, over | step.terminated | step.truncated), None

    def run(key: Any) -> Any:  # noqa: ANN401
        state = world.reset(key)
        start = (state, world.observe(state), jnp.zeros((), world.dtype), jnp.zeros((), bool))
        (_, _, total, _), _ = lax.scan(cycle, start, None, length=cycles)
        return total

    return run


def main() -> None:
    """Measure all and write the file."""
    returns = {
        task: {dt: {name: [round(each, 4) for each in told] for name, told in measure(task, dt).items()} for dt in dts}
        for task, dts in DTS.items()
    }
    told = {"command": "python -m cycletime.tasks.references", "episodes": EPISODES, "returns": returns}
    (Path(__file__).parent / FILE).write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
