"""What PPO's kernel computes, once more: its update in float64, its tasks in JAX, and runs without any files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.cuda.device import Device, DeviceRun, Slice
from cycletime.cuda.layout import INPUTS, OBSERVATION, State, Status, position_of, timed_task_of
from cycletime.cuda.philox import PhiloxStream, philox, shuffled_order
from cycletime.cuda.ppo import BESIDE, ENDED, ROW, TERMINAL, describe_run, initial_state, most_rows, networks_of
from cycletime.cuda.tasks import TASKS
from cycletime.training.learning_curve import Episodes
from cycletime.training.spec import RunSpec


@dataclass(frozen=True)
class Check:
    """One comparison, with what may be found at most."""

    name: str
    found: float
    most: float
    unit: str = ""

    @property
    def passed(self) -> bool:
        """Whether it is within the limit; NaN is not."""
        return self.found <= self.most


LONG_S = 3600.0
"""A slice that nothing outlasts."""


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A run that is finished."""

    spec: RunSpec
    state: State
    records: NDArray[Any]
    reports: NDArray[Any]

    @property
    def bits(self) -> bytes:
        return b"".join(each.tobytes() for each in (self.state, self.records, self.reports))

    @property
    def is_sound(self) -> bool:
        return all(np.isfinite(part).all() for network in networks_of(self.state) for part in network.values())

    @property
    def episodes(self) -> Episodes:
        lengths = self.records["env_steps"].astype(np.int64)
        agent_steps = np.cumsum(self.records["agent_steps"], dtype=np.int64)
        returns = self.records["episode_return"].astype(np.float64)
        return Episodes(np.cumsum(lengths), agent_steps, returns, lengths).up_to(self.spec.env_steps)


def slice_of(specs: Sequence[RunSpec], states: Sequence[State], time_s: float = LONG_S, most_periods: int = 0) -> Slice:
    """A slice with room for all records and reports of some runs."""
    runs = [DeviceRun(describe_run(spec), state) for spec, state in zip(specs, states, strict=True)]
    return Slice(
        runs,
        most_records=max(_most_records(spec, run) for spec, run in zip(specs, runs, strict=True)),
        most_reports=512,
        time_s=time_s,
        most_periods=most_periods,
    )


def last_batch(device: Device, work: Slice) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows of the first block's last batch, and what is kept beside them."""
    rows = most_rows(np.stack([run.record for run in work.runs]))
    words, start = device.last_scratch()[0], rows * INPUTS
    return words[:start].view(ROW), words[start : start + 4 * rows].view(BESIDE)


def train_runs(device: Device, specs: Sequence[RunSpec], slice_s: float = LONG_S) -> list[TrainedRun]:
    """Train runs to their ends, in their order and in slices of a time; what they are then."""
    states = {run: initial_state(spec) for run, spec in enumerate(specs)}
    records: dict[int, list[NDArray[Any]]] = {run: [] for run in states}
    reports: dict[int, list[NDArray[Any]]] = {run: [] for run in states}
    left = list(states)
    while left:
        work = slice_of([specs[run] for run in left], [states[run] for run in left], slice_s)
        for run, result in zip(left, device.train(work), strict=True):
            states[run] = result.run.state
            records[run].append(result.records)
            reports[run].append(result.reports)
        left = [run for run in left if position_of(states[run])["status"] != Status.FINISHED]
    return [
        TrainedRun(spec, states[run], np.concatenate(records[run]), np.concatenate(reports[run]))
        for run, spec in enumerate(specs)
    ]


def _most_records(spec: RunSpec, run: DeviceRun) -> int:
    world = timed_task_of(spec)
    return world.most_episodes(ceil(spec.env_steps / world.cycle_steps)) + int(run.record["most_episodes"])


@dataclass(frozen=True)
class Deviation:
    """How far a batch of the kernel's is from the task's."""

    observation: float
    reward: float
    """The largest difference, relative to the largest reward where that is more than 1; or of an episode's return,
    relative to the sum of its rewards' sizes."""
    wrong_ends: int
    """Cycles after which an episode ended in one of them only, or of whose length the record is wrong."""
    episodes: int
    """That ended in the batch."""

    state: Any


def deviation(spec: RunSpec, rows: NDArray[Any], beside: NDArray[Any], records: NDArray[Any]) -> Deviation:
    """Compare the first batch of a run, from its first step on.

    After each cycle the task goes on from what the kernel saw, so that rounding does not grow for an episode: that of
    a chaotic task, such as the acrobot, would.
    """
    batch, world, known = spec.agent.period, timed_task_of(spec), TASKS[spec.world.name]
    seen, rewards, wrong = np.zeros(batch), np.zeros((2, batch)), 0
    returns: list[float] = []
    with jax.enable_x64(True):
        task = replace(world.task, dtype=jnp.float64)
        cycle = jax.jit(partial(task.cycle, cycle_steps=world.cycle_steps))
        episode, length, state = 0, 0, start_state(spec, task, 0)
        for row in range(batch):
            observation = rows["observation"][row].astype(np.float64)
            seen[row] = np.abs(observation - pad_observation(task.observe(state))).max()
            state = known.as_seen(observation, state)
            step = cycle(state, rows["action"][row, : task.action_size].astype(np.float64))
            rewards[:, row] = beside["reward"][row], step.reward
            length, state, ended = length + 1, step.state, bool(step.terminated | step.truncated)
            wrong += bool(rows["next"][row] & ENDED) != ended
            if ended:
                recorded = records[episode : episode + 1]
                expected = [(length, int(state.env_steps))]
                wrong += (
                    list(zip(recorded["agent_steps"].tolist(), recorded["env_steps"].tolist(), strict=True)) != expected
                )
                sums = rewards[1, row + 1 - length : row + 1]
                scale = max(1.0, float(np.abs(sums).sum()))
                returns += [abs(float(each) - float(sums.sum())) / scale for each in recorded["episode_return"]]
                episode, length, state = episode + 1, 0, start_state(spec, task, episode + 1)
    reward = np.abs(rewards[0] - rewards[1]).max() / max(1.0, np.abs(rewards[1]).max())
    return Deviation(float(seen.max()), float(np.max([reward, *returns])), wrong, episode, state)


def start_state(spec: RunSpec, task: Any, episode: int) -> Any:  # noqa: ANN401 - any task
    """The state that an episode of the kernel's begins with."""
    numbers = TASKS[spec.world.name].begin(philox(spec.seed, PhiloxStream.STARTS, episode))
    return task.start(*map(jnp.asarray, numbers))


def pad_observation(observation: Any) -> NDArray[np.float64]:  # noqa: ANN401 - an array of JAX's or NumPy's
    """An observation as the kernel has it, with zeros for what the task has not."""
    found = np.zeros(OBSERVATION)
    found[: len(observation)] = observation
    return found


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
    """What the last layer gives."""
    _, _, two = _hidden(network, observation)
    return two @ network["last"] + network["last_bias"]


def log_probabilities(policy: Network, mean: Numbers, action: Numbers) -> Numbers:
    """The log-probability of actions, each component normal."""
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
    """Policy and value after all mini-batches."""
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
