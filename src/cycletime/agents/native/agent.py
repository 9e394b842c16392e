"""PPO that computes all gradient steps of a learning in one call of its kernel, `ppo_kernel.cpp`."""

from __future__ import annotations

from dataclasses import dataclass, fields

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from cycletime.agents.agent import pytree_of_rates
from cycletime.agents.native.library import TARGET, native_library
from cycletime.agents.networks import AdamState, adam_scales
from cycletime.agents.ppo import PPOAgent, PPOState, Sample, as_rows
from cycletime.errors import InputError


@pytree_of_rates
@dataclass(frozen=True, kw_only=True)
class NativePPOAgent(PPOAgent):
    """PPO with other last bits, and faster on CPUs: samples, advantages and metrics are computed as ever."""

    @classmethod
    def like(cls, agent: PPOAgent) -> NativePPOAgent:
        """With the hyper-parameters of an agent."""
        return cls(**{each.name: getattr(agent, each.name) for each in fields(agent)})

    def descend(self, psi: PPOState, data: Sample, draws: jax.Array) -> PPOState:
        """All gradient steps of a learning.

        Raises:
            NoNativeError: if the kernel is not here.
            InputError: if the numbers are not float32, or samples have weights.
        """
        library = native_library()
        rows, _ = as_rows(data)
        if rows.dtype != jnp.float32 or data.weight is not None:
            raise InputError(f"PPO's kernel learns from float32 without weights: this is {rows.dtype}.")
        count, size, short = self.slice_sizes
        steps = psi.optimizer.taken + 1 + jnp.arange(len(draws) * (count + bool(short)))
        parameters, in_shape = ravel_pytree(psi.parameters)
        flat = (parameters, ravel_pytree(psi.optimizer.mean)[0], ravel_pytree(psi.optimizer.square)[0])
        kernel = jax.ffi.ffi_call(
            TARGET,
            [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in flat],  # type: ignore[no-untyped-call]
            input_output_aliases={0: 0, 1: 1, 2: 2},
            vmap_method="sequential",
        )
        after = kernel(
            *flat,
            rows,
            draws,
            jnp.stack(adam_scales(steps, self.learning_rate), axis=1).astype(jnp.float32),
            jnp.asarray(self.clip, jnp.float32),
            minibatch=np.int64(size),
            action=np.int64(data.action.shape[1]),
            hidden=np.array(self.hidden, np.int64),
            instructions=library.instructions,
        )
        parameters, mean, square = (in_shape(each) for each in after)
        return PPOState(parameters, AdamState(steps[-1], mean, square))
