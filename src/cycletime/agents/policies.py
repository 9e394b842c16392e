"""A policy by itself: the network that an agent acts with, apart from all that learning needs.

Whatever takes a policy elsewhere (files, NumPy, ONNX) starts here, so that it knows no agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from cycletime.agents.networks import Network, outputs

ActivationName: TypeAlias = Literal["tanh", "relu"]
LOG_STD_RANGE = (-20.0, 2.0)
"""Where the released code's SAC clips log sigma."""

_ACTIVATIONS = {"tanh": jnp.tanh, "relu": jax.nn.relu}


@dataclass(frozen=True, eq=False)
class PolicyNetwork:
    """A normal policy: mu from a network, sigma from the network too or on its own."""

    layers: Network
    """From the observation to mu; where `log_std` is None, to mu and log sigma side by side."""
    activation: ActivationName
    """Between the layers."""
    log_std: jax.Array | None
    """log sigma where it does not depend on the state."""
    squashed: bool
    """Whether actions are the tanh of what is drawn."""

    @property
    def observation_size(self) -> int:
        """Numbers in an observation."""
        return int(self.layers[0].weight.shape[0])

    @property
    def action_size(self) -> int:
        """Numbers in an action."""
        numbers = int(self.layers[-1].bias.shape[0])
        return numbers if self.log_std is not None else round(numbers / 2)

    def mean_and_log_std(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Of the normal distribution, before any squashing."""
        numbers = outputs(self.layers, observation, _ACTIVATIONS[self.activation])
        if self.log_std is not None:
            return numbers, jnp.broadcast_to(self.log_std, numbers.shape)
        mean, log_std = jnp.split(numbers, 2, axis=-1)
        return mean, jnp.clip(log_std, *LOG_STD_RANGE)

    def act(self, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """What the agent would do, in its own range of about [-1, 1]; without noise, the policy's mean."""
        mean, log_std = self.mean_and_log_std(observation)
        action = mean + jnp.exp(log_std) * noise
        return jnp.tanh(action) if self.squashed else action
