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

from cycletime.agents import Agent, CoherentNoise, OrnsteinUhlenbeck, Pink, PPOAgent, Transition
from cycletime.agents.agent import pytree_of_rates
from cycletime.agents.ppo import PPOState
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.tasks import CycleTime, Reacher
from cycletime.tasks.closed_form import ClosedFormTask
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.random_numbers import Purpose, key_for
from cycletime.training.stepped_loop import SteppedLoop
from tests.training.loops.conftest import Aim, Counter, Spy, TickingClock, ToyState

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
class Steady(Aim):
    """Aiming for eight steps at what is seen all the time."""

    time_limit: ClassVar = Duration("80ms")
    shortest_episode: ClassVar = time_limit


@dataclass(frozen=True)
class Wander(Aim):
    """A walk that ends where it leaves [-1, 1], at the latest after 13 steps."""

    time_limit: ClassVar = Duration("130ms")
    shortest_episode: ClassVar = Duration("10ms")

    def _advance(self, state: ToyState, action: jax.Array) -> tuple[ToyState, jax.Array, jax.Array]:
        place = state.place + 0.2 * action[0]
        return ToyState(place, state.env_steps + 1), place, jnp.abs(place) > 1


def noise(**overrides: Any) -> Noise:  # noqa: ANN401 - any of its fields
    return Noise(**{"minibatch": 1, "hidden": (), **overrides})


def written_out(process: CoherentNoise, normals: Array, begins: NDArray[np.bool_]) -> Array:
    """The noise of one copy, [steps, |A|], from [steps, n |A|] normals, in float64."""
    carry, drive, read = (np.array(each)[:, None] for each in (process.carry, process.drive, process.read))
    out, z = [], np.zeros((process.size, normals.shape[1] // process.size))
    for row, first in zip(normals, begins, strict=True):
        xi = row.reshape(process.size, -1)
        z = xi if first else carry * z + drive * xi
        out.append((read * z).sum(axis=0))
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


# Against the process written out.


@pytest.mark.parametrize(
    ("kind", "width"), [(OrnsteinUhlenbeck("50ms"), 1), (Pink("1s", "30ms"), 3)], ids=["OU alone", "pink of three"]
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
    process = Pink("50ms", "20ms").at("10ms")
    agent = noise(batch=30, learn_when="episode_end", exploration=process)
    batch = compiled_batch(Wander(), agent, "10ms", 43, width=3)
    np.testing.assert_allclose(
        batch.action[:, 0], written_out(process, normals_of(1, 30, 2), after_ends(batch)), atol=2e-5
    )


def stepped_batch(env: Any, agent: Agent, env_steps: int) -> Transition:  # noqa: ANN401
    (chunk,) = SteppedLoop(env=env, agent=agent, env_steps=env_steps).run(SEED)
    buffer = chunk.position.buffer
    return buffer.read(buffer.rows)


@pytest.mark.parametrize("lengths", [(3, 4, 5), (4, 4, 4)])
def test_each_copy_of_a_vector_environment_has_its_own_noise(lengths: tuple[int, ...]) -> None:
    process = Pink("50ms", "20ms").at("10ms")
    env = SyncVectorEnv([partial(Counter, length) for length in lengths], autoreset_mode=AutoresetMode.DISABLED)
    batch = stepped_batch(env, noise(batch=60, exploration=process), 40)
    normals = normals_of(0, 60, 2).reshape(20, 3, 2)
    for copy, length in enumerate(lengths):
        begins = np.asarray(batch.observation[:, copy, 1]) == 0
        assert begins.sum() == -(-20 // length)
        expected = written_out(process, normals[:, copy], begins)
        np.testing.assert_allclose(np.asarray(batch.action[:, copy]), expected, atol=2e-5)


def test_both_loops_give_the_same_noise() -> None:
    agent = noise(batch=100, learning_period=25, exploration=Pink().at("10ms"))
    ours, theirs = stepped_batch(Counter(8), agent, 99), compiled_batch(Steady(), agent, "10ms", 99)
    np.testing.assert_array_equal(ours.ended, theirs.ended)
    np.testing.assert_allclose(ours.action, theirs.action, atol=2e-6)


# Stopping and going on.


@pytest.mark.usefixtures("short_chunks")
def test_the_noise_of_a_compiled_run_goes_on_bit_for_bit(clock: TickingClock) -> None:
    agent = noise(batch=28, exploration=OrnsteinUhlenbeck("30ms").at("10ms"))
    loop = CompiledLoop(task=Steady(), agent=agent, dt="10ms", env_steps=200)
    position = next(loop.run([SEED])).position
    assert int(position.state.walk.episode_steps) == 28 % 8 > 0  # inside an episode
    clock.tick_s = 0.0
    *_, last = loop.run([SEED], position=position)
    *_, whole = loop.run([SEED])
    same(last.position.state, whole.position.state)


@pytest.mark.usefixtures("short_chunks")
def test_the_noise_of_a_stepped_run_goes_on_bit_for_bit(clock: TickingClock) -> None:
    def loop() -> SteppedLoop:
        agent = noise(batch=24, exploration=OrnsteinUhlenbeck("150ms").at("50ms"))
        return SteppedLoop(env=gymnasium.make("Pendulum-v1"), agent=agent, env_steps=500)

    first = next(loop().run(SEED))
    assert first.position.exact
    assert first.position.period_rows > 0  # inside a learning period
    clock.tick_s = 0.0
    (last,) = loop().run(SEED, jax.tree.map(np.array, first.position))
    (whole,) = loop().run(SEED)
    same(last.position, whole.position)


def same(one: object, other: object) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


# Wrong inputs.


NOISY = PPOAgent(batch=24, minibatch=24, exploration=OrnsteinUhlenbeck("100ms").at("50ms"))


@pytest.mark.parametrize(
    "make",
    [
        lambda agent: CompiledLoop(task=Reacher(), agent=agent, dt="20ms", env_steps=100),
        lambda agent: stepped_loop(gymnasium.make("cycletime/Reacher-v0", dt="20ms"), agent),
        lambda agent: stepped_loop(CycleTime(Counter(), "20ms", env_dt="10ms"), agent),
    ],
    ids=["compiled", "closed-form", "CycleTime"],
)
def test_noise_for_another_cycle_time_is_refused(make: Callable[[Agent], Any]) -> None:
    make(PPOAgent(batch=24, minibatch=10, exploration=Pink().at("20ms")))
    with pytest.raises(InputError, match=r"made for a cycle time of 50ms: here it is 20ms; call .at\('20ms'\)"):
        make(NOISY)


def stepped_loop(env: Any, agent: Agent) -> SteppedLoop:  # noqa: ANN401
    return SteppedLoop(env=env, agent=agent, env_steps=100)


def test_an_environment_that_tells_no_cycle_time_takes_any_noise() -> None:
    for env in (
        Counter(),
        gymnasium.make("Pendulum-v1"),
        SyncVectorEnv([Counter, Counter], autoreset_mode=AutoresetMode.DISABLED),
    ):
        assert stepped_loop(env, NOISY).agent is NOISY
