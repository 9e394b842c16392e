"""What others do with mini-batches: against its formula in NumPy, and off where nobody asks for it."""

from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime import rules
from cycletime.agents import Buffer, PPOAgent, Transition, agent_for
from cycletime.agents.ppo import PPOState, Sample
from cycletime.errors import InputError
from cycletime.training.make_specs import transfer_agent
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld

pytestmark = pytest.mark.usefixtures("compiled_quickly")
SIZES, ROWS, ENVS = (3, 2), 8, 4
SMALL: dict[str, Any] = {"batch": ROWS * ENVS, "minibatch": 8, "hidden": (5,), "epochs": 2}


def make_batch(seed: int = 0) -> Buffer:
    random = np.random.default_rng(seed)
    buffer = Buffer.empty(ROWS, *SIZES, ENVS)
    for _ in range(ROWS):
        seen, successor = 3 + 5 * random.normal(size=(2, ENVS, SIZES[0]))
        ended = (random.uniform(size=ENVS) < 0.2).astype(np.float32)
        parts = (seen, random.normal(size=(ENVS, SIZES[1])), random.normal(size=ENVS), successor, ended, 0 * ended)
        buffer = buffer.store(Transition(*(jnp.asarray(part, jnp.float32) for part in parts)))
    return buffer


def start(**options: Any) -> tuple[PPOAgent, PPOState]:  # noqa: ANN401
    agent = PPOAgent(**{**SMALL, **options})
    return agent, jax.jit(agent.initialize, static_argnums=(1, 2))(jax.random.key(1), *SIZES)


def learn(agent: PPOAgent, psi: PPOState, buffer: Buffer) -> tuple[PPOState, dict[str, Any]]:
    learned: tuple[PPOState, dict[str, Any]] = jax.jit(agent.learn)(
        psi, buffer, agent.draw(jax.random.key(2), SIZES[1])
    )
    return learned


def assert_close(one: object, other: object, tolerance: float = 1e-5) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_nothing_of_it_is_in_the_identity_or_the_state_by_default() -> None:
    spec = RunSpec(world=ClosedFormWorld("reacher"), agent=PPOAgent(), dt="16ms", env_steps=2400, seed=0)
    options = {each.name for each in fields(PPOAgent) if each.metadata.get("option")}
    assert len(options) == 2
    assert not options & spec.as_json()["agent"].keys()
    chosen = replace(spec, agent=PPOAgent(advantages="minibatch", minibatches=40))
    said = chosen.as_json()["agent"]
    assert {name: said[name] for name in options & said.keys()} == {"advantages": "minibatch", "minibatches": 40}
    assert RunSpec.from_json(chosen.as_json()) == chosen
    assert chosen.identity != spec.identity


def test_advantages_of_a_minibatch_have_mean_0_and_variance_1() -> None:
    agent, psi = start(advantages="minibatch")
    plain, _ = start()
    data = agent.samples(psi.parameters, make_batch())
    part: Sample = jax.tree.map(lambda each: each[:8], data)
    h = np.asarray(part.advantage)
    normal = part._replace(advantage=jnp.asarray((h - h.mean()) / (h.std() + 1e-8)))
    policy = jax.tree.map(lambda each: 1.1 * each, psi.parameters.policy)
    np.testing.assert_allclose(agent.policy_loss(policy, part), plain.policy_loss(policy, normal), rtol=1e-5)
    whole = np.asarray(plain.samples(psi.parameters, make_batch()).advantage)
    assert abs(whole.std() - 1) < 1e-4 < abs(np.asarray(data.advantage).std() - 1)


@pytest.mark.parametrize(("count", "sizes"), [(4, (4, 8, 0)), (3, (2, 11, 10)), (32, (32, 1, 0))])
def test_minibatches_are_counted_instead(count: int, sizes: tuple[int, int, int]) -> None:
    agent = PPOAgent(batch=32, minibatches=count)
    assert agent.slice_sizes == sizes
    assert agent.minibatch == sizes[1]


def test_a_rule_carries_the_batch_and_leaves_the_number_of_minibatches() -> None:
    values = rules.PPO(dt="16ms", batch=2048).at("8ms")
    assert agent_for(values, minibatches=32).minibatch == 128
    carried = transfer_agent(
        "ppo", {"batch": 2048}, dt="8ms", tuned_at="16ms", rule="dt-aware", others={"minibatches": 32}
    )
    assert (carried.agent.batch, carried.agent.minibatch) == (4096, 128)  # type: ignore[union-attr]
    with pytest.raises(InputError, match="minibatch is 64 and minibatches 32: give one of them"):
        transfer_agent("ppo", {"minibatch": 64}, dt="8ms", others={"minibatches": 32})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"advantages": "row"}, "advantages is 'row': it must be 'batch' or 'minibatch'"),
        ({"minibatches": 33, "batch": 32, "minibatch": 50}, "minibatches is 33: it must be at most the batch, 32"),
        ({"minibatches": 4, "minibatch": 9}, "leave minibatch out, which is 9"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PPOAgent(**{"batch": 32, **options})
