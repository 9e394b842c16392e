"""What every engine gives: the chunks of one run, and positions that can be kept as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from numpy.typing import NDArray

from cycletime.agents.agent import Psi
from cycletime.duration import Duration
from cycletime.loops import Episodes
from cycletime.loops.action_bounds import ActionBounds

Arrays: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Chunk:
    """About a second of a run."""

    env_steps: int
    """Environment steps done, at most the budget."""
    agent_steps: int
    """Agent steps done."""
    episodes: Episodes
    """The episodes that ended."""
    metrics: Mapping[str, NDArray[Any]]
    """By name, one number for each learning; their agent steps are one of them."""
    psi: Psi
    """What was learned so far."""
    position: Any
    """Where the run is, for `Engine.arrays`; the next chunk takes it over."""
    exact: bool
    """Whether a run that goes on from here equals one that was never stopped."""
    is_last: bool
    """Whether the run has reached its budget."""


class Engine(Protocol):
    """One run, ready to be computed."""

    @property
    def where(self) -> str:
        """Where results come from: closed form, MuJoCo, PyBullet or another environment of Gymnasium's."""

    @property
    def simulators(self) -> tuple[str, ...]:
        """The packages that simulate the world, beside this one."""

    @property
    def env_dt(self) -> Duration:
        """The environment's time step."""

    @property
    def cycle_steps(self) -> int:
        """The environment steps of a cycle."""

    @property
    def bounds(self) -> ActionBounds:
        """The actions that the world takes."""

    @property
    def fingerprint(self) -> str:
        """What the world does when it is tried out, so that a changed one is noticed; empty for closed forms."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Why a run that is resumed may not be identical to an uninterrupted one; nothing where it will be."""

    def chunks(self, arrays: Arrays | None) -> Iterator[Chunk]:
        """Train, from the start or from the arrays of a position."""

    def arrays(self, chunk: Chunk) -> dict[str, NDArray[Any]]:
        """A chunk's position as arrays."""

    def close(self) -> None:
        """Let go of what it holds."""
