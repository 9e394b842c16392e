"""What one update of PPO's kernel computes, written out in NumPy and float64: an independent truth."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.cuda.layout import position_of
from cycletime.cuda.ppo import ENDED, TERMINAL, networks_of
from tests.cuda.device_checks.philox import shuffled_order

Numbers = NDArray[np.float64]
Network = Mapping[str, Numbers]


def replay_update(run: Any, state: NDArray[np.float32], rows: NDArray[Any], beside: NDArray[Any]) -> dict[str, Any]:  # noqa: ANN401
    """What one update makes of the state of a run (of `ppo.RUN`) and the rows of its batch, by name.

    The state is that before the update; observations, actions, successors and rewards are taken from the rows.
    """
    policy, value = (_in_float64(network) for network in networks_of(state))
    batch = int(run["batch"])
    observation, action = rows["observation"].astype(float), rows["action"][:batch, : run["actions"]].astype(float)
    values, means = outputs(value, observation)[:, 0], outputs(policy, observation[:batch])[:, : run["actions"]]
    advantage = advantages(run, values, beside["reward"].astype(float), rows["next"])
    log_probability = log_probabilities(policy, means, action)
    samples = {
        "observation": observation[:batch],
        "action": action,
        "advantage": (advantage - advantage.mean()) / (advantage.std() + 1e-8),
        "lambda_return": advantage + values[:batch],
        "old_log_probability": log_probability,
    }
    after = _epochs(run, state, policy, value, samples)
    return {"value": values, "old_mean": means, **samples, **after}


def advantages(run: Any, values: Numbers, rewards: Numbers, successors: NDArray[np.int32]) -> Numbers:  # noqa: ANN401
    """G^lambda - v(S), backwards."""
    batch, discount, trace_decay = int(run["batch"]), float(run["discount"]), float(run["trace_decay"])
    found, later = np.zeros(batch), 0.0
    for row in reversed(range(batch)):
        successor = int(successors[row])
        after = 0.0 if successor & TERMINAL else values[successor & (TERMINAL - 1)]
        error = rewards[row] + discount * after - values[row]
        later = error + (0.0 if successor & ENDED else discount * trace_decay * later)
        found[row] = later
    return found


def outputs(network: Network, observation: Numbers) -> Numbers:
    _, _, two = _hidden(network, observation)
    return two @ network["last"] + network["last_bias"]


def log_probabilities(policy: Network, mean: Numbers, action: Numbers) -> Numbers:
    log_std = policy["log_std"][: mean.shape[1]]
    away = (action - mean) * np.exp(-log_std)
    return np.asarray(np.sum(-0.5 * away**2 - log_std - 0.5 * np.log(2 * np.pi), axis=1))


def _in_float64(network: Mapping[str, NDArray[np.float32]]) -> dict[str, Numbers]:
    return {name: numbers.astype(np.float64) for name, numbers in network.items()}


def _hidden(network: Network, observation: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    inputs = np.concatenate([observation, np.ones((len(observation), 1))], axis=1)
    one = np.tanh(inputs @ network["first"])
    return inputs, one, np.tanh(one @ network["second"] + network["second_bias"])


def _epochs(
    run: Any,  # noqa: ANN401
    state: NDArray[np.float32],
    policy: dict[str, Numbers],
    value: dict[str, Numbers],
    samples: Mapping[str, Numbers],
) -> dict[str, Any]:
    position, batch, size = position_of(state), int(run["batch"]), int(run["slice"])
    networks = (policy, value)
    means, squares = (tuple(_in_float64(each) for each in networks_of(state, kept)) for kept in (1, 2))
    decays = [float(position["mean_decay"]), float(position["square_decay"])]
    for epoch in range(int(run["epochs"])):
        shuffled = shuffled_order(int(run["seed"]), int(position["period"]), epoch, batch)
        for start in range(0, batch, size):
            chosen = {name: numbers[shuffled[start : start + size]] for name, numbers in samples.items()}
            decays = [decays[0] * 0.9, decays[1] * 0.999]
            gradients = (_policy_gradient(run, policy, chosen), _value_gradient(value, chosen))
            for network, gradient, mean, square in zip(networks, gradients, means, squares, strict=True):
                _adam(network, gradient, mean, square, float(run["learning_rate"]), decays)
    return {"policy": policy, "policy_mean": means[0], "policy_square": squares[0], "value_network": value}


def _policy_gradient(run: Any, policy: Network, chosen: Mapping[str, Numbers]) -> dict[str, Numbers]:  # noqa: ANN401
    action, advantage = chosen["action"], chosen["advantage"]
    actions, count, clip = action.shape[1], len(action), float(run["clip"])
    mean = outputs(policy, chosen["observation"])[:, :actions]
    ratio = np.exp(log_probabilities(policy, mean, action) - chosen["old_log_probability"])
    counts = ratio * advantage <= np.clip(ratio, 1 - clip, 1 + clip) * advantage
    slope = np.where(counts, -ratio * advantage, 0.0)[:, None] / count
    log_std = policy["log_std"][:actions]
    away = (action - mean) * np.exp(-log_std)
    gradient = _backwards(policy, chosen["observation"], slope * away * np.exp(-log_std))
    gradient["log_std"] = np.zeros_like(policy["log_std"])
    gradient["log_std"][:actions] = (slope * (away**2 - 1)).sum(axis=0)
    return gradient


def _value_gradient(value: Network, chosen: Mapping[str, Numbers]) -> dict[str, Numbers]:
    error = outputs(value, chosen["observation"])[:, :1] - chosen["lambda_return"][:, None]
    gradient = _backwards(value, chosen["observation"], 2 * error / len(error))
    return {**gradient, "log_std": np.zeros_like(value["log_std"])}


def _backwards(network: Network, observation: Numbers, pull: Numbers) -> dict[str, Numbers]:
    """The gradient, from how the loss changes with the first outputs."""
    inputs, one, two = _hidden(network, observation)
    pull = np.concatenate([pull, np.zeros((len(pull), 2 - pull.shape[1]))], axis=1)
    slope = pull @ network["last"].T * (1 - two**2)
    first_slope = slope @ network["second"].T * (1 - one**2)
    return {
        "first": inputs.T @ first_slope,
        "second": one.T @ slope,
        "second_bias": slope.sum(axis=0),
        "last": two.T @ pull,
        "last_bias": pull.sum(axis=0),
    }


def _adam(
    network: dict[str, Numbers],
    gradient: Network,
    mean: dict[str, Numbers],
    square: dict[str, Numbers],
    learning_rate: float,
    decays: list[float],
) -> None:
    scale, whiten = learning_rate / (1 - decays[0]), 1 / np.sqrt(1 - decays[1])
    for name, slope in gradient.items():
        mean[name] = 0.9 * mean[name] + 0.1 * slope
        square[name] = 0.999 * square[name] + 0.001 * slope**2
        network[name] = network[name] - scale * mean[name] / (np.sqrt(square[name]) * whiten + 1e-8)
