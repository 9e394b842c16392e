"""Coherent noise through both loops: an agent whose actions are its noise, against the process written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from cycletime.agents import (
    Agent,
    AutoRegressive,
    CoherentNoise,
    OrnsteinUhlenbeck,
    Pink,
    PPOAgent,
    SACAgent,
    Transition,
)
from cycletime.agents.agent import pytree_of_rates
from cycletime.agents.ppo import PPOState
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.loops import CompiledLoop, SteppedLoop, compiled, stepped
from cycletime.loops.randomness import Purpose, key_for
from cycletime.tasks import CycleTime, Reacher
from cycletime.tasks.closed_form import ClosedFormTask
from tests.loops.conftest import Aim, Clock, Spy, ToyState

pytestmark = pytest.mark.usefixtures("compiled_quickly")

Array: TypeAlias = NDArray[np.float64]
SEED = 6


@pytree_of_rates
@dataclass(frozen=True, kw_only=True)
class Noise(Spy):
    """Does what its noise says, and learns nothing."""

    def act(self, psi: PPOState, observation: jax.Array, noise: jax.Array) -> jax.Array:
        return noise


@dataclass(frozen=True)
class Still(Aim):
    """Two seconds in which nothing happens, with two actions."""

    time_limit: ClassVar = Duration("2s")
    shortest_episode: ClassVar = time_limit
    action_size: ClassVar = 2


@dataclass(frozen=True)
class Steady(Aim):
    """Aiming for eight steps at what is seen all the time."""

    time_limit: ClassVar = Duration("80ms")
    shortest_episode: ClassVar = time_limit


@dataclass(frozen=True)
class Wander(Aim):
    """A walk that ends where it leaves [-1, 1], at the latest after 13 steps."""

    time_limit: ClassVar = Duration("130ms")
    shortest_episode: ClassVar = Duration("10ms")
    can_terminate: ClassVar = True

    def _advance(self, state: ToyState, action: jax.Array) -> tuple[ToyState, jax.Array, jax.Array]:
        place = state.place + 0.2 * action[0]
        return ToyState(place, state.env_steps + 1), place, jnp.abs(place) > 1


def noise(**overrides: Any) -> Noise:  # noqa: ANN401 - any of its fields
    return Noise(**{"minibatch": 1, "hidden": (4,), **overrides})


def written_out(process: CoherentNoise, normals: Array, begins: NDArray[np.bool_]) -> Array:
    """The noise of one copy, [steps, |A|], from [steps, n |A|] normals, in float64."""
    start, carry, drive, read = (np.array(each) for each in (process.start, process.carry, process.drive, process.read))
    out, z = [], np.zeros((process.size, normals.shape[1] // process.size))
    for row, first in zip(normals, begins, strict=True):
        xi = row.reshape(process.size, -1)
        z = start @ xi if first else carry @ z + drive @ xi
        out.append(read @ z)
    return np.array(out)


def normals_of(period: int, steps: int, numbers: int) -> Array:
    return np.asarray(jax.random.normal(key_for(jax.random.key(SEED), Purpose.NOISE, period), (steps, numbers)), float)


def after_ends(transitions: Transition) -> NDArray[np.bool_]:
    """Where episodes begin, given that the first does so at once."""
    return np.concatenate([[True], np.asarray(transitions.ended[:-1, 0]) > 0])


def compiled_batch(task: ClosedFormTask, agent: Agent, dt: str, env_steps: int, width: int = 1) -> Transition:
    """What the buffer holds at the end of the run, of the last lane; rows [steps, 1, ...]."""
    seeds = [*range(100, 99 + width), SEED]
    *_, chunk = CompiledLoop(task=task, agent=agent, dt=dt, env_steps=env_steps, width=width).run(seeds)
    buffer = chunk.position.state.buffer
    if width > 1:
        buffer = jax.tree.map(lambda leaf: leaf[-1], buffer)
    return buffer.read(buffer.rows)


@pytest.fixture(autouse=True)
def one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepped, "CHUNK_S", np.inf)


# Against the process written out.


@pytest.mark.parametrize(
    ("kind", "width"), [(AutoRegressive(3, "50ms"), 1), (Pink("1s", "30ms"), 3)], ids=["AR(3) alone", "pink of three"]
)
def test_the_compiled_loop_begins_the_noise_with_the_episode(kind: Any, width: int) -> None:  # noqa: ANN401
    """Five learning periods of 20 agent steps, which cut episodes; all stay in the batch."""
    process = kind.at("10ms")
    agent = noise(batch=100, learning_period=20, exploration=process)
    batch = compiled_batch(Wander(), agent, "10ms", 95, width)
    begins = after_ends(batch)
    assert 8 < begins.sum() < 60
    normals = np.concatenate([normals_of(period, 20, process.size) for period in range(5)])
    np.testing.assert_allclose(batch.action[:, 0], written_out(process, normals, begins), atol=2e-5)


def test_noise_of_a_run_that_learns_at_episode_ends() -> None:
    """The second of two learning periods, each of which takes the first 30 agent steps and drops some; as a lane."""
    process = AutoRegressive(2, "50ms").at("10ms")
    agent = noise(batch=30, learn_when="episode_end", exploration=process)
    batch = compiled_batch(Wander(), agent, "10ms", 43, width=3)
    np.testing.assert_allclose(
        batch.action[:, 0], written_out(process, normals_of(1, 30, 2), after_ends(batch)), atol=2e-5
    )


def stepped_batch(env: Any, agent: Agent, env_steps: int) -> Transition:  # noqa: ANN401
    (chunk,) = SteppedLoop(env=env, agent=agent, env_steps=env_steps).run(SEED)
    buffer = chunk.position.buffer
    return buffer.read(buffer.rows)


@pytest.mark.parametrize(
    ("mode", "lengths"),
    [*((mode, (3, 4, 5)) for mode in AutoresetMode), (AutoresetMode.NEXT_STEP, (4, 4, 4))],
)
def test_each_copy_of_a_vector_environment_has_its_own_noise(mode: AutoresetMode, lengths: tuple[int, ...]) -> None:
    """A copy's noise begins with its first real step, also after a step that only reset it."""
    process = AutoRegressive(2, "50ms").at("10ms")
    env = SyncVectorEnv([partial(Clock, length) for length in lengths], autoreset_mode=mode)
    batch = stepped_batch(env, noise(batch=60, exploration=process), 40)
    normals = normals_of(0, 60, 2).reshape(20, 3, 2)
    for copy, length in enumerate(lengths):
        begins, real = np.asarray(batch.observation[:, copy, 1]) == 0, np.ones(20, np.bool_)
        if batch.weight is not None:
            real = np.asarray(batch.weight[:, copy]) > 0
        assert real.sum() >= 4 * length - 1 if len(set(lengths)) == 1 else real.sum() > 12
        assert begins[real].sum() >= 3
        expected = written_out(process, normals[:, copy], begins)
        np.testing.assert_allclose(np.asarray(batch.action[:, copy])[real], expected[real], atol=2e-5)


def test_both_loops_give_the_same_noise() -> None:
    agent = noise(batch=100, learning_period=25, exploration=Pink().at("10ms"))
    ours, theirs = stepped_batch(Clock(8), agent, 99), compiled_batch(Steady(), agent, "10ms", 99)
    np.testing.assert_array_equal(ours.ended, theirs.ended)
    np.testing.assert_allclose(ours.action, theirs.action, atol=2e-6)


# As a user would see it.


def test_actions_are_as_coherent_in_seconds_at_two_cycle_times() -> None:
    """400 episodes of two actions: correlations between and within them, within five standard errors."""
    kind, lags_s = AutoRegressive(2, "50ms"), np.array([0.0, 0.04, 0.08, 0.2, 0.4])
    expected = (1 + lags_s / 0.05) * np.exp(-lags_s / 0.05)
    for dt, steps in (("10ms", 200), ("40ms", 50)):
        agent = noise(batch=400 * steps, learning_period=steps, exploration=kind.at(dt))
        batch = compiled_batch(Still(), agent, dt, 400 * 200)
        actions = np.asarray(batch.action, np.float64).reshape(400, steps, 2)
        assert np.asarray(batch.truncated).reshape(400, steps)[:, -1].all()
        lags = np.rint(lags_s / float(Duration(dt))).astype(int)
        products = [(actions[:, : steps - lag] * actions[:, lag:]).mean(axis=1).ravel() for lag in lags]
        errors = np.std(products, axis=1) / np.sqrt(800)
        assert errors.max() < 0.015
        assert (np.abs(np.mean(products, axis=1) - expected) < 5 * errors).all()
        # Each of these is the mean of 400 or more products of independent numbers of variance 1.
        assert abs(np.mean(actions[:, 0] ** 2) - 1) < 5 * np.sqrt(2 / 800)
        assert abs(np.mean(actions[:-1, -1] * actions[1:, 0])) < 5 / np.sqrt(800)
        assert abs(np.mean(actions[:, 0, 0] * actions[:, 0, 1])) < 5 / np.sqrt(400)


LEARNERS: dict[str, tuple[Agent, int]] = {
    "ppo": (
        PPOAgent(
            batch=404,
            minibatch=101,
            hidden=(16,),
            learning_rate=3e-3,
            noise_std=0.5,
            discount=0.0,
            exploration=OrnsteinUhlenbeck("30ms").at("10ms"),
        ),
        48_000,
    ),
    "sac": (
        SACAgent(
            minibatch=64,
            hidden=(16,),
            learning_rate=3e-3,
            warmup_steps=200,
            target_entropy=-3.0,
            discount=0.0,
            exploration=Pink().at("10ms"),
        ),
        2_000,
    ),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_toy_is_learned_with_coherent_noise_as_well(name: str) -> None:
    agent, env_steps = LEARNERS[name]
    *_, chunk = CompiledLoop(task=Steady(), agent=agent, dt="10ms", env_steps=env_steps).run([0])
    seen = jnp.linspace(-1, 1, 21)[:, None]
    aimed = jax.vmap(lambda each: agent.act(chunk.finished[0], each, jnp.zeros(1)))(seen)
    np.testing.assert_allclose(aimed, seen / 2, atol=0.2)


# Stopping and going on.


SMALL_PPO = PPOAgent(batch=24, minibatch=24, hidden=(8,), epochs=1, exploration=AutoRegressive(2, "100ms").at("50ms"))


def test_a_compiled_run_goes_on_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, env_steps = LEARNERS["ppo"]
    loop = CompiledLoop(task=Steady(), agent=agent, dt="10ms", env_steps=env_steps)
    *_, whole = loop.run([SEED])
    monkeypatch.setattr(compiled, "CHUNK_S", 0.0)
    position = next(loop.run([SEED])).position
    assert int(position.state.walk.episode_steps) == 404 % 8 > 0
    monkeypatch.undo()
    *_, last = loop.run([SEED], position=position)
    same(last.finished[0], whole.finished[0])
    same(last.position.state, whole.position.state)


def test_a_stepped_run_goes_on_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    def loop() -> SteppedLoop:
        return SteppedLoop(env=gymnasium.make("Pendulum-v1"), agent=SMALL_PPO, env_steps=500)

    (whole,) = loop().run(SEED)
    monkeypatch.setattr(stepped, "CHUNK_S", 0.0)
    first = next(loop().run(SEED))
    assert first.position.exact
    assert first.position.period_rows > 0  # inside a learning period
    *_, last = loop().run(SEED, jax.tree.map(np.array, first.position))
    same((last.finished, last.position), (whole.finished, whole.position))


def same(one: object, other: object) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


# Wrong inputs.


@pytest.mark.parametrize(
    "make",
    [
        lambda agent: CompiledLoop(task=Reacher(), agent=agent, dt="20ms", env_steps=100),
        lambda agent: stepped_loop(gymnasium.make("cycletime/Reacher-v0", dt="20ms"), agent),
        lambda agent: stepped_loop(gymnasium.make_vec("cycletime/Reacher-v0", num_envs=2, dt="20ms"), agent),
        lambda agent: stepped_loop(CycleTime(Clock(), "20ms", env_dt="10ms"), agent),
    ],
    ids=["compiled", "closed-form", "vector", "CycleTime"],
)
def test_noise_for_another_cycle_time_is_refused(make: Callable[[Agent], Any]) -> None:
    make(PPOAgent(batch=24, minibatch=10, exploration=Pink().at("20ms")))
    with pytest.raises(InputError, match=r"made for a cycle time of 50ms: here it is 20ms, so call .at\('20ms'\)"):
        make(SMALL_PPO)


def stepped_loop(env: Any, agent: Agent) -> SteppedLoop:  # noqa: ANN401
    return SteppedLoop(env=env, agent=agent, env_steps=100)


def test_an_environment_that_tells_no_cycle_time_takes_any_noise() -> None:
    for env in (Clock(), gymnasium.make("Pendulum-v1"), SyncVectorEnv([Clock, Clock])):
        assert stepped_loop(env, SMALL_PPO).agent is SMALL_PPO
