"""One-step actor-critic against the paper's Algorithm 3."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent
from cycletime.agents.actor_critic import ActorCriticState
from cycletime.errors import InputError
from tests.agents.conftest import (
    Dense,
    arrays_of,
    assert_trees_close,
    filled_buffer,
    random_transitions,
    randomized,
    rows_of,
    shapes_of,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly", "float64")
learn = jax.jit(ActorCriticAgent.learn)
GAMMA, POLICY_RATE, VALUE_RATE = 0.9, 0.03, 0.2


def make_agent(**overrides: Any) -> ActorCriticAgent:  # noqa: ANN401
    options = {"discount": GAMMA, "policy_rate": POLICY_RATE, "value_rate": VALUE_RATE, "hidden": (5, 4)}
    return ActorCriticAgent(**{**options, **overrides})


def make_state(agent: ActorCriticAgent) -> ActorCriticState:
    moved: ActorCriticState = randomized(shapes_of(agent))
    return moved._replace(current_discount=jnp.asarray(1.0))


@pytest.mark.parametrize("time_limit", ["terminal", "bootstrap"])
def test_learning_step_by_step_is_algorithm_3(time_limit: str) -> None:
    agent = make_agent(time_limit=time_limit)
    psi = make_state(agent)
    mean, value = Dense(arrays_of(psi.policy.network), "tanh"), Dense(arrays_of(psi.value), "tanh")
    log_std, current_discount = np.array(psi.policy.log_std), 1.0
    data = random_transitions(8, terminated=[2], truncated=[5])
    for row, ended in enumerate([0, 0, 1, 0, 0, 1, 0, 0]):
        s, a, reward, successor = (np.asarray(part)[row : row + 1] for part in data[:4])
        terminal = row == 2 or (row == 5 and time_limit == "terminal")
        target = reward + (0 if terminal else GAMMA * value.forward(successor)[0, 0])
        error = float((target - value.forward(s)[:, 0])[0])
        in_value, _ = value.backward(np.ones((1, 1)))
        std, away = np.exp(log_std), a - mean.forward(s)
        in_mean, _ = mean.backward(away / std**2)
        in_log_std = away[0] ** 2 / std**2 - 1
        mean.weights = [
            w + POLICY_RATE * current_discount * error * g for w, g in zip(mean.weights, in_mean, strict=True)
        ]
        log_std = log_std + POLICY_RATE * current_discount * error * in_log_std
        value.weights = [
            w + VALUE_RATE * current_discount * error * g for w, g in zip(value.weights, in_value, strict=True)
        ]
        current_discount = 1.0 if ended else GAMMA * current_discount

        psi, metrics = learn(agent, psi, filled_buffer(rows_of(data, row, row + 1)), None)
        assert_trees_close(psi, [*mean.weights, log_std, *value.weights, np.array(current_discount)], atol=1e-12)
        np.testing.assert_allclose(metrics["value_error"], error, atol=1e-12)
        np.testing.assert_allclose(metrics["entropy"], np.sum(0.5 * np.log(2 * np.pi * np.e * np.exp(2 * log_std))))
    assert current_discount == pytest.approx(GAMMA**2)


@pytest.mark.parametrize("time_limit", ["terminal", "bootstrap"])
def test_the_current_discount_is_one_again_after_either_end(time_limit: str) -> None:
    agent = make_agent(time_limit=time_limit)
    psi = make_state(agent)._replace(current_discount=jnp.asarray(0.25))
    ends: list[dict[str, Any]] = [{}, {"terminated": [0]}, {"truncated": [0]}]
    after = [learn(agent, psi, filled_buffer(random_transitions(1, **each)), None)[0] for each in ends]
    assert [float(each.current_discount) for each in after] == [GAMMA * 0.25, 1, 1]


def test_the_current_discount_begins_at_one() -> None:
    agent = make_agent(hidden=())
    assert jax.jit(lambda key: agent.initialize(key, 3, 2))(jax.random.key(0)).current_discount == 1


def test_nothing_in_learning_is_random() -> None:
    assert make_agent().draw(jax.random.key(0), 2) is None  # type: ignore[func-returns-value]


def test_what_the_loop_asks() -> None:
    agent = ActorCriticAgent()
    assert (agent.capacity, agent.period, agent.learns_from, agent.random_steps) == (1, 1, 1, 0)
    assert agent.learn_when == "batch"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"discount": 2}, "discount is 2: .* between 0 and 1"),
        ({"policy_rate": 0}, "policy_rate is 0: .* above 0"),
        ({"value_rate": -1.0}, "value_rate is -1.0: .* above 0"),
        ({"noise_std": 0.0}, "noise_std is 0.0: .* above 0"),
        ({"hidden": 64}, "hidden is 64: .* layer sizes"),
        ({"initial_weights": "none"}, "initial_weights is 'none'"),
        ({"time_limit": "soon"}, "time_limit is 'soon': .* 'terminal' or 'bootstrap'"),
    ],
)
def test_wrong_values_are_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_agent(**overrides)
