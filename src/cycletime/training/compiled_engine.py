"""The engine for closed-form tasks: the compiled loop, for one run or for as many as its program has lanes.

A program computes all its lanes for the same learning periods. Where runs were stopped at different ones, those behind
are computed first until they are level with the next.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents.agent import AgentState
from cycletime.agents.exploration import normals_per_step
from cycletime.errors import InputError, NoGpuError, RunError
from cycletime.training.algorithm_1 import advance, initialize
from cycletime.training.checkpoints import named_arrays, tree_from_arrays
from cycletime.training.compiled_loop import CompiledChunk, CompiledLoop, CompiledPosition
from cycletime.training.engine import PROBE_S, Arrays, Chunk, Cost, Engine, EnvInfo, RunBatch, closed_form_info
from cycletime.training.machine import check_device, keep_compiled_programs
from cycletime.training.random_numbers import draw_updates
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld

_OF_LANES, _PERIOD, _ROWS = "state.", "period", "state.buffer.rows"


@dataclass(frozen=True)
class _LaneSnapshots:
    """The state of all lanes, fetched from the device at most once."""

    position: CompiledPosition
    loop: CompiledLoop

    def arrays(self, lane: int) -> dict[str, NDArray[Any]]:
        """A lane's arrays, as those of a run alone, with the rows of the buffer that it can fill."""
        if self.loop.width == 1:
            return {**self._arrays, _ROWS: self._arrays[_ROWS][: self.loop.room]}
        return {name: _split(name, array, lane) for name, array in self._arrays.items()}

    def agent_state(self, lane: int) -> AgentState:
        if self.loop.width == 1:
            return self.position.state.psi
        return jax.tree.map(lambda leaf: leaf[lane], self._psi)

    @cached_property
    def agent_steps(self) -> NDArray[Any]:
        return np.atleast_1d(np.asarray(self.position.state.agent_steps))

    @cached_property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        return named_arrays(_as_tree(self.position))

    @cached_property
    def _psi(self) -> AgentState:
        return jax.device_get(self.position.state.psi)


def _chunk(chunk: CompiledChunk, lane: int, snapshots: _LaneSnapshots) -> Chunk:
    return Chunk(
        env_steps=chunk.env_steps[lane],
        agent_steps=int(snapshots.agent_steps[lane]),
        episodes=chunk.episodes[lane],
        metrics=chunk.metrics[lane],
        arrays=lambda: snapshots.arrays(lane),
        agent_state=lambda: snapshots.agent_state(lane),
        exact=True,
        is_last=lane in chunk.finished,
    )


def _as_tree(position: CompiledPosition, lane: int | None = None) -> dict[str, Any]:
    one = slice(None) if lane is None else slice(lane, lane + 1)
    return {
        "state": position.state if lane is None else jax.tree.map(lambda leaf: leaf[lane], position.state),
        "period": np.int64(position.period),
        "ended_env_steps": np.asarray(position.ended_env_steps, np.int64)[one],
        "ended_agent_steps": np.asarray(position.ended_agent_steps, np.int64)[one],
    }


def _split(name: str, array: NDArray[Any], lane: int) -> NDArray[Any]:
    if name == _PERIOD:
        return array
    return array[lane] if name.startswith(_OF_LANES) else array[lane : lane + 1]


def _join(name: str, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if name == _PERIOD:
        return arrays[0]
    return np.stack(arrays) if name.startswith(_OF_LANES) else np.concatenate(arrays)


_STATES, _DRAWS = 2, 5
"""How often the state and the random numbers are there at the worst moment: XLA moves the state between programs, and
random numbers are made of keys, bits and uniform ones."""


def lane_bytes(loop: CompiledLoop) -> int:
    task, shape = loop.task, replace(loop.shape, capacity=loop.room, alone=False)
    rates = jax.eval_shape(lambda: jax.tree.map(lambda rate: jnp.asarray(rate, task.dtype), loop.agent))
    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    state = jax.eval_shape(partial(initialize, shape), rates, key)
    output = jax.eval_shape(
        partial(advance, shape, learns=True), _with_lane_axis(rates), _with_lane_axis(state), jnp.int32(1)
    )[1]
    keys = jax.eval_shape(lambda each: jax.random.split(each, shape.periods), key)
    draws = jax.eval_shape(lambda each: draw_updates(loop.agent, each, task.action_size), keys)
    steps = shape.timed_task.steps_until_learning(loop.agent) * shape.periods
    normals = int(steps * normals_per_step(loop.agent.exploration, task.action_size) * jnp.dtype(task.dtype).itemsize)
    return _STATES * _tree_bytes(state) + _DRAWS * (_tree_bytes(draws) + normals) + _tree_bytes(output)


def _with_lane_axis(tree: Any) -> Any:  # noqa: ANN401 - any tree of shapes
    return jax.eval_shape(lambda each: jax.tree.map(lambda leaf: leaf[None], each), tree)


def _tree_bytes(tree: Any) -> int:  # noqa: ANN401 - any tree of shapes
    keys = jax.dtypes.prng_key
    return sum(
        each.size * (8 if jnp.issubdtype(each.dtype, keys) else each.dtype.itemsize) for each in jax.tree.leaves(tree)
    )


MOST_LANES = 512
"""No program is wider: a GPU is busy by then, and all its runs would be lost together."""
GPU_BYTES = 64 * 2**30
"""The memory of a GPU that programs may take. It is no machine's own, since the width is part of a run's identity."""
_H200_UPDATE_S = {"sac": 15e-6}
"""By algorithm, the time of an update of one of many runs side by side, where `benchmarks/sac_gpu.py` knows it."""


@dataclass(frozen=True)
class CompiledEngine(Engine):
    name: ClassVar[str] = "compiled"

    def refusal(self, spec: RunSpec) -> str | None:
        if not isinstance(spec.world, ClosedFormWorld):
            return f"{spec.world.name!r} is an environment, which the {self.name} engine cannot run."
        return None

    def program(self, spec: RunSpec) -> str:
        """All fields but the seed; of rates, which are data, only whether they are set."""
        data = spec.as_json()
        rates = {each.name for each in fields(spec.own_agent) if each.metadata.get("rate")}  # type: ignore[arg-type]
        agent = {name: "set" if name in rates else value for name, value in data["agent"].items()}
        names = ("world", "algorithm", "dt", "env_steps", "num_envs", "engine", "exploration")
        return json.dumps([*(data.get(name) for name in names), agent])

    def max_lanes(self, spec: RunSpec) -> int:
        """As many as a data-centre card has memory for; a CPU is busy with one."""
        return min(MOST_LANES, GPU_BYTES // lane_bytes(make_loop(spec))) if spec.engine.device == "gpu" else 1

    def max_batch_size(self, spec: RunSpec) -> int:
        return spec.engine.width

    def make_batch(self, specs: Sequence[RunSpec]) -> CompiledBatch:
        check_device(specs[0].engine.device)
        return CompiledBatch(tuple(specs))

    def cost(self, spec: RunSpec, try_s: float = PROBE_S) -> Cost:
        """Measured; without a GPU, the known cost on an H200."""
        try:
            return super().cost(spec, try_s)
        except NoGpuError:
            if spec.algorithm not in _H200_UPDATE_S:
                raise
            updates = spec.own_agent.gradient_steps / spec.agent.period  # type: ignore[attr-defined]  # of SAC
            return Cost(_H200_UPDATE_S[spec.algorithm] * updates * spec.engine.width, 30.0, where="an H200")


def make_loop(spec: RunSpec) -> CompiledLoop:
    assert isinstance(spec.world, ClosedFormWorld), "the engine refuses other worlds"
    return CompiledLoop(
        task=spec.world.task,
        agent=spec.bound_agent,
        dt=spec.dt,
        env_steps=spec.env_steps,
        num_envs=spec.num_envs,
        width=spec.engine.width,
    )


@dataclass(frozen=True)
class CompiledBatch(RunBatch):
    """Runs in the lanes of one program, at most `width` of them; lanes without a run repeat one."""

    specs: tuple[RunSpec, ...]
    _dropped: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        width, engine = self.specs[0].engine.width, CompiledEngine()
        if len(self.specs) > width:
            raise InputError(f"There are {len(self.specs)} runs: a program of the width {width} takes {width} of them.")
        for spec in self.specs[1:]:
            if engine.program(spec) != engine.program(self.specs[0]):
                raise InputError(f"{spec.name} and {self.specs[0].name} need different programs: train them apart.")
        _ = self.loop

    @cached_property
    def env_infos(self) -> tuple[EnvInfo, ...]:  # type: ignore[override]
        return tuple(map(closed_form_info, self.specs))

    @cached_property
    def loop(self) -> CompiledLoop:
        return make_loop(self.specs[0])

    def drop(self, run: int) -> None:
        self._dropped.add(run)

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        keep_compiled_programs()  # before the example of a position is computed, which else takes seconds
        wrong = self._start_errors(starts)
        if wrong:
            yield wrong
        at = {run: arrays for run, arrays in starts.items() if run not in wrong}
        while going := [run for run in at if run not in self._dropped]:
            periods = {run: 0 if (arrays := at[run]) is None else int(arrays[_PERIOD]) for run in going}
            behind = min(periods.values())
            level = [run for run in going if periods[run] == behind]
            until = min((period for period in periods.values() if period > behind), default=None)
            starts_now = [at.pop(run) for run in level]
            at |= yield from self._train_level_runs(level, starts_now, until)

    def _train_level_runs(
        self, runs: Sequence[int], at: Sequence[Arrays | None], until: int | None
    ) -> Generator[Mapping[int, Chunk], None, dict[int, Arrays | None]]:
        """Train runs at the same learning period up to a later one; the arrays of those that are not finished then."""
        seeds, agents = zip(*((self.specs[run].seed, self.specs[run].bound_agent) for run in runs), strict=True)
        given = [each for each in at if each is not None]  # all of them, or none where they are at their start
        position = self._joined_position(given) if given else None
        going, snapshots = list(runs), None
        for loop_chunk in self.loop.run(seeds, agents, position, until=until):
            snapshots = _LaneSnapshots(loop_chunk.position, self.loop)
            chunks = {run: _chunk(loop_chunk, lane, snapshots) for lane, run in enumerate(runs) if run in going}
            going = [run for run in going if not chunks[run].is_last]
            yield {run: chunk for run, chunk in chunks.items() if run not in self._dropped}
            if self._dropped.issuperset(going):
                return {}
        assert snapshots is not None, "runs that are level have periods left"
        return {run: snapshots.arrays(lane) for lane, run in enumerate(runs) if run in going}

    def _start_errors(self, starts: Mapping[int, Arrays | None]) -> dict[int, RunError]:
        given, wrong = {run: arrays for run, arrays in starts.items() if arrays is not None}, {}
        example = _as_tree(self._example, lane=None if self.loop.width == 1 else 0) if given else {}
        for run, arrays in given.items():
            try:
                tree_from_arrays(example, self._with_spare_rows(arrays))
            except RunError as error:
                wrong[run] = error
        return wrong

    def _joined_position(self, lanes: Sequence[Arrays]) -> CompiledPosition:
        """The position whose lanes these are; the last one is repeated where there are too few."""
        padded = [*lanes, *[lanes[-1]] * (self.loop.width - len(lanes))]
        if self.loop.width > 1:
            joined = {name: _join(name, [lane[name] for lane in padded]) for name in lanes[0]}
        else:
            joined = self._with_spare_rows(lanes[0])
        tree = tree_from_arrays(_as_tree(self._example), joined)
        return CompiledPosition(tree["state"], int(tree["period"]), tree["ended_env_steps"], tree["ended_agent_steps"])

    def _with_spare_rows(self, lane: Arrays) -> dict[str, NDArray[Any]]:
        """A lane's arrays, its buffer padded with the rows that the run cannot fill."""
        rows, more = lane.get(_ROWS), self.loop.shape.capacity - self.loop.room
        if not more or rows is None or rows.shape[:1] != (self.loop.room,):  # of the last two somebody else complains
            return dict(lane)
        return {**lane, _ROWS: np.pad(rows, [(0, more)] + [(0, 0)] * (rows.ndim - 1))}

    @property
    def _example(self) -> CompiledPosition:
        return self.loop.start([self.specs[0].seed], [self.specs[0].bound_agent])
