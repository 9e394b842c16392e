"""What a stepped run refuses while it goes on, each with a sentence."""

from dataclasses import replace
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

from cycletime.errors import InputError
from cycletime.training import stepped_loop
from cycletime.training.stepped_loop import SteppedLoop
from tests.training.loops.conftest import Spy

pytestmark = pytest.mark.usefixtures("compiled_quickly")


class Endless(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, sees: int = 2, ends_after: int | None = None) -> None:
        self.sees, self.ends_after = sees, ends_after

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(self.sees, np.float32), {}

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return np.zeros(self.sees, np.float32), 1.0, False, self.steps == self.ends_after, {}


AGENT = Spy(batch=8, minibatch=4, hidden=())


@pytest.mark.usefixtures("short_chunks")
def test_a_position_that_the_next_chunk_took_over() -> None:
    loop = SteppedLoop(env=Endless(ends_after=5), agent=AGENT, env_steps=60)
    chunks = loop.run(0)
    first, copied = next(chunks).position, None
    copied = jax.tree.map(np.array, first)
    for _ in chunks:
        pass
    with pytest.raises(InputError, match="The position was taken over by the chunk after it: copy a position"):
        next(loop.run(0, position=first))
    assert next(loop.run(0, position=copied)).position.episodes > copied.episodes
    with pytest.raises(InputError, match="The position is a SteppedChunk: give the position of a chunk"):
        next(loop.run(0, position=next(loop.run(0))))  # type: ignore[arg-type]
    longer = SteppedLoop(env=Endless(ends_after=5), agent=replace(AGENT, batch=12), env_steps=60)
    with pytest.raises(InputError, match="other shapes than this run's: env_steps, the number of copies"):
        next(longer.run(0, position=copied))


def test_an_episode_without_an_end_to_learn_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepped_loop, "ENDLESS_EPISODE_STEPS", 40)
    agent = replace(AGENT, learn_when="episode_end")
    with pytest.raises(InputError, match="An episode has lasted 41 environment steps, more than the whole budget"):
        list(SteppedLoop(env=Endless(), agent=agent, env_steps=20).run(0))


def test_an_observation_that_contradicts_its_space() -> None:
    with pytest.raises(InputError, match=r"The observation has the shape \(3,\): its space says \(2,\)."):
        list(SteppedLoop(env=Endless(sees=3), agent=AGENT, env_steps=20).run(0))
