"""What PPO's kernel computes, once more in JAX: its update and its tasks in float64; and runs without any files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.agents.networks import policy_log_probability, state_value
from cycletime.agents.ppo import PPOState, Sample, lambda_advantages, normalize
from cycletime.cuda import ppo
from cycletime.cuda.device import Device, DeviceRun, Slice
from cycletime.cuda.layout import ACTIONS, INPUTS, OBSERVATION, State, Status, position_of, sizes_of, timed_task_of
from cycletime.cuda.ppo import ENDED, ROW, TERMINAL
from cycletime.training.learning_curve import Episodes
from cycletime.training.spec import RunSpec
from tests.cuda.device_checks.philox import PhiloxStream, philox, shuffled_order
from tests.cuda.device_checks.tasks import KERNEL_TASKS


@dataclass(frozen=True)
class Check:
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
    spec: RunSpec
    state: State
    records: NDArray[Any]
    reports: NDArray[Any]

    @property
    def bits(self) -> bytes:
        return b"".join(each.tobytes() for each in (self.state, self.records, self.reports))

    @property
    def is_sound(self) -> bool:
        return all(np.isfinite(part).all() for network in ppo.networks_of(self.state) for part in network.values())

    @property
    def episodes(self) -> Episodes:
        lengths = self.records["env_steps"].astype(np.int64)
        agent_steps = np.cumsum(self.records["agent_steps"], dtype=np.int64)
        returns = self.records["episode_return"].astype(np.float64)
        return Episodes(np.cumsum(lengths), agent_steps, returns, lengths).up_to(self.spec.env_steps)


def slice_of(specs: Sequence[RunSpec], states: Sequence[State], time_s: float = LONG_S, most_periods: int = 0) -> Slice:
    runs = [DeviceRun(ppo.describe_run(spec), state) for spec, state in zip(specs, states, strict=True)]
    return Slice(
        runs,
        most_records=max(_most_records(spec, run) for spec, run in zip(specs, runs, strict=True)),
        most_reports=512,
        time_s=time_s,
        most_periods=most_periods,
    )


BESIDE = np.dtype([("value", np.float32), ("reward", np.float32), ("old_mean", np.float32, ACTIONS)])


def last_batch(device: Device, work: Slice) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows of the first block's last batch, and what is kept beside them."""
    rows = ppo.most_rows(np.stack([run.record for run in work.runs]))
    words, start = device.card.get(device._scratch)[0], rows * INPUTS
    return words[:start].view(ROW), words[start : start + 4 * rows].view(BESIDE)


def train_runs(device: Device, specs: Sequence[RunSpec], slice_s: float = LONG_S) -> list[TrainedRun]:
    """Train runs to their ends, in their order and in slices of a time; what they are then."""
    states = {run: ppo.initial_state(spec) for run, spec in enumerate(specs)}
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
    batch, world, known = spec.agent.period, timed_task_of(spec), KERNEL_TASKS[spec.world.name]
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
    numbers = KERNEL_TASKS[spec.world.name].begin(philox(spec.seed, PhiloxStream.STARTS, episode))
    return task.start(*map(jnp.asarray, numbers))


def pad_observation(observation: Any) -> NDArray[np.float64]:  # noqa: ANN401 - an array of JAX's or NumPy's
    """An observation as the kernel has it, with zeros for what the task has not."""
    found = np.zeros(OBSERVATION)
    found[: len(observation)] = observation
    return found


def replay_update(
    spec: RunSpec, state: State, rows: NDArray[Any], beside: NDArray[Any]
) -> tuple[dict[str, NDArray[np.float64]], PPOState]:
    """What one update makes of the state of a run and the rows of its batch, by the agent's own functions in float64.

    The state is that before the update; observations, actions, successors and rewards are taken from the rows.
    """
    agent, sizes, position = ppo.agent_of(spec), sizes_of(spec), position_of(state)
    size, successor = agent.slice_sizes[1], rows["next"][: agent.batch]
    with jax.enable_x64(True):
        psi = jax.tree.map(
            lambda leaf: leaf.astype(jnp.float64) if leaf.ndim else leaf, ppo.agent_state_of(state, spec)
        )
        seen = rows["observation"][:, : sizes.observations].astype(np.float64)
        values = np.asarray(state_value(psi.parameters.value, jnp.asarray(seen)))
        after, ended = values[successor & (TERMINAL - 1)], (successor & ENDED) / ENDED
        after = np.where(successor & TERMINAL, 0.0, after)
        rewards, value = beside["reward"][: agent.batch].astype(np.float64), values[: agent.batch]
        advantage = lambda_advantages(rewards, value, after, ended, agent.discount, agent.trace_decay)  # type: ignore[arg-type]
        observation = seen[: agent.batch]
        action = rows["action"][: agent.batch, : sizes.actions].astype(np.float64)
        samples = {
            "observation": observation,
            "action": action,
            "advantage": np.asarray(normalize(advantage)),
            "lambda_return": np.asarray(advantage + value),
            "old_log_probability": np.asarray(policy_log_probability(psi.parameters.policy, observation, action)),  # type: ignore[arg-type]
        }
        for epoch in range(agent.epochs):
            order = shuffled_order(spec.seed, int(position["period"]), epoch, agent.batch)
            for first in range(0, agent.batch, size):
                chosen = {name: part[order[first : first + size]] for name, part in samples.items()}
                psi = _update(agent, psi, Sample(**chosen))  # type: ignore[arg-type]
    return samples, psi


@jax.jit
def _update(agent: PPOAgent, psi: PPOState, minibatch: Sample) -> PPOState:
    return agent.update(psi, minibatch)
