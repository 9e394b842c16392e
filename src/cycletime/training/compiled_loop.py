"""The compiled loop: drives `algorithm_1.py`, in chunks so that progress shows and a run can stop anywhere.

A run ends with the learning period in which its environment steps reach the budget. On CPUs a program carries one run;
on GPUs it may carry several, its lanes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import Agent
from cycletime.agents.agent import AgentState, periods_before_learning
from cycletime.agents.checks import (
    check_agent,
    check_choices,
    check_counts,
    check_env_steps,
    check_precision,
    check_rows,
)
from cycletime.agents.exploration import check_cycle
from cycletime.duration import DurationField, cycle_steps
from cycletime.errors import InputError
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.training.algorithm_1 import ChunkOutput, LoopState, Matmul, ProgramShape, TimedTask, advance, initialize
from cycletime.training.learning_curve import Episodes
from cycletime.training.machine import keep_compiled_programs
from cycletime.training.random_numbers import numbers_per_update, seed_key

MOST_PERIODS, MOST_AGENT_STEPS, MOST_NUMBERS = 1024, 20_000, 2**22
"""What a chunk holds at most for each lane: all its random numbers are drawn beforehand."""
MOST_NUMBERS_TOGETHER = 2**27
"""The random numbers of all lanes together. A chunk draws for as many periods as it can hold, though many lanes have
time for fewer."""
ROOMY_NUMBERS = 2**25
"""A run alone has room for as many numbers in its replay whatever its budget is, so that one program serves all."""
CHUNK_S = 1.0
clock: Callable[[], float] = time.monotonic
"""Tells the seconds that chunks take; tests have one of their own."""


@dataclass(frozen=True)
class CompiledPosition:
    """The state of a program's lanes: with the loop and its agents, enough to resume."""

    state: LoopState
    """Arrays of JAX. The next chunk takes them over: save the position before, or take a copy."""
    period: int
    ended_env_steps: NDArray[np.int64]
    """By lane, the environment steps of all episodes that ended."""
    ended_agent_steps: NDArray[np.int64]

    def copied(self) -> CompiledPosition:
        return replace(self, state=jax.tree.map(jnp.copy, self.state))


@dataclass(frozen=True)
class CompiledChunk:
    """What happened since the last chunk; one entry for each run."""

    position: CompiledPosition
    env_steps: tuple[int, ...]
    episodes: tuple[Episodes, ...]
    metrics: tuple[Mapping[str, NDArray[Any]], ...]
    """By name, one number for each learning period, and as `agent_steps` the run's agent steps at each; none of a run
    that was finished before."""
    finished: Mapping[int, AgentState] = field(default_factory=dict)
    """Runs that reached their budget in this chunk, with what they learned."""


@dataclass(frozen=True, kw_only=True)
class CompiledLoop:
    """Algorithm 1 for runs that share all shapes."""

    task: ClosedFormTask
    agent: Agent
    """The agent, or one whose shapes all agents have."""
    dt: DurationField = DurationField()
    env_steps: int
    """The budget of each run, in environment steps."""
    num_envs: int = 1
    """The environments of each run; the budget, the batch and all counts are of all of them together."""
    width: int = 1
    """The runs that one program carries. Part of a run's identity, since it can change a run's last bits."""
    matmul: Matmul = "fastest"
    """How a GPU multiplies matrices: in TF32 where it can, or in float32, as CPUs do anyway."""

    def __post_init__(self) -> None:
        cycle_steps(self.dt, self.task.env_dt)
        check_agent(self.agent)
        check_cycle(self.agent.exploration, self.dt)
        check_env_steps(self)
        check_counts(self, "width")
        check_rows(self.agent, self.num_envs)
        check_choices(self)
        check_precision(self.task.dtype)
        # The steps of several environments are counted in 32 bits, also beyond the budget.
        last_period = self.shape.timed_task.steps_until_learning(self.agent) * self.shape.timed_task.cycle_steps
        if self.num_envs > 1 and self.env_steps + last_period >= 2**31:
            envs = f"with {self.num_envs} environments, which learn every {last_period:,} environment steps"
            raise InputError(f"env_steps is {self.env_steps}: {envs}, it must be below {2**31 - last_period}.")

    def start(self, seeds: Sequence[int], agents: Sequence[Agent] | None = None) -> CompiledPosition:
        """The lanes before their first step; lanes without a run repeat the last."""
        agent, keys = self._lanes(seeds, agents)
        state = initialize(self.shape, agent, keys)
        nothing = np.zeros(self.width, np.int64)
        return CompiledPosition(state, 0, nothing, nothing)

    def run(
        self,
        seeds: Sequence[int],
        agents: Sequence[Agent] | None = None,
        position: CompiledPosition | None = None,
        *,
        until: int | None = None,
    ) -> Iterator[CompiledChunk]:
        """Train one agent for each seed, from the start or from a position; ends when all reached the budget.

        A run that was finished at the position is not reported again. With `until`, it ends after so many learning
        periods at the latest, counted from the runs' start.
        """
        keep_compiled_programs()
        agent, keys = self._lanes(seeds, agents)
        if position is None:
            position = self.start(seeds, agents)
        self._check_position(position, keys)
        runs, before_learning = len(seeds), periods_before_learning(self.agent, self.num_envs)
        second_has: dict[bool, int] = {}  # of periods with learning and without, which take far longer or shorter
        while (left := self._periods_left(position, runs, until)) > 0:
            began, learns = clock(), position.period >= before_learning
            if not learns:
                left = min(left, before_learning - position.period)
            now = min(left, second_has.get(learns, 1))  # one, until it is known how long one takes
            chunk = self._advance(agent, position, now, runs, learns=learns)
            took_s = clock() - began
            yield chunk
            position = chunk.position
            most = self.shape.periods
            second_has[learns] = int(np.clip(CHUNK_S * now / took_s, 1, most)) if took_s else most

    @cached_property
    def shape(self) -> ProgramShape:
        updates = self._timed_task.updates_at_once(self.agent)
        numbers = max(1, updates * numbers_per_update(jax.tree.structure(self.agent), self.task.action_size))
        most_numbers = min(MOST_NUMBERS, int(MOST_NUMBERS_TOGETHER / self.width))
        periods = min(MOST_PERIODS, MOST_AGENT_STEPS // max(self.agent.period, self.num_envs), most_numbers // numbers)
        capacity = self.room
        if self.width == 1:  # where memory is no concern, the same for as many budgets as can be
            row_numbers = (2 * self.task.observation_size + self.task.action_size + 3) * self.num_envs
            roomy = max(1 << (self.room - 1).bit_length(), ROOMY_NUMBERS // row_numbers)
            capacity = min(self.agent.capacity // self.num_envs, roomy)
        return ProgramShape(
            timed_task=self._timed_task,
            capacity=capacity,
            periods=max(1, periods),
            alone=self.width == 1,
            matmul=self.matmul,
        )

    @cached_property
    def room(self) -> int:
        """The rows of its buffer that a run can fill; checkpoints keep no others."""
        timed_task = self._timed_task
        # No run takes more agent steps: full cycles, and one more for each episode that cuts a cycle short.
        shortest = cycle_steps(self.task.shortest_episode, self.task.env_dt)
        steps = ceil(self.env_steps / timed_task.cycle_steps) + ceil(self.env_steps / shortest)
        rows = ceil((steps + timed_task.steps_until_learning(self.agent)) / self.num_envs)
        return min(self.agent.capacity // self.num_envs, rows)

    @cached_property
    def _timed_task(self) -> TimedTask:
        return TimedTask(self.task, cycle_steps(self.dt, self.task.env_dt), self.num_envs)

    def _lanes(self, seeds: Sequence[int], agents: Sequence[Agent] | None) -> tuple[Agent, jax.Array]:
        """The agents of all lanes as one whose rates are arrays, and the keys of their seeds."""
        agents = [self.agent] * len(seeds) if agents is None else list(agents)
        self._check_lanes(seeds, agents)
        # Of NumPy, since arrays of JAX take a tenth of a millisecond each, which short runs feel.
        if self.width == 1:
            return jax.tree.map(np.dtype(self.task.dtype).type, agents[0]), seed_key(seeds[0])
        lanes = [*range(len(seeds)), *[len(seeds) - 1] * (self.width - len(seeds))]
        rates = (agents[lane] for lane in lanes)
        agent: Agent = jax.tree.map(lambda *each: np.asarray(each, self.task.dtype), *rates)
        return agent, jnp.stack([seed_key(seeds[lane]) for lane in lanes])

    def _check_lanes(self, seeds: Sequence[int], agents: Sequence[Agent]) -> None:
        if not 1 <= len(seeds) <= self.width:
            raise InputError(f"There are {len(seeds)} seeds: a program of width {self.width} takes 1 to {self.width}.")
        if len(agents) != len(seeds):
            raise InputError(f"There are {len(agents)} agents for {len(seeds)} seeds: give one for each seed.")
        for agent in agents:
            if jax.tree.structure(agent) != jax.tree.structure(self.agent):  # type: ignore[operator]
                raise InputError(f"{agent} does not have the shapes of {self.agent}: only rates may differ.")

    def _check_position(self, position: CompiledPosition, keys: jax.Array) -> None:
        if position.state.seed_key.is_deleted():
            remedy = "as in position.copied(), before you ask for the next chunk"
            taken = "The position was taken over by the chunk after it"
            raise InputError(f"{taken}: copy a position that you want to use later, {remedy}.")
        given, own = (np.asarray(jax.random.key_data(each)).tolist() for each in (position.state.seed_key, keys))
        if given != own:
            raise InputError("The position belongs to other seeds, or to another width: give those that it came from.")

    def _periods_left(self, position: CompiledPosition, runs: int, until: int | None) -> int:
        """The most periods in which no run that is not finished can pass its budget by more than its last period."""
        timed_task = self.shape.timed_task
        most = timed_task.steps_until_learning(self.agent) * timed_task.cycle_steps
        left = self.env_steps - self._env_steps(position)[:runs]
        unfinished = left[left > 0]
        periods = ceil(int(unfinished.min()) / most) if len(unfinished) else 0
        return periods if until is None else min(periods, until - position.period)

    def _env_steps(self, position: CompiledPosition) -> NDArray[np.int64]:
        walk = position.state.walk
        if walk.env_steps is not None:
            return np.atleast_1d(np.asarray(walk.env_steps, np.int64))
        return position.ended_env_steps + np.atleast_1d(np.asarray(walk.state.env_steps, np.int64))

    def _advance(
        self, agent: Agent, position: CompiledPosition, periods: int, runs: int, *, learns: bool
    ) -> CompiledChunk:
        before, ended = self._env_steps(position), np.array(position.state.walk.episodes, np.int64, ndmin=1)
        state, output = advance(self.shape, agent, position.state, np.int32(periods), learns=learns)
        output = jax.device_get(output)
        counts = np.atleast_1d(state.walk.episodes) - ended
        episodes = [self._episodes(output, position, lane, int(counts[lane])) for lane in range(self.width)]
        ended_env_steps = position.ended_env_steps + [each.length_steps.sum() for each in episodes]
        pairs = zip(episodes, position.ended_agent_steps, strict=True)
        ended_agent_steps = np.array([each.agent_steps[-1] if len(each) else old for each, old in pairs])
        position = CompiledPosition(state, position.period + periods, ended_env_steps, ended_agent_steps)
        after = self._env_steps(position)
        learnings = periods * self._timed_task.updates_at_once(self.agent)
        metrics = {name: table.reshape(self.width, -1)[:, :learnings] for name, table in output.metrics.items()}
        if metrics:
            metrics["agent_steps"] = metrics["agent_steps"].astype(np.int64)
        going = before < self.env_steps
        finished = [lane for lane in range(runs) if going[lane] and after[lane] >= self.env_steps]
        return CompiledChunk(
            position=position,
            env_steps=tuple(min(int(steps), self.env_steps) for steps in after[:runs]),
            episodes=tuple(each.up_to(self.env_steps) for each in episodes[:runs]),
            metrics=tuple(
                {name: table[lane] for name, table in metrics.items() if going[lane]} for lane in range(runs)
            ),
            finished=self._learned(state, finished),
        )

    def _learned(self, state: LoopState, lanes: Sequence[int]) -> dict[int, AgentState]:
        """The agents' states of lanes, in arrays that the next chunk does not reuse."""
        # All at once, since hundreds of lanes have tens of thousands of arrays.
        psi = jax.device_get(state.psi) if lanes else None
        if self.width == 1:
            return {lane: jax.tree.map(np.array, psi) for lane in lanes}
        return {lane: jax.tree.map(lambda leaf, lane=lane: leaf[lane].copy(), psi) for lane in lanes}

    def _episodes(self, output: ChunkOutput, position: CompiledPosition, lane: int, count: int) -> Episodes:
        columns = (table for table in output.episodes if table is not None)
        tables = [np.asarray(table).reshape(self.width, -1)[lane] for table in columns]
        if count > len(tables[0]):
            wrong = f"{self.task} has a wrong shortest_episode"
            raise RuntimeError(f"{count} episodes ended in a chunk with room for {len(tables[0])}: {wrong}.")
        returns, env_steps, agent_steps, *of_run = (table[:count] for table in tables)
        if of_run:
            run_env_steps, run_agent_steps = (table.astype(np.int64) for table in of_run)
        else:
            run_env_steps = position.ended_env_steps[lane] + np.cumsum(env_steps, dtype=np.int64)
            run_agent_steps = position.ended_agent_steps[lane] + np.cumsum(agent_steps, dtype=np.int64)
        return Episodes(
            env_steps=run_env_steps,
            agent_steps=run_agent_steps,
            returns=returns.astype(np.float64),
            length_steps=env_steps.astype(np.int64),
        )
