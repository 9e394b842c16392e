"""Doing nothing, against the same episodes cycle by cycle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.experiments.horizons.results import do_nothing_return
from cycletime.training.worlds import ClosedFormWorld

EPISODES = 30
CYCLE_STEPS = 25


@pytest.mark.usefixtures("compiled_quickly")
def test_it_is_the_return_of_zero_actions_at_a_cycle_time() -> None:
    world = ClosedFormWorld("double-pendulum")
    task = world.task
    states = jax.vmap(task.reset)(jax.random.split(jax.random.key(0), EPISODES))
    cycle = jax.jit(jax.vmap(lambda state: task.cycle(state, jnp.zeros(task.action_size), CYCLE_STEPS)))
    returns, lengths, over = np.zeros(EPISODES), np.zeros(EPISODES), np.zeros(EPISODES, bool)
    while not over.all():
        step = cycle(states)
        states = step.state
        returns += np.where(over, 0, step.reward)
        lengths = np.where(over, lengths, step.state.env_steps)
        over |= np.asarray(step.terminated | step.truncated)
    assert do_nothing_return(world, EPISODES) == pytest.approx(np.average(returns, weights=lengths), rel=1e-3, abs=1e-3)
