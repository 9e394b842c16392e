"""What an engine is: which runs it takes, how they go together, what they cost, and the chunks that it trains them in.

`cycletime.engines.registry` has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from numpy.typing import NDArray

from cycletime.agents.agent import Psi
from cycletime.duration import Duration
from cycletime.errors import RunError
from cycletime.loops import Episodes
from cycletime.loops.action_bounds import ActionBounds
from cycletime.loops.real_time.episode import EpisodeRecord
from cycletime.runs.spec import RunSpec

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Option: TypeAlias = Literal["width", "matmul", "learner"]
"""What a run's `EngineSpec` has beside the engine and the device, and not every engine has."""


class Moment(Protocol):
    """Where a run is; good until the run's next chunk is asked for, which may take its arrays over."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is needed to go on from here, and nothing of other runs."""

    def psi(self) -> Psi:
        """What was learned so far."""


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
    moment: Moment
    """Where the run is."""
    exact: bool
    """Whether a run that goes on from here equals one that was never stopped."""
    is_last: bool
    """Whether the run has reached its budget."""


class Setting(Protocol):
    """What a run's files tell of the world that it is computed in."""

    @property
    def where(self) -> str:
        """Where results come from: closed form, simulated robot, PyBullet, MuJoCo, or another Gymnasium environment."""

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
    def longest_episode_steps(self) -> int | None:
        """The environment steps after which an episode is over, whatever happens; None where no limit is known."""

    @property
    def bounds(self) -> ActionBounds:
        """The actions that the world takes."""

    @property
    def fingerprint(self) -> str:
        """What the world does when it is tried out, so that a changed one is noticed; empty for closed forms."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Why a run that is resumed may not be identical to an uninterrupted one; nothing where it will be."""

    @property
    def card(self) -> Mapping[str, str] | None:
        """What computes the run beside JAX: our `native` library, or a GPU by its name (`device`) and what else it has.

        With a GPU nothing else but the compiler of its kernel (`NVRTC`) decides the run's bits.
        """

    @property
    def told_every(self) -> int:
        """From one learning whose metrics are told to the next; 1 where all are."""


class Group(Protocol):
    """Runs, ready to be computed together. They may begin at different moments and end at different times.

    Runs are known by their place in the list that the group was made from. What a run computes depends on its own spec
    alone, and neither on its place nor on the others, so that it can go on later in another group.
    """

    @property
    def settings(self) -> Sequence[Setting]:
        """By run, the world that it is computed in."""

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        """Train runs, each from its start or from the arrays of a moment.

        Each time, the chunks of all runs that went on since the last time; a run that cannot begin has an error once.
        It ends when all runs have reached their budget or were dropped.
        """

    def drop(self, run: int) -> None:
        """Go on without a run."""

    def close(self) -> None:
        """Let go of what it holds."""


class EpisodeJournal(Protocol):
    """Where a run's finished episodes are kept at once, and found when it is resumed."""

    def episodes(self) -> Iterator[EpisodeRecord]:
        """Those of earlier sessions."""

    def append(self, episode: EpisodeRecord) -> None:
        """Keep one; the disk has it when this returns."""


@runtime_checkable
class JournalingGroup(Protocol):
    """A group whose world cannot be put back, so that each finished episode is kept beside the checkpoints."""

    def keep_journal(self, run: int, journal: EpisodeJournal) -> None:
        """Where to keep those of a run; said before its chunks are asked for."""


@dataclass(frozen=True)
class Cost:
    """What runs of a kind take."""

    agent_step_s: float
    """The time of one agent step, with all the learning that it causes; of all runs that are trained together."""
    program_s: float
    """The time until the first steps are computed."""
    runs_at_once: int = 1
    """The runs that are trained at the same time."""
    where: str = ""
    """The machine that this is known of, where it is not this one."""


class Engine(Protocol):
    """One way to compute runs."""

    name: ClassVar[str]
    options: ClassVar[frozenset[Option]]
    """Those that it has."""

    def refusal(self, spec: RunSpec) -> str | None:
        """In a sentence, why it cannot take a run whose options it has; None where it can."""

    def program(self, spec: RunSpec) -> str:
        """The same for runs that one program computes, which are trained one after another or together."""

    def most_lanes(self, spec: RunSpec) -> int:
        """How wide a program of such runs can be; 1 where it has no lanes."""

    def together(self, spec: RunSpec) -> int:
        """How many runs of a program it trains together, at most."""

    def enough(self, spec: RunSpec) -> int:
        """How many of them together make as good a use of a machine as more do."""

    def jax_device(self, spec: RunSpec) -> str:
        """Where JAX computes: cpu or gpu."""

    def group(self, specs: Sequence[RunSpec]) -> Group:
        """Make runs of one program ready.

        Raises:
            InputError: if they cannot be trained together, or not here.
        """

    def cost(self, spec: RunSpec) -> Cost:
        """What a run takes on this machine, or on another one that is named; it may be tried for a few seconds."""

    def known_cost(self, spec: RunSpec) -> Cost | None:
        """What a run is known to take on a machine that is named, without trying it here; None where nothing is."""
