"""Measure what return doing nothing and a scripted controller get, by task and cycle time, for the package to keep.

    python benchmarks/references.py      # writes src/cycletime/tasks/references.json

Scripted controllers are those that nobody had to train: functions of the observation alone, as a policy is. `reach`
bends the arm towards the angles at which its tip is on the target; `balance` is the linear-quadratic regulator of the
two poles, for the very cycle time; `approach` is resolved-rate control of a UR5's flange.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from cycletime import tasks
from cycletime.duration import Duration, DurationLike, cycle_steps
from cycletime.tasks import references
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.tasks.double_pendulum import DoublePendulum
from cycletime.tasks.reacher import _A, _B, _H, ELBOW_LIMIT, ELBOW_TO_TIP, LINK_LENGTH, STRONGEST_TORQUE, Reacher
from cycletime.tasks.references import NOTHING, SCRIPTED
from cycletime.tasks.ur_reacher import URReacher, flange_of

Controller = Callable[[jax.Array], jax.Array]
"""An action from an observation."""

EPISODES = 2000
DTS = {
    "reacher": ("2ms", "4ms", "8ms", "10ms", "16ms", "20ms", "32ms", "40ms", "64ms", "80ms", "120ms", "128ms"),
    "double-pendulum": ("4ms", "8ms", "12ms", "16ms", "20ms", "32ms", "40ms", "64ms", "80ms", "120ms", "128ms"),
    "ur-reacher": ("10ms", "20ms", "40ms", "80ms", "120ms"),
}
"""By task, the cycle times that are measured."""
_SETTLES = 0.2
"""Seconds in which the arm comes to rest at the target, if nothing is clipped: what scored best of a few."""
_SETTLES_CYCLES = 2.0
"""And no fewer cycles than this, since an action is held for a whole one."""
_ANGLE_COST, _PLACE_COST, _FORCE_COST = 10.0, 1.0, 10.0
_NEAR = 0.01
"""From upright, in metres, radians and their speeds, and of the strongest force."""
_APPROACH_RATE, _DAMPING = 3.0, 1e-3
"""Per second of the way to the target, and what keeps speeds small where the arm is straight, in m^2."""
_HORIZON = 4000
"""Steps of Riccati's recursion: more than enough to come to rest."""


def do_nothing(task: ClosedFormTask, dt: Duration) -> Controller:
    """The action that is zero."""
    return lambda observation: jnp.zeros(task.action_size, task.dtype)


def reach(task: Reacher, dt: Duration) -> Controller:
    """Towards the target's angles with a critically damped spring in each joint, through the arm's own inertia."""
    settles_s = max(_SETTLES, _SETTLES_CYCLES * float(dt))
    stiffness, damping = settles_s**-2, 2 / settles_s

    def act(observation: jax.Array) -> jax.Array:
        x, y, _, _, cos_1, sin_1, speed_1, elbow, speed_2 = observation
        q1, q2 = jnp.arctan2(sin_1, cos_1), ELBOW_LIMIT * elbow
        wanted_1, wanted_2 = _angles_of(x, y, jnp.where(q2 < 0, -1.0, 1.0))
        turn = jnp.mod(wanted_1 - q1 + jnp.pi, 2 * jnp.pi) - jnp.pi
        pulls = jnp.stack([turn, wanted_2 - q2]) * stiffness - damping * 10 * jnp.stack([speed_1, speed_2])
        between = _B + _H * jnp.cos(q2)
        mass = jnp.array([[_A + between + _H * jnp.cos(q2), between], [between, _B]])
        return jnp.clip(mass @ pulls / STRONGEST_TORQUE, -1, 1)

    return act


def _angles_of(x: jax.Array, y: jax.Array, side: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The joints' angles with the tip on a point, or as near as it gets, with the elbow on one side."""
    squared = x**2 + y**2
    cosine = (squared - LINK_LENGTH**2 - ELBOW_TO_TIP**2) / (2 * LINK_LENGTH * ELBOW_TO_TIP)
    elbow = side * jnp.arccos(jnp.clip(cosine, -1, 1))
    beside, along = ELBOW_TO_TIP * jnp.sin(elbow), LINK_LENGTH + ELBOW_TO_TIP * jnp.cos(elbow)
    return jnp.arctan2(y, x) - jnp.arctan2(beside, along), elbow


def balance(task: DoublePendulum, dt: Duration) -> Controller:
    """The regulator of the poles' linear motion about upright, with the force held for a cycle."""
    gains = jnp.asarray(_regulator(task, dt), task.dtype)

    def act(observation: jax.Array) -> jax.Array:
        x, v, _, cos_1, sin_1, w, cos_2, sin_2, u = observation
        state = jnp.stack([x, jnp.arctan2(sin_1, cos_1), jnp.arctan2(sin_2, cos_2), v, w, u])
        return jnp.clip(-gains @ state, -1, 1)

    return act


def _regulator(task: DoublePendulum, dt: Duration) -> NDArray[np.float64]:
    """[1, 6] the gains, from the derivatives of a cycle's motion and Riccati's recursion."""
    held = cycle_steps(dt, task.env_dt)

    def after(change: jax.Array) -> jax.Array:
        step = task.cycle(task.start(*change[:6]), change[6:], held)
        return jnp.stack(task.numbers(step.state))

    # By differences: at rest the damping has a root in it, whose derivative is infinite.
    changes = _NEAR * jnp.concatenate([jnp.eye(7), -jnp.eye(7)])
    ends = np.asarray(jax.vmap(after)(changes), np.float64)
    slopes = (ends[:7] - ends[7:]).T / (2 * _NEAR)
    moves, pushes = slopes[:, :6], slopes[:, 6:]
    costs, force = np.diag([_PLACE_COST, _ANGLE_COST, _ANGLE_COST, 0.0, 0.0, 0.0]), np.array([[_FORCE_COST]])
    left: NDArray[Any] = costs
    gains: NDArray[Any] = np.zeros((1, 6))
    for _ in range(_HORIZON):
        gains = np.linalg.solve(force + pushes.T @ left @ pushes, pushes.T @ left @ moves)
        left = costs + moves.T @ left @ (moves - pushes @ gains)
    return gains


def approach(task: URReacher, dt: Duration) -> Controller:
    """Straight to the target at a rate, by damped least squares: -rate (J'J + damping)^-1 J' (flange - target)."""
    slopes = jax.jacobian(lambda q: jnp.stack(flange_of((q[0], q[1]))[1:]))

    def act(observation: jax.Array) -> jax.Array:
        jacobian, away = slopes(observation[:2]), observation[4:6]
        squares = jacobian.T @ jacobian + _DAMPING * jnp.eye(2, dtype=task.dtype)
        return jnp.clip(-_APPROACH_RATE * jnp.linalg.solve(squares, jacobian.T @ away), -1, 1)

    return act


CONTROLLERS: Mapping[str, Callable[..., Controller]] = {
    "reacher": reach,
    "double-pendulum": balance,
    "ur-reacher": approach,
}
"""By task, a good controller of it; of other tasks nobody has written one."""


def measure(task: str, dt: DurationLike, episodes: int = EPISODES, seed: int = 0) -> dict[str, tuple[float, float]]:
    """By controller, the mean return over episodes and its standard error."""
    world, dt = getattr(tasks, tasks.CLOSED_FORMS[task])(), Duration(dt)
    controllers = {
        NOTHING: do_nothing,
        **({SCRIPTED: CONTROLLERS[task]} if task in CONTROLLERS else {}),
    }
    keys = jax.random.split(jax.random.key(seed), episodes)
    found = {}
    for name, make in controllers.items():
        returns = np.asarray(jax.jit(jax.vmap(_episode(world, dt, make(world, dt))))(keys), np.float64)
        found[name] = float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(episodes))
    return found


def _episode(world: Any, dt: Duration, act: Any) -> Any:  # noqa: ANN401 - JAX's functions, and any task
    """The return of an episode, as a function of its random key."""
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
        task: {
            dt: {name: [round(each, 4) for each in found] for name, found in measure(task, dt).items()} for dt in dts
        }
        for task, dts in DTS.items()
    }
    data = {"command": "python benchmarks/references.py", "episodes": EPISODES, "returns": returns}
    (Path(references.__file__).parent / references.FILE).write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
