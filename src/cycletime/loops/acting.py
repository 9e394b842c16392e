"""The policy in NumPy: what a loop acts with that asks for one action after another.

A call of JAX costs many times what a small network does. The random numbers are still the compiled loop's; NumPy and
XLA round in different places, so that actions may differ from that loop's in their last bits.
"""

from __future__ import annotations

from math import erf

import jax
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import Agent
from cycletime.agents.exploration import explore, initial_noise_state
from cycletime.loops.packing import PackedPsi


class Actor:
    """Acts for all copies of an environment, and remembers the state of noise that is coherent in time."""

    def __init__(self, agent: Agent, psi: PackedPsi, copies: int, action_size: int) -> None:
        """Find out which arrays of Psi acting needs, before the first step of all."""
        self._agent, self._needed = agent, agent.acting(psi.numbered())
        self._noise = jax.tree.map(np.asarray, initial_noise_state(agent.exploration, copies, action_size))
        self._copies, self._none_begins = np.arange(copies)[:, None], np.zeros(copies, np.bool_)
        self._take(psi)

    def act(
        self,
        psi: PackedPsi,
        observation: NDArray[np.float32],
        normals: NDArray[np.float32],
        agent_steps: int,
        begins: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float32]:
        """The actions of all copies, [copies, |A|], the first of which is the run's agent step of this number.

        What is not finite in Psi or in the observation makes actions that are not. `begins` says of each copy whether
        an episode begins with it; by default none does.
        """
        if psi is not self._psi:
            self._take(psi)
        begins = self._none_begins if begins is None else begins
        noise, self._noise = explore(self._agent.exploration, self._noise, normals, begins)
        left_steps = self._agent.random_steps - agent_steps
        if left_steps >= len(normals):
            return uniform_of(noise)
        with np.errstate(over="ignore", invalid="ignore"):
            actions = self._network.act(observation, noise)
        return actions if left_steps <= 0 else np.where(self._copies < left_steps, uniform_of(noise), actions)

    def _take(self, psi: PackedPsi) -> None:
        self._psi, self._network = psi, psi.chosen(self._needed).in_numpy()


def uniform_of(noise: NDArray[np.float32]) -> NDArray[np.float32]:
    """Uniform numbers on [-1, 1] of normal ones, as `choose_action` makes them."""
    return np.array([erf(each / 2**0.5) for each in noise.ravel().tolist()], np.float32).reshape(noise.shape)
