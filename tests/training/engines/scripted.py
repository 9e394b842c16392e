"""One run in its folder; and runs that follow a script instead of learning, so that training them takes no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import ActorCriticAgent
from cycletime.agents.agent import AgentState
from cycletime.errors import RunError
from cycletime.training.engine import Arrays, Chunk, EnvInfo, RunBatch, closed_form_info
from cycletime.training.learning_curve import Episodes
from cycletime.training.observers import Progress, TrainingObserver
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.spec import RunSpec
from cycletime.training.trainer import TrainingOutcome, train_batch
from cycletime.training.worlds import ClosedFormWorld

CHUNK_STEPS = 100
"""The environment steps of a chunk, in which one episode ends."""


def train(folder: RunFolder, observers: Sequence[TrainingObserver] = (), **how: Any) -> TrainingOutcome:  # noqa: ANN401
    """Train one run in its folder; no time passes, so that there are checkpoints at each chunk or at none."""
    (ended,) = train_batch([TrainingJob(folder, observers)], **{"clock": Clock(), **how})
    if isinstance(ended, Exception):
        raise ended
    return ended


@dataclass
class Clock:
    """Time that passes when it is told to."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s

    def go(self, seconds: float = 1.0) -> None:
        self.now_s += seconds


def make_spec(chunks: int = 8, seed: int = 0) -> RunSpec:
    """A run of so many chunks."""
    agent, steps = ActorCriticAgent(hidden=(2,)), chunks * CHUNK_STEPS
    return RunSpec(world=ClosedFormWorld("reacher"), agent=agent, dt="20ms", env_steps=steps, seed=seed)


def progress_at(env_steps: int) -> Progress:
    """What observers get where one episode ended, with the return 1."""
    end = np.array([env_steps], np.int64)
    return Progress(env_steps, env_steps // 10, Episodes(end, end // 10, np.ones(1), end), [])


@dataclass
class Scripted(RunBatch):
    """A group whose runs learn nothing, a chunk each time."""

    specs: Sequence[RunSpec]
    does: Callable[[int], object] = lambda chunk: None
    """Called before the n-th time that chunks are told of."""
    exact: Callable[[int], bool] = lambda chunk: True
    """Whether a run can go on from its n-th chunk exactly."""
    wrong: Mapping[int, RunError] = field(default_factory=dict)
    """Of runs that cannot begin."""
    dropped: set[int] = field(default_factory=set)
    starts: dict[int, Arrays | None] = field(default_factory=dict)
    closed: int = 0

    @property
    def env_infos(self) -> list[EnvInfo]:  # type: ignore[override]
        return [closed_form_info(spec) for spec in self.specs]

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        self.starts.update(starts)
        if self.wrong:
            yield dict(self.wrong)
        done = {run: 0 if at is None else int(at["chunk"]) for run, at in starts.items() if run not in self.wrong}
        told = 0
        while going := [run for run, chunk in done.items() if run not in self.dropped and chunk < self._last(run)]:
            self.does(told := told + 1)
            done |= {run: done[run] + 1 for run in going}
            yield {run: self._chunk(run, done[run]) for run in going}

    def _last(self, run: int) -> int:
        return self.specs[run].env_steps // CHUNK_STEPS

    def _chunk(self, run: int, number: int) -> Chunk:
        steps = number * CHUNK_STEPS
        end = np.array([steps], np.int64)
        episodes = Episodes(end, end // 10, np.array([self.specs[run].seed + number / 8]), np.full(1, CHUNK_STEPS))
        metrics: dict[str, NDArray[Any]] = {"agent_steps": end // 10, "value_error": np.array([1 / number], np.float32)}
        is_last = number == self._last(run)
        return Chunk(
            env_steps=steps,
            agent_steps=steps // 10,
            episodes=episodes,
            metrics=metrics,
            arrays=lambda: {"chunk": np.array(number, np.int64)},
            agent_state=lambda: jax.tree.map(lambda leaf: leaf + np.float32(number), _first_psi()),
            exact=self.exact(number),
            is_last=is_last,
        )

    def drop(self, run: int) -> None:
        self.dropped.add(run)

    def close(self) -> None:
        self.closed += 1


@cache
def _first_psi() -> AgentState:
    shapes = jax.eval_shape(lambda: make_spec().own_agent.initialize(jax.random.key(0), 9, 2))
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, np.float32), shapes)
