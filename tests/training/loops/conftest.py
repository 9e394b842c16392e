"""Clocks that tests drive, and toys: tasks with known values, an environment that counts, an agent that only tells."""

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, cast

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box
from numpy.typing import NDArray

from cycletime.agents import Buffer, PPOAgent
from cycletime.agents.agent import Metrics, pytree_of_rates
from cycletime.agents.ppo import PPOState
from cycletime.duration import Duration
from cycletime.tasks.closed_form import ClosedFormTask, Numbers
from cycletime.tasks.render import Frame
from cycletime.training import compiled_loop, stepped_loop


@dataclass
class TickingClock:
    """Every look at it takes so many seconds."""

    tick_s: float = 0.0
    now_s: float = 0.0

    def __call__(self) -> float:
        self.now_s += self.tick_s
        return self.now_s


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> TickingClock:
    """What both loops look at. It stands still, so that no chunk ends because the machine is slow."""
    clock = TickingClock()
    for loop in (compiled_loop, stepped_loop):
        monkeypatch.setattr(loop, "clock", clock)
    return clock


@pytest.fixture
def short_chunks(clock: TickingClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of one learning period, or of one episode."""
    clock.tick_s = 0.001
    for loop in (compiled_loop, stepped_loop):
        monkeypatch.setattr(loop, "CHUNK_S", 0.0)


class ToyState(NamedTuple):
    place: jax.Array
    env_steps: jax.Array


@dataclass(frozen=True)
class Aim(ClosedFormTask):
    """One step: the reward is minus the squared distance between the action and half of what is seen."""

    usual_env_dt: ClassVar = Duration("10ms")
    time_limit: ClassVar = Duration("10ms")
    shortest_episode: ClassVar = time_limit
    observation_limits: ClassVar = MappingProxyType({"place": 1.0})
    action_size: ClassVar = 1

    def reset(self, key: jax.Array) -> ToyState:
        return self.start(jax.random.uniform(key, (), self.dtype, -1, 1))

    def start(self, *numbers: jax.Array) -> ToyState:
        return ToyState(jnp.asarray(numbers[0], self.dtype), jnp.zeros((), jnp.int32))

    def numbers(self, state: ToyState) -> tuple[jax.Array, ...]:
        return (state.place,)

    def draw_start(self, rng: np.random.Generator) -> Numbers:
        return (rng.uniform(-1, 1),)

    def picture(self, numbers: Numbers, caption: str = "") -> Frame:
        return np.zeros((1, 1, 3), np.uint8)

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


class Counter(gymnasium.Env[Any, Any]):
    """Rewards count the environment steps since it was made; its episodes terminate and truncate by turns."""

    def __init__(self, length: int = 7, first_reward: int = 0) -> None:
        self.observation_space, self.action_space = Box(-1e4, 1e4, (2,)), Box(-1.0, 1.0, (1,))
        self.length, self.reward, self.episode = length, first_reward - 1, -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.episode, self.steps = self.episode + 1, 0
        return self._seen(), {}

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps, self.reward = self.steps + 1, self.reward + 1
        ended = self.steps == self.length
        odd = bool(self.episode % 2)
        return self._seen(), float(self.reward), ended and not odd, ended and odd, {}

    def _seen(self) -> NDArray[np.float32]:
        return np.array([self.episode, self.steps], np.float32)


@pytree_of_rates
@dataclass(frozen=True, kw_only=True)
class Spy(PPOAgent):
    """Learns nothing, tells from what it would have, and acts by its noise alone: next to nothing is compiled."""

    def initialize(self, key: jax.Array, observation_size: int, action_size: int, num_envs: int = 1) -> PPOState:
        shapes = jax.eval_shape(partial(super().initialize, key, observation_size, action_size))
        return cast(PPOState, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))

    def draw(self, key: jax.Array, action_size: int) -> Any:  # noqa: ANN401 - nothing is random
        return None

    def learn(self, psi: PPOState, buffer: Buffer, draws: jax.Array) -> tuple[PPOState, Metrics]:
        reward = buffer.oldest_first().reward[:, 0]
        return psi, {"oldest": reward[0], "newest": reward[-1], "last": buffer.newest_successor[0, 1]}
