"""How long `act` and `learn` take on this machine, and which cycle times leave room for them.

The calls are those of the stepped loop, so that a slow call here is a late cycle there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.agents import Agent, Buffer, SACAgent
from cycletime.agents.agent import cycles_between_updates
from cycletime.agents.checks import check_agent, check_precision, check_rows
from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError
from cycletime.training.algorithm_1 import initial_agent_state
from cycletime.training.random_numbers import seed_key
from cycletime.training.stepped_agent import (
    MOST_ROWS,
    Actor,
    PackedAgentState,
    RandomNumbers,
    store_and_learn,
    with_array_rates,
)

Call: TypeAlias = Callable[[], object]

LearnWay: TypeAlias = Literal["inline", "between_episodes", "background"]
"""When an agent learns: in the cycle in which it falls due, while the robot resets, or in a thread beside acting."""
DEFAULT_MARGIN = 0.2
"""The part of each cycle that acting and learning leave free, where nothing else is asked for (docs/latency.md)."""
MIN_REPEATS = 5
_DISTINCT_ROWS = 10_000
"""Rows that a replay is filled with, again and again."""


@dataclass(frozen=True)
class CallTimes:
    first_s: float
    """The first call, in which it is compiled, or read from the disk where compiled programs are kept."""
    median_s: float
    mean_s: float
    p99_s: float
    """The 99th percentile; of fewer than a hundred repeats the worst."""
    worst_s: float
    count: int


def measure(
    call: Call, budget_s: float, clock: Callable[[], float] = time.monotonic, fewest: int = MIN_REPEATS
) -> CallTimes:
    """Call once, once more, and then until the budget of seconds is spent, but at least a few times."""
    first_s = _timed(call, clock)
    call()  # where memory from compilation is still given back
    taken: list[float] = []
    spent = 0.0
    while len(taken) < fewest or spent < budget_s:
        taken.append(_timed(call, clock))
        spent += taken[-1]
    return CallTimes(
        first_s=first_s,
        median_s=float(np.median(taken)),
        mean_s=float(np.mean(taken)),
        p99_s=float(np.quantile(taken, 0.99, method="higher")),
        worst_s=max(taken),
        count=len(taken),
    )


def measure_agents(
    agents: Mapping[Duration, Agent],
    observation_size: int,
    action_size: int,
    budget_s: float,
    tell: Callable[[str], object] = lambda what: None,
    num_envs: int = 1,
) -> tuple[CallTimes, dict[Duration, CallTimes]]:
    """One `act`, and one `learn` at each cycle time, measured once for agents that learn by the same program."""
    tell("Timing act ...")
    sizes = observation_size, action_size
    act = measure(act_call(next(iter(agents.values())), *sizes, num_envs), budget_s)
    measured: dict[object, CallTimes] = {}
    for dt, agent in agents.items():
        tell(f"Timing learn at {dt} ...")
        part = learn_program_key(agent)
        if part not in measured:
            measured[part] = measure(learn_call(agent, *sizes, num_envs=num_envs), budget_s)
    return act, {dt: measured[learn_program_key(agent)] for dt, agent in agents.items()}


def learn_program_key(agent: Agent) -> Agent:
    """The same for agents whose learning is the same program: rates and SAC's warm-up are set to a common value."""
    _check_agent(agent)
    same: Agent = jax.tree.map(lambda rate: 0.5, agent)
    return replace(same, warmup_steps=0) if isinstance(same, SACAgent) else same


def act_call(agent: Agent, observation_size: int, action_size: int, num_envs: int = 1) -> Call:
    """One `act` as the stepped loop calls it, with a new policy each time that the agent would have learned."""
    _check_agent(agent)
    check_rows(agent, num_envs)
    agent = with_array_rates(agent)
    key, random = seed_key(0), RandomNumbers(agent, seed_key(0), action_size, num_envs=num_envs)
    sizes = observation_size, action_size, num_envs
    policies = [PackedAgentState.of(initial_agent_state(agent, key, *sizes)) for _ in range(2)]
    actor = Actor(agent, policies[0], num_envs, action_size)
    observation = np.ones((num_envs, observation_size), np.float32)
    cycles, rows = 0, cycles_between_updates(agent, num_envs)

    def act() -> None:
        nonlocal cycles
        updates, row = divmod(cycles, rows)
        noise = random.noise(updates * random.updates, row)
        actor.act(policies[updates % 2], observation, noise, agent.random_steps + cycles * num_envs)
        cycles += 1

    return act


def learn_call(
    agent: Agent, observation_size: int, action_size: int, capacity: int | None = None, num_envs: int = 1
) -> Call:
    """One learning as the stepped loop calls it, from a full buffer and always from the same policy.

    The buffer may have room for fewer transitions than the agent's, as that of a run with a small budget.
    """
    _check_agent(agent)
    agent = with_array_rates(agent)
    psi = PackedAgentState.of(initial_agent_state(agent, seed_key(0), observation_size, action_size, num_envs))
    random = RandomNumbers(agent, seed_key(0), action_size, num_envs=num_envs)
    buffer = _full_buffer((capacity or agent.capacity) // num_envs, observation_size, action_size, num_envs)
    rows = cycles_between_updates(agent, num_envs)
    room = min(MOST_ROWS, rows)
    block = np.array(buffer.rows[np.arange(room) % buffer.capacity])
    pending = np.int32((rows - 1) % room + 1)
    period = 0

    def learn() -> None:
        nonlocal buffer, period
        draws, index = random.draws(period)
        learned = store_and_learn(agent, psi, buffer, block, pending, draws, index, updates=random.updates)
        jax.block_until_ready(learned)  # type: ignore[no-untyped-call]
        buffer, period = learned.buffer, period + random.updates

    return learn


@dataclass(frozen=True, kw_only=True)
class TimingConditions:
    margin: float = DEFAULT_MARGIN
    """The part of a cycle that is left to communication and to everything else."""
    episode: DurationLike = "4s"
    reset_time: DurationLike = "2s"

    def __post_init__(self) -> None:
        if isinstance(self.margin, bool) or not 0 <= self.margin < 1:
            raise InputError(f"margin is {self.margin}: it must be a part of the cycle, at least 0 and below 1.")
        object.__setattr__(self, "episode", Duration(self.episode))
        object.__setattr__(self, "reset_time", Duration(self.reset_time))


@dataclass(frozen=True)
class Headroom:
    fits: bool
    share: float
    """The time needed over the time there is, however much of it may be used."""


@dataclass(frozen=True)
class TimingVerdict:
    """The three ways to learn at one cycle time. Times are 99th percentiles where nothing else is said."""

    dt: Duration
    act: Headroom
    """Only acting: `act` over the cycle, the margin left free."""
    inline: Headroom
    """Learning in the cycle in which it falls due: `act` and `learn` over that cycle, the margin left free."""
    between_episodes: Headroom
    """Learning while the robot resets: all updates of an episode, one of them slow and the others average, over the
    reset time."""
    background: Headroom
    """Learning beside acting: the average `learn` over the time between two of them."""
    updates: int
    """That fall due in an episode, at most."""
    stale_cycles: int
    """Cycles that begin during a background learning, and act by the policy from before it."""


def shortest_cycle_s(
    way: LearnWay, period: int, act: CallTimes, learn: CallTimes, margin: float = DEFAULT_MARGIN
) -> Fraction:
    """The shortest cycle, in seconds, that leaves time to act and learn: the one answer for all commands.

    A cycle does what falls into it within its usable part, `act` and, inline, `learn`, both at their 99th percentiles.
    In the background the average `learn` must be done before the next one falls due, `period` agent steps later.
    Between episodes a robot waits for it, so that acting alone counts.
    """
    busy_s = _exact(act.p99_s) + (_exact(learn.p99_s) if way == "inline" else 0)
    shortest_s = busy_s / (1 - _exact(margin))
    return max(shortest_s, _exact(learn.mean_s) / period) if way == "background" else shortest_s


def judge_timing(
    dt: DurationLike, period: int, act: CallTimes, learn: CallTimes, conditions: TimingConditions
) -> TimingVerdict:
    """Which ways to learn a cycle time leaves time for, of an agent that learns every `period` agent steps."""
    dt = Duration(dt)
    cycle_s = dt.exact_s
    act_s, learn_s, mean_s = _exact(act.p99_s), _exact(learn.p99_s), _exact(learn.mean_s)
    updates = ceil(Fraction(ceil(Duration(conditions.episode) / dt), period))
    # Many updates are hardly all slow ones.
    between = ((updates - 1) * mean_s + learn_s) / Duration(conditions.reset_time).exact_s

    def fits(way: LearnWay) -> bool:
        return cycle_s >= shortest_cycle_s(way, period, act, learn, conditions.margin)

    return TimingVerdict(
        dt=dt,
        act=Headroom(fits("between_episodes"), float(act_s / cycle_s)),
        inline=Headroom(fits("inline"), float((act_s + learn_s) / cycle_s)),
        between_episodes=Headroom(fits("between_episodes") and between <= 1, float(between)),
        background=Headroom(fits("background"), float(mean_s / (period * cycle_s))),
        updates=updates,
        stale_cycles=ceil(learn_s / cycle_s),
    )


def shortest_dts(verdicts: Collection[TimingVerdict]) -> Mapping[str, Duration | None]:
    """For each way, the shortest of the judged cycle times that leaves time for it; None where none does."""
    return {
        way: min((each.dt for each in verdicts if getattr(each, way).fits), default=None) for way in get_args(LearnWay)
    }


def _timed(call: Call, clock: Callable[[], float]) -> float:
    began = clock()
    call()
    return clock() - began


def _exact(number: float) -> Fraction:
    """The decimal that a float prints as, so that what is exactly at an edge counts as such."""
    return Fraction(repr(float(number)))


def _full_buffer(capacity: int, observation_size: int, action_size: int, num_envs: int) -> Buffer:
    buffer = Buffer.empty(capacity, observation_size, action_size, num_envs)
    shape = (min(capacity, _DISTINCT_ROWS), *buffer.rows.shape[1:])
    rows = np.random.default_rng(0).standard_normal(shape, np.float32)
    rows[..., -2:] = 0
    return replace(
        buffer, rows=jnp.asarray(rows)[jnp.arange(capacity) % len(rows)], stored=jnp.asarray(capacity, jnp.int32)
    )


def _check_agent(agent: Agent) -> None:
    check_agent(agent)
    check_precision(jnp.float32)
