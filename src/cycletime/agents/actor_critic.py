"""One-step actor-critic as in the paper's Algorithm 3: plain gradient steps, from each transition once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from cycletime.agents.agent import Buffer, LearnWhen, Metrics, TimeLimit, pytree_of_rates, rate
from cycletime.agents.checks import check_common_fields, check_fractions, check_positive
from cycletime.agents.exploration import CoherentNoise
from cycletime.agents.networks import (
    GaussianPolicy,
    InitialWeights,
    Network,
    PolicyNetwork,
    forward,
    gaussian_entropy,
    new_parameters,
    policy_log_probability,
    state_value,
)


class ActorCriticState(NamedTuple):
    policy: GaussianPolicy
    """theta."""
    value: Network
    """w."""
    current_discount: jax.Array
    """I, the product of discounts since the episode's start."""


@pytree_of_rates
@dataclass(frozen=True, kw_only=True)
class ActorCriticAgent:
    """One-step actor-critic's hyper-parameters. The paper names none; these are small ones."""

    discount: float = rate(0.99)
    """gamma, per agent step."""
    policy_rate: float = rate(1e-4)
    """eta^theta, the policy's learning rate."""
    value_rate: float = rate(1e-3)
    """eta^w, the value's learning rate."""
    hidden: tuple[int, ...] = (64, 64)
    """Sizes of the tanh layers, of the policy's network and of the value's."""
    noise_std: float = 1.0
    """sigma at the start."""
    initial_weights: InitialWeights = "released"
    """'released': as the paper's released code begins, PyTorch's default with the last layers ten times smaller.
    'pytorch': that default throughout. 'orthogonal': as Stable-Baselines3 and CleanRL begin."""
    time_limit: TimeLimit = "terminal"
    """Whether an episode that the time limit ended counts as terminal, or its value goes on."""
    exploration: CoherentNoise | None = None
    """What makes the noise of its actions coherent in time; None leaves it white."""

    learn_when: ClassVar[LearnWhen] = "batch"
    capacity: ClassVar[int] = 1
    period: ClassVar[int] = 1
    learns_from: ClassVar[int] = 1
    random_steps: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check_fractions(self, "discount")
        check_positive(self, "policy_rate", "value_rate", "noise_std")
        check_common_fields(self)

    def initialize(
        self, key: jax.Array, observation_size: int, action_size: int, num_envs: int = 1
    ) -> ActorCriticState:
        """Initialize parameters theta and w; I = 1."""
        parameters = new_parameters(
            key, observation_size, action_size, self.hidden, self.noise_std, self.initial_weights
        )
        return ActorCriticState(*parameters, current_discount=jnp.ones(()))

    def act(self, psi: ActorCriticState, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """A ~ N(mu(S), sigma^2)."""
        return forward(psi.policy.network, observation, "tanh") + jnp.exp(psi.policy.log_std) * noise

    def draw(self, key: jax.Array, action_size: int) -> None:
        """Nothing in its learning is random."""

    def learn(self, psi: ActorCriticState, buffer: Buffer, draws: None) -> tuple[ActorCriticState, Metrics]:
        """One step from the only transition in the buffer."""
        transition = buffer.read(buffer.rows[0, 0])
        s, a, r, next_s = transition[:4]
        ended = transition.ended
        terminal = ended if self.time_limit == "terminal" else transition.terminated
        value, value_gradient = jax.value_and_grad(state_value)(psi.value, s)
        policy_gradient = jax.grad(policy_log_probability)(psi.policy, s, a)
        error = r + (1 - terminal) * self.discount * state_value(psi.value, next_s) - value

        policy_step = self.policy_rate * psi.current_discount * error
        value_step = self.value_rate * psi.current_discount * error
        after = ActorCriticState(
            policy=jax.tree.map(lambda theta, g: theta + policy_step * g, psi.policy, policy_gradient),
            value=jax.tree.map(lambda w, g: w + value_step * g, psi.value, value_gradient),
            current_discount=jnp.where(ended > 0, 1.0, self.discount * psi.current_discount),
        )
        return after, {"value_error": error, "entropy": gaussian_entropy(after.policy.log_std)}

    def policy(self, psi: ActorCriticState) -> PolicyNetwork:
        return PolicyNetwork(psi.policy.network, "tanh", psi.policy.log_std, squashed=False)

    acting = policy
