"""The engine for closed-form tasks: the compiled loop, one run a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration, cycle_steps
from cycletime.engines.engine import Arrays, Chunk
from cycletime.errors import InputError
from cycletime.loops import CompiledLoop, Position
from cycletime.loops.action_bounds import ActionBounds
from cycletime.loops.compilation_cache import keep_compiled_programs
from cycletime.runs.spec import RunSpec
from cycletime.runs.trees import named_arrays, tree_like
from cycletime.runs.worlds import PaperTask


@dataclass(frozen=True)
class CompiledEngine:
    """A run on a closed-form task."""

    spec: RunSpec

    def __post_init__(self) -> None:
        """Refuse what this engine cannot compute."""
        if self.spec.engine.width != 1:
            raise InputError(f"The width is {self.spec.engine.width}: a run on its own has the width 1.")
        _ = self.loop

    @cached_property
    def loop(self) -> CompiledLoop:
        """Algorithm 1."""
        assert isinstance(self.spec.world, PaperTask), "the spec refuses other worlds for this engine"
        return CompiledLoop(
            task=self.spec.world.task, agent=self.spec.bound_agent, dt=self.spec.dt, env_steps=self.spec.env_steps
        )

    @property
    def where(self) -> str:
        """Where results come from."""
        return "closed form"

    @property
    def simulators(self) -> tuple[str, ...]:
        """None but this package."""
        return ()

    @property
    def env_dt(self) -> Duration:
        """The task's time step."""
        return self.loop.task.env_dt

    @property
    def cycle_steps(self) -> int:
        """The environment steps of a cycle."""
        return cycle_steps(self.spec.dt, self.env_dt)

    @property
    def bounds(self) -> ActionBounds:
        """The paper's tasks take actions as they are."""
        return ActionBounds.raw(self.loop.task.action_size)

    @property
    def fingerprint(self) -> str:
        """The task is code, and the version of results stands for it."""
        return ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """All of its state is kept."""
        return ()

    def chunks(self, arrays: Arrays | None) -> Iterator[Chunk]:
        """Train, from the start or from the arrays of a position."""
        keep_compiled_programs()  # before the example of a position is computed, which else takes seconds
        position = None if arrays is None else self._position(arrays)
        for chunk in self.loop.run([self.spec.seed], position=position):
            yield Chunk(
                env_steps=chunk.env_steps[0],
                agent_steps=int(chunk.position.state.agent_steps),
                episodes=chunk.episodes[0],
                metrics=chunk.metrics[0],
                psi=chunk.position.state.psi,
                position=chunk.position,
                exact=True,
                is_last=bool(chunk.finished),
            )

    def arrays(self, chunk: Chunk) -> dict[str, NDArray[Any]]:
        """A chunk's position as arrays."""
        return named_arrays(_as_tree(chunk.position))

    def close(self) -> None:
        """There is nothing to let go of."""

    def _position(self, arrays: Arrays) -> Position:
        tree = tree_like(_as_tree(self.loop.start([self.spec.seed])), arrays)
        return Position(tree["state"], int(tree["period"]), tree["ended_env_steps"], tree["ended_agent_steps"])


def _as_tree(position: Position) -> dict[str, Any]:
    return {
        "state": position.state,
        "period": np.int64(position.period),
        "ended_env_steps": np.asarray(position.ended_env_steps, np.int64),
        "ended_agent_steps": np.asarray(position.ended_agent_steps, np.int64),
    }
