"""The lanes of one compiled program: runs side by side, each of which can be taken out and go on elsewhere.

A program computes all its lanes for the same learning periods. Where runs were stopped at different ones, those behind
are computed first until they are level with the next: the last run is finished no later so, and lanes stay in step.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import Agent
from cycletime.agents.agent import Psi
from cycletime.engines.engine import Arrays, Chunk
from cycletime.errors import RunError
from cycletime.loops import CompiledChunk, CompiledLoop, Position
from cycletime.loops.compilation_cache import keep_compiled_programs
from cycletime.runs.trees import named_arrays, tree_like

_OF_LANES, _PERIOD, _ROWS = "state.", "period", "state.buffer.rows"


@dataclass(frozen=True)
class Lanes:
    """A program and the runs that it carries, at most as many as it is wide."""

    loop: CompiledLoop
    seeds: Sequence[int]
    """By run."""
    agents: Sequence[Agent]
    """By run."""
    dropped: set[int] = field(default_factory=set)
    """Runs that are not wanted any more."""

    def drop(self, run: int) -> None:
        """Go on without a run."""
        self.dropped.add(run)

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        """Train runs, each from its start or from the arrays of a moment."""
        keep_compiled_programs()  # before the example of a position is computed, which else takes seconds
        wrong = self._wrong(starts)
        if wrong:
            yield wrong
        at = {run: arrays for run, arrays in starts.items() if run not in wrong}
        while going := [run for run in at if run not in self.dropped]:
            periods = {run: _period(at[run]) for run in going}
            behind = min(periods.values())
            level = [run for run in going if periods[run] == behind]
            until = min((period for period in periods.values() if period > behind), default=None)
            starts_now = [at.pop(run) for run in level]
            at |= yield from self._together(level, starts_now, until)

    def _together(
        self, runs: Sequence[int], at: Sequence[Arrays | None], until: int | None
    ) -> Generator[Mapping[int, Chunk], None, dict[int, Arrays | None]]:
        """Train runs that are level, until a learning period; where they are then, without those that are finished."""
        seeds, agents = [self.seeds[run] for run in runs], [self.agents[run] for run in runs]
        given = [each for each in at if each is not None]  # all of them, or none where they are at their start
        position = self._joined(given) if given else None
        going, moments = list(runs), None
        for told in self.loop.run(seeds, agents, position, until=until):
            moments = _Moments(told.position, self.loop)
            chunks = {run: _chunk(told, lane, moments) for lane, run in enumerate(runs) if run in going}
            going = [run for run in going if not chunks[run].is_last]
            yield {run: chunk for run, chunk in chunks.items() if run not in self.dropped}
            if self.dropped.issuperset(going):
                return {}
        assert moments is not None, "runs that are level have periods left"
        return {run: moments.arrays(lane) for lane, run in enumerate(runs) if run in going}

    def _wrong(self, starts: Mapping[int, Arrays | None]) -> dict[int, RunError]:
        """The runs whose arrays are not what this program's lanes have."""
        given, wrong = {run: arrays for run, arrays in starts.items() if arrays is not None}, {}
        example = _as_tree(self._example, lane=None if self.loop.width == 1 else 0) if given else {}
        for run, arrays in given.items():
            try:
                tree_like(example, self._roomy(arrays))
            except RunError as error:
                wrong[run] = error
        return wrong

    def _joined(self, lanes: Sequence[Arrays]) -> Position:
        """The position whose lanes these are; the last one is repeated where there are too few."""
        padded = [*lanes, *[lanes[-1]] * (self.loop.width - len(lanes))]
        if self.loop.width > 1:
            joined = {name: _join(name, [lane[name] for lane in padded]) for name in lanes[0]}
        else:
            joined = self._roomy(lanes[0])
        tree = tree_like(_as_tree(self._example), joined)
        return Position(tree["state"], int(tree["period"]), tree["ended_env_steps"], tree["ended_agent_steps"])

    def _roomy(self, lane: Arrays) -> dict[str, NDArray[Any]]:
        """A lane's arrays, with the rows of the buffer that the run cannot fill."""
        rows, more = lane.get(_ROWS), self.loop.shape.capacity - self.loop.room
        if not more or rows is None or rows.shape[:1] != (self.loop.room,):  # of the last two somebody else complains
            return dict(lane)
        return {**lane, _ROWS: np.pad(rows, [(0, more)] + [(0, 0)] * (rows.ndim - 1))}

    @property
    def _example(self) -> Position:
        return self.loop.start(self.seeds[:1], self.agents[:1])


@dataclass(frozen=True)
class _Moments:
    """Where all lanes are; fetched from the device once, however many of them are asked for."""

    position: Position
    loop: CompiledLoop

    def arrays(self, lane: int) -> dict[str, NDArray[Any]]:
        """A lane's arrays, as if it were alone; of its buffer, what it can fill."""
        if self.loop.width == 1:
            return {**self._arrays, _ROWS: self._arrays[_ROWS][: self.loop.room]}
        return {name: _split(name, array, lane) for name, array in self._arrays.items()}

    def psi(self, lane: int) -> Psi:
        """What a lane has learned."""
        if self.loop.width == 1:
            return self.position.state.psi
        return jax.tree.map(lambda leaf: leaf[lane], self._psi)

    @cached_property
    def agent_steps(self) -> NDArray[Any]:
        """By lane, its agent steps."""
        return np.atleast_1d(np.asarray(self.position.state.agent_steps))

    @cached_property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        return named_arrays(_as_tree(self.position))

    @cached_property
    def _psi(self) -> Psi:
        return jax.device_get(self.position.state.psi)


@dataclass(frozen=True)
class _Moment:
    """Where a lane is."""

    moments: _Moments
    lane: int

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its arrays."""
        return self.moments.arrays(self.lane)

    def psi(self) -> Psi:
        """What it has learned."""
        return self.moments.psi(self.lane)


def _chunk(told: CompiledChunk, lane: int, moments: _Moments) -> Chunk:
    return Chunk(
        env_steps=told.env_steps[lane],
        agent_steps=int(moments.agent_steps[lane]),
        episodes=told.episodes[lane],
        metrics=told.metrics[lane],
        moment=_Moment(moments, lane),
        exact=True,
        is_last=lane in told.finished,
    )


def _as_tree(position: Position, lane: int | None = None) -> dict[str, Any]:
    """A position's arrays under their names, of all lanes or of one."""
    one = slice(None) if lane is None else slice(lane, lane + 1)
    return {
        "state": position.state if lane is None else jax.tree.map(lambda leaf: leaf[lane], position.state),
        "period": np.int64(position.period),
        "ended_env_steps": np.asarray(position.ended_env_steps, np.int64)[one],
        "ended_agent_steps": np.asarray(position.ended_agent_steps, np.int64)[one],
    }


def _split(name: str, array: NDArray[Any], lane: int) -> NDArray[Any]:
    """What a lane has of an array."""
    if name == _PERIOD:
        return array
    return array[lane] if name.startswith(_OF_LANES) else array[lane : lane + 1]


def _join(name: str, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """An array of all lanes, of what each of them has."""
    if name == _PERIOD:
        return arrays[0]
    return np.stack(arrays) if name.startswith(_OF_LANES) else np.concatenate(arrays)


def _period(arrays: Arrays | None) -> int:
    return 0 if arrays is None else int(arrays[_PERIOD])
