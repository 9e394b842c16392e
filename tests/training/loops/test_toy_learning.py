"""All three agents learn toy tasks with known values, in seconds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, Agent, PPOAgent, SACAgent
from cycletime.agents.agent import AgentState
from cycletime.agents.networks import state_value
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.learning_curve import Episodes

pytestmark = pytest.mark.usefixtures("compiled_quickly")

AIMERS: dict[str, tuple[Agent, int]] = {
    "ppo": (PPOAgent(batch=200, minibatch=50, hidden=(16,), learning_rate=3e-3, noise_std=0.5), 20_000),
    "sac": (SACAgent(minibatch=64, hidden=(16,), learning_rate=3e-3, warmup_steps=200, target_entropy=-3.0), 3_000),
    "actor-critic": (ActorCriticAgent(hidden=(16,), policy_rate=1e-2, value_rate=5e-2, noise_std=0.5), 60_000),
}


def train(task: ClosedFormTask, agent: Agent, env_steps: int, dt: str = "10ms") -> tuple[AgentState, Episodes]:
    chunks = list(CompiledLoop(task=task, agent=agent, dt=dt, env_steps=env_steps).run([0]))
    return chunks[-1].finished[0], Episodes.joined(chunk.episodes[0] for chunk in chunks)


@pytest.mark.parametrize("name", ["ppo", "actor-critic", pytest.param("sac", marks=pytest.mark.slow)])
def test_aims_at_half_of_what_it_sees(name: str, aim: ClosedFormTask) -> None:
    agent, env_steps = AIMERS[name]
    psi, episodes = train(aim, agent, env_steps)
    seen = jnp.linspace(-1, 1, 21)[:, None]
    aimed = jax.vmap(lambda each: agent.act(psi, each, jnp.zeros(1)))(seen)
    np.testing.assert_allclose(aimed, seen / 2, atol=0.12)
    assert episodes.returns[-100:].mean() > -0.1 > -0.2 > episodes.returns[:50].mean()


@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_the_value_of_a_countdown_is_the_discounted_rest(discount: float, countdown: ClosedFormTask) -> None:
    """Cycles of two steps, each worth 2; four of them to an episode, whose end is terminal."""
    agent = PPOAgent(batch=200, minibatch=50, hidden=(16,), learning_rate=3e-3, discount=discount)
    psi, _ = train(countdown, agent, 24_000, dt="20ms")
    left = np.array([4, 3, 2, 1])
    expected = 2.0 * np.array([sum(discount**step for step in range(rest)) for rest in left])
    found = state_value(psi.parameters.value, jnp.asarray(left)[:, None] / 4)
    np.testing.assert_allclose(found, expected, atol=0.35)
