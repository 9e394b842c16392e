"""What the score of doing nothing is: the lower end of the scale on which rules are compared."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.runs.worlds import ClosedFormWorld

EPISODES = 1000
_SEED = 0
_DIGITS = 6
"""Of the level that are kept: machines differ in the last ones."""


def level_of_nothing(world: ClosedFormWorld, episodes: int = EPISODES) -> float:
    """The mean return of episodes in which the action is zero, weighted by their length as the paper's measure is.

    An action that is held does not depend on the cycle time, and nor does this.
    """
    task = world.task

    def held(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        whole = task.cycle(task.reset(key), jnp.zeros(task.action_size), task.limit_steps)
        return whole.reward, whole.state.env_steps

    returns, steps = jax.jit(jax.vmap(held))(jax.random.split(jax.random.key(_SEED), episodes))
    mean = float(np.average(np.asarray(returns, np.float64), weights=np.asarray(steps, np.float64)))
    return float(f"{mean:.{_DIGITS}g}")
