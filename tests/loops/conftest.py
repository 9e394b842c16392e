"""Toy tasks with known values."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import pytest

from cycletime.duration import Duration
from cycletime.tasks.closed_form import ClosedFormTask


class ToyState(NamedTuple):
    place: jax.Array
    env_steps: jax.Array


@dataclass(frozen=True)
class Aim(ClosedFormTask):
    """One step: the reward is minus the squared distance between the action and half of what is seen."""

    env_dt: ClassVar = Duration("10ms")
    time_limit: ClassVar = Duration("10ms")
    shortest_episode: ClassVar = time_limit
    can_terminate: ClassVar = False
    observation_size: ClassVar = 1
    action_size: ClassVar = 1

    def reset(self, key: jax.Array) -> ToyState:
        return self.start(jax.random.uniform(key, (), self.dtype, -1, 1))

    def start(self, *numbers: jax.Array) -> ToyState:
        return ToyState(jnp.asarray(numbers[0], self.dtype), jnp.zeros((), jnp.int32))

    def numbers(self, state: ToyState) -> tuple[jax.Array, ...]:
        return (state.place,)

    def observe(self, state: ToyState) -> jax.Array:
        return state.place[None]

    def _advance(self, state: ToyState, action: jax.Array) -> tuple[ToyState, jax.Array, jax.Array]:
        reward = -((action[0] - state.place / 2) ** 2)
        return state._replace(env_steps=state.env_steps + 1), reward, jnp.zeros((), jnp.bool)


@dataclass(frozen=True)
class Countdown(Aim):
    """Every environment step is worth 1, whatever is done; what is seen is the time that is left."""

    time_limit: ClassVar = Duration("80ms")
    shortest_episode: ClassVar = time_limit

    def observe(self, state: ToyState) -> jax.Array:
        return 1 - state.env_steps[None] / self.limit_steps

    def _advance(self, state: ToyState, action: jax.Array) -> tuple[ToyState, jax.Array, jax.Array]:
        return state._replace(env_steps=state.env_steps + 1), jnp.ones((), self.dtype), jnp.zeros((), jnp.bool)


@dataclass(frozen=True)
class Wander(Aim):
    """A walk that ends where it leaves [-1, 1], at the latest after 13 steps."""

    time_limit: ClassVar = Duration("130ms")
    shortest_episode: ClassVar = Duration("10ms")
    can_terminate: ClassVar = True

    def _advance(self, state: ToyState, action: jax.Array) -> tuple[ToyState, jax.Array, jax.Array]:
        place = state.place + 0.3 * action[0]
        return ToyState(place, state.env_steps + 1), place - 0.1 * action[0] ** 2, jnp.abs(place) > 1


@pytest.fixture
def aim() -> Aim:
    return Aim()


@pytest.fixture
def countdown() -> Countdown:
    return Countdown()


@pytest.fixture
def wander() -> Wander:
    return Wander()
