from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from cycletime import rules
from cycletime.agents import ActorCriticAgent, Agent, PPOAgent, SACAgent, agent_for
from cycletime.agents.agent import cycles_between_updates
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.training import latency
from cycletime.training.latency import (
    Call,
    CallTimes,
    Headroom,
    TimingConditions,
    act_call,
    judge_timing,
    learn_call,
    learn_program_key,
    measure,
    shortest_dts,
)
from cycletime.training.stepped_agent import Actor, MetricsTable, RandomNumbers, UpdateResult, store_and_learn
from tests.training.loops.conftest import TickingClock

pytestmark = pytest.mark.usefixtures("compiled_quickly")

SMALL = [
    PPOAgent(batch=12, minibatch=12, epochs=1, hidden=(4,)),
    SACAgent(minibatch=4, hidden=(4,), replay_capacity=20, warmup_steps=5),
    ActorCriticAgent(hidden=(4,)),
]
NAMES = ["ppo", "sac", "actor-critic"]


def took(seconds: float, mean_s: float | None = None) -> CallTimes:
    """Calls with this 99th percentile; no verdict looks at the other numbers."""
    average = seconds if mean_s is None else mean_s
    return CallTimes(first_s=99.0, median_s=77.0, mean_s=average, p99_s=seconds, worst_s=88.0, count=1000)


class FakeCall:
    """Each call takes the next of some times, on a clock that nothing else moves."""

    def __init__(self, seconds: Iterator[float]) -> None:
        self.now, self.calls, self.seconds = 1000.0, 0, seconds

    def __call__(self) -> None:
        self.now += next(self.seconds)
        self.calls += 1

    def clock(self) -> float:
        return self.now


def test_the_first_call_is_apart_and_the_second_is_not_counted() -> None:
    call = FakeCall(iter([64.0, 32.0, 1.0, 2.0, 3.0, 4.0, 10.0]))
    assert measure(call, 0.0, call.clock) == CallTimes(
        first_s=64.0, median_s=3.0, mean_s=4.0, p99_s=10.0, worst_s=10.0, count=5
    )
    assert call.calls == 7


@pytest.mark.parametrize(("budget_s", "count"), [(0.5, 5), (5.0, 5), (5.25, 6), (6.0, 6), (200.0, 200)])
def test_calls_are_repeated_until_the_budget_is_spent_and_five_times_at_least(budget_s: float, count: int) -> None:
    call = FakeCall(iter(lambda: 1.0, None))
    assert measure(call, budget_s, call.clock).count == count


@pytest.mark.parametrize(("count", "p99_s"), [(50, 50.0), (101, 100.0), (1001, 991.0)])
def test_one_call_in_a_hundred_may_be_slower_than_the_99th_percentile(count: int, p99_s: float) -> None:
    taken = [float(n) for n in range(1, count + 1)]
    call = FakeCall(iter([1.0, 1.0, *taken]))
    times = measure(call, sum(taken), call.clock)
    assert (times.count, times.p99_s, times.worst_s) == (count, p99_s, float(count))


@pytest.mark.parametrize("agent", SMALL, ids=NAMES)
@pytest.mark.parametrize("make_call", [act_call, learn_call])
def test_every_agent_can_be_measured(agent: Agent, make_call: Callable[..., Call]) -> None:
    """By a clock on which every call takes a second."""
    assert measure(make_call(agent, 3, 2), 0.0, TickingClock(1.0)) == CallTimes(1.0, 1.0, 1.0, 1.0, 1.0, 5)


@pytest.mark.parametrize("agent", SMALL, ids=NAMES)
def test_a_learning_is_of_a_full_buffer_and_the_rows_since_the_last_one(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, ...]] = []
    real = store_and_learn

    def spy(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        _, _, buffer, rows, count, *_ = arguments
        seen.append((int(buffer.filled), rows.shape, int(count)))
        learned = real(*arguments, **named)
        numbers = np.asarray(learned.metrics.numbers)
        assert len(numbers) == named["updates"] == 1
        assert np.isfinite(numbers).all()
        return learned

    monkeypatch.setattr(latency, "store_and_learn", spy)
    learn_call(agent, 3, 2)()
    assert seen == [(agent.capacity, (agent.period, 1, 2 * 3 + 2 + 3), agent.period)]


@pytest.mark.parametrize(("batch", "pending"), [(12, 2), (10, 5), (5, 5), (4, 4)])
def test_rows_that_wait_are_those_beyond_whole_blocks(
    batch: int, pending: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, ...]] = []

    def spy(*arguments: Any, **named: Any) -> UpdateResult:  # noqa: ANN401
        seen.append(arguments)
        return UpdateResult(arguments[1], arguments[2], MetricsTable((), jax.numpy.zeros(0)))

    # What compiles is left out.
    monkeypatch.setattr(latency, "initial_agent_state", lambda *_: None)
    monkeypatch.setattr(RandomNumbers, "draws", lambda *_: (None, 0))
    monkeypatch.setattr(latency, "store_and_learn", spy)
    monkeypatch.setattr(latency, "MOST_ROWS", 5)
    learn_call(PPOAgent(batch=batch, minibatch=2), 3, 2)()
    block, count = seen[0][3:5]
    assert (len(block), count) == (min(5, batch), pending)


@pytest.mark.parametrize("agent", SMALL[:2], ids=["ppo", "sac"])
def test_acting_takes_the_next_noise_and_a_new_policy_after_each_period(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[int, bytes]] = []
    real = Actor.act

    def spy(self: Actor, psi: Any, observation: Any, noise: Any, agent_steps: int) -> Any:  # noqa: ANN401
        assert agent_steps >= agent.random_steps
        taken.append((id(psi), noise.tobytes()))
        return real(self, psi, observation, noise, agent_steps)

    monkeypatch.setattr(Actor, "act", spy)
    act = act_call(agent, 3, 2)
    for _ in range(2 * agent.period):
        act()
    policies, noises = zip(*taken, strict=True)
    assert len(set(noises)) == 2 * agent.period
    assert len(set(policies[: agent.period])) == len(set(policies[agent.period :])) == 1
    assert policies[0] != policies[agent.period]


@pytest.mark.parametrize(("agent", "cycles", "updates"), [(SMALL[0], 3, 1), (SMALL[1], 1, 4)], ids=["ppo", "sac"])
def test_with_several_environments_a_cycle_acts_for_all_and_learns_as_often(
    agent: Agent, cycles: int, updates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, ...]] = []
    acts = Actor.act

    def act(self: Actor, psi: Any, observation: Any, *others: Any) -> Any:  # noqa: ANN401
        seen.append(observation.shape)
        return acts(self, psi, observation, *others)

    monkeypatch.setattr(Actor, "act", act)
    call = act_call(agent, 3, 2, num_envs=4)
    for _ in range(4):
        call()
    assert seen == [(4, 3)] * 4
    assert cycles_between_updates(agent, 4) == cycles
    rows: list[tuple[Any, int]] = []

    def learn(*given: Any, updates: int) -> UpdateResult:  # noqa: ANN401
        rows.append((given[2].rows.shape[:2], updates))
        return store_and_learn(*given, updates=updates)  # type: ignore[no-any-return]

    monkeypatch.setattr(latency, "store_and_learn", learn)
    learn_call(agent, 3, 2, num_envs=4)()
    assert rows == [((agent.capacity // 4, 4), updates)]
    with pytest.raises(InputError, match="1 transitions at a time, but 4 environments"):
        act_call(ActorCriticAgent(hidden=(4,)), 3, 2, num_envs=4)


def test_agents_that_learn_by_the_same_program_share_a_measurement() -> None:
    assert learn_program_key(PPOAgent(discount=0.9, learning_rate=1e-3)) == learn_program_key(PPOAgent())
    assert learn_program_key(SACAgent(warmup_steps=7, discount=0.5)) == learn_program_key(SACAgent())
    assert learn_program_key(PPOAgent(minibatch=51)) != learn_program_key(PPOAgent())
    assert learn_program_key(PPOAgent(batch=2001)) != learn_program_key(PPOAgent())
    assert learn_program_key(SACAgent(gradient_steps=2)) != learn_program_key(SACAgent())
    assert learn_program_key(ActorCriticAgent(hidden=(4,))) != learn_program_key(ActorCriticAgent())
    carried = [agent_for(rules.SAC(dt="16ms").at(dt, "tuned-scaled")) for dt in ("2ms", "16ms", "128ms")]
    assert len({learn_program_key(agent) for agent in carried}) == 1


def test_what_is_no_agent_is_refused() -> None:
    with pytest.raises(InputError, match="make an agent of them"):
        act_call(rules.PPO(dt="16ms"), 3, 2)  # type: ignore[arg-type]
    with jax.enable_x64(True), pytest.raises(InputError, match="JAX in float64"):
        learn_call(PPOAgent(), 3, 2)


def test_ppo_at_16_milliseconds_by_hand() -> None:
    """1 ms to act and 63 ms to learn from 2000 steps of 16 ms; 250 cycles in an episode of 4 s."""
    got = judge_timing("16ms", 2000, took(0.001), took(0.063, mean_s=0.048), TimingConditions())
    assert got.dt == Duration("16ms")
    assert got.act == Headroom(True, 1 / 16)
    assert got.inline == Headroom(False, 4.0)
    assert (got.between_episodes, got.updates) == (Headroom(True, 0.063 / 2), 1)
    assert (got.background, got.stale_cycles) == (Headroom(True, 0.048 / 32), 4)


def test_sac_at_16_milliseconds_by_hand() -> None:
    """1 ms to act and 7 ms to learn, at each of 250 cycles in an episode of 4 s."""
    got = judge_timing("16ms", 1, took(0.001), took(0.007, mean_s=0.004), TimingConditions())
    assert got.inline == Headroom(True, 0.5)
    assert (got.between_episodes, got.updates) == (Headroom(True, (249 * 0.004 + 0.007) / 2), 250)
    assert (got.background, got.stale_cycles) == (Headroom(True, 0.25), 1)


@pytest.mark.parametrize(
    ("dt", "margin", "act_s", "learn_s"),
    [
        ("16ms", 0.5, 0.001, 0.007),
        ("10ms", 0.3, 0.002, 0.005),
        ("1ms", 0.9, 0.00003, 0.00007),
        ("8ms", 0.0, 0.001, 0.007),
    ],
)
def test_inline_learning_fits_exactly_up_to_the_margin(dt: str, margin: float, act_s: float, learn_s: float) -> None:
    conditions = TimingConditions(margin=margin)
    assert judge_timing(dt, 1, took(act_s), took(learn_s), conditions).inline.fits
    assert not judge_timing(dt, 1, took(act_s), took(learn_s + 1e-9), conditions).inline.fits
    assert not judge_timing(dt, 1, took(act_s + 1e-9), took(learn_s), conditions).inline.fits


@pytest.mark.parametrize(("learn_s", "mean_s"), [(0.008, 0.008), (0.506, 0.006)])
def test_learning_between_episodes_fits_exactly_up_to_the_reset_time(learn_s: float, mean_s: float) -> None:
    conditions = TimingConditions(episode="4s", reset_time="2s")
    act = took(0.001)
    assert judge_timing("16ms", 1, act, took(learn_s, mean_s), conditions).between_episodes == Headroom(True, 1.0)
    assert not judge_timing("16ms", 1, act, took(learn_s + 1e-6, mean_s), conditions).between_episodes.fits
    assert not judge_timing("16ms", 1, act, took(learn_s, mean_s + 1e-6), conditions).between_episodes.fits


def test_background_learning_fits_exactly_while_it_keeps_up_on_average() -> None:
    fits = judge_timing("10ms", 3, took(0.001), took(0.9, mean_s=0.03), TimingConditions())
    assert (fits.background, fits.stale_cycles) == (Headroom(True, 1.0), 90)
    assert not judge_timing("10ms", 3, took(0.001), took(0.01, mean_s=0.030001), TimingConditions()).background.fits


def test_where_acting_alone_is_too_slow_no_way_has_room() -> None:
    fast = took(1e-6)
    at_margin, beyond = (judge_timing("2ms", 8, took(act_s), fast, TimingConditions()) for act_s in (0.0016, 0.001601))
    assert (at_margin.act.fits, at_margin.between_episodes.fits, at_margin.background.fits) == (True, True, True)
    assert not at_margin.inline.fits  # acting leaves nothing for learning
    assert (beyond.act.fits, beyond.between_episodes.fits, beyond.background.fits) == (False, False, False)


@pytest.mark.parametrize(
    ("dt", "period", "episode", "updates"),
    [
        ("16ms", 2000, "4s", 1),
        ("16ms", 250, "4s", 1),
        ("16ms", 249, "4s", 2),
        ("10ms", 1, "70ms", 7),  # though 0.07 / 0.01 is above 7
        ("10ms", 1, "71ms", 8),  # the episode ends inside its last cycle
        ("16ms", 100, "32s", 20),
    ],
)
def test_updates_that_fall_due_in_an_episode(dt: str, period: int, episode: str, updates: int) -> None:
    assert judge_timing(dt, period, took(0.001), took(0.001), TimingConditions(episode=episode)).updates == updates


@pytest.mark.parametrize(("learn_s", "stale"), [(0.0001, 1), (0.016, 1), (0.0161, 2), (0.16, 10)])
def test_a_policy_is_stale_for_the_cycles_that_begin_meanwhile(learn_s: float, stale: int) -> None:
    assert judge_timing("16ms", 2000, took(0.001), took(learn_s), TimingConditions()).stale_cycles == stale


def test_the_shortest_cycle_time_of_each_way_whatever_the_order() -> None:
    judged = [
        judge_timing(dt, 1, took(0.0001), took(0.003), TimingConditions()) for dt in ("32ms", "4ms", "8ms", "16ms")
    ]
    assert shortest_dts(judged) == {
        "inline": Duration("4ms"),
        "between_episodes": Duration("8ms"),
        "background": Duration("4ms"),
    }
    never = [replace(each, inline=Headroom(False, 2.0)) for each in judged]
    assert shortest_dts(never)["inline"] is None


@pytest.mark.parametrize("margin", [1.0, 1.5, -0.1, float("nan"), True])
def test_a_margin_that_is_no_part_of_the_cycle_is_refused(margin: float) -> None:
    with pytest.raises(InputError, match=rf"margin is {margin}: it must be a part of the cycle"):
        TimingConditions(margin=margin)


@pytest.mark.parametrize("wrong", [{"episode": "0s"}, {"reset_time": "soon"}])
def test_a_time_that_is_none_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InputError, match="is not a time span"):
        TimingConditions(**wrong)  # type: ignore[arg-type]
