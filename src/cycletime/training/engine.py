"""The interface of engines, their registry `ENGINES`, and the choice of the engine for a run.

An engine refuses runs that it cannot train, batches the others, estimates their cost, and trains them in chunks. A
further one is an entry in `ENGINES`, and nothing else knows them by name.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from numpy.typing import NDArray

from cycletime.agents.agent import AgentState
from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError, RunError, unknown_name_error
from cycletime.training.external import ExternalAgent
from cycletime.training.journal import EpisodeRecord
from cycletime.training.learning_curve import Episodes
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ActionBounds, ClosedFormWorld, RobotEnv

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
EngineOption: TypeAlias = Literal["width", "learner"]
"""What a run's `EngineSpec` has beside the engine and the device, and not every engine has."""


@dataclass(frozen=True)
class Chunk:
    """About a second of training of a run. Its arrays are valid until the next chunk, which may reuse their memory."""

    env_steps: int
    """Environment steps done, at most the budget."""
    agent_steps: int
    episodes: Episodes
    metrics: Mapping[str, NDArray[Any]]
    """By name, one number for each update; their agent steps are one of them."""
    arrays: Callable[[], dict[str, NDArray[Any]]]
    """The run's state, from which `RunBatch.chunks` can resume it; without other runs."""
    agent_state: Callable[[], AgentState]
    exact: bool
    """Whether a run resumed from here is identical to an uninterrupted one."""
    is_last: bool


@dataclass(frozen=True, kw_only=True)
class EnvInfo:
    provenance: str
    """Where results come from: closed form, simulated robot, PyBullet, MuJoCo, or another Gymnasium environment."""
    env_dt: Duration
    cycle_steps: int
    longest_episode_steps: int | None = None
    """The environment steps after which an episode is over, whatever happens; None where no limit is known."""
    bounds: ActionBounds
    simulators: tuple[str, ...] = ()
    """The packages that simulate the world, beside this one."""
    card: Mapping[str, str] = field(default_factory=dict)
    """What computes the run beside JAX: a GPU by its name (`device`) and its properties. With a GPU only that and the
    compiler of its kernel (`NVRTC`) can change the run's bits."""
    log_interval: int = 1
    """Updates between two whose metrics are reported."""
    contract: Mapping[str, Any] | None = None
    """The timing that a loop must keep for the policy, from `timing_contract`; None where there is no policy."""
    fingerprint: Callable[[], str] = str
    """A hash of what the world does in a short trial, so that a change is noticed; empty for closed forms."""
    remarks: Callable[[], tuple[str, ...]] = tuple
    """Why a resumed run may not be identical to an uninterrupted one; empty where it will be."""


def closed_form_info(spec: RunSpec, card: Mapping[str, str] | None = None, log_interval: int = 1) -> EnvInfo:
    """A task in closed form at a cycle time: the version of results stands for its code, and all its state is kept."""
    world = spec.world
    assert isinstance(world, ClosedFormWorld), "engines for closed forms refuse other worlds"
    return EnvInfo(
        provenance=world.task.where,
        env_dt=world.env_dt,
        cycle_steps=cycle_steps(spec.dt, world.env_dt),
        longest_episode_steps=world.task.limit_steps,
        bounds=ActionBounds.raw(world.task.action_size),
        contract={"timing": [], "observation": list(world.task.observation_limits), "unknown_wrappers": []},
        card=card or {},
        log_interval=log_interval,
    )


@dataclass(frozen=True)
class EarlierSessions:
    """Earlier sessions of a run, as an engine with files of its own finds them there."""

    sessions: int
    remark: str


class RunBatch(ABC):
    """Runs that are trained together; they may start and end at different times.

    A run is named by its index in the list that the batch was made from. Its numbers depend on its own spec alone, and
    not on its index or on the other runs, so that it can be resumed in another batch.
    """

    env_infos: Sequence[EnvInfo]
    can_save: ClassVar[bool] = True
    """Whether chunks have arrays to resume from, and a policy."""

    @abstractmethod
    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        """Train runs, each from its start or from the arrays of a chunk.

        Yields the chunks of all runs that advanced since the last time, and once an error for a run that cannot start.
        Ends when all runs have reached their budget or were dropped.
        """

    def keep_journal(  # noqa: B027 - only a world that cannot be put back needs one
        self, run: int, recall: Callable[[], Iterable[EpisodeRecord]], keep: Callable[[EpisodeRecord], None]
    ) -> None:
        """Set where a run reads its finished episodes when resumed, and writes new ones; called before `chunks`."""

    def use_folder(self, run: int, folder: Path) -> EarlierSessions | None:
        """Set the folder for an unfinished run's files; what it left there. Called before `chunks`."""
        return None

    def drop(self, run: int) -> None:  # noqa: B027 - who has no run left asks for no more chunks
        """Stop training a run."""

    def close(self) -> None:  # noqa: B027 - not all hold something
        """Release memory, environments and processes."""


PROBE_S = 3.0
"""How long a run is tried, beyond its compilation."""


@dataclass(frozen=True)
class Cost:
    agent_step_s: float
    """The time of one agent step, with all the learning that it causes; of all runs that are trained together."""
    program_s: float
    runs_at_once: int = 1
    where: str = ""
    """The machine of these numbers, if not this one."""
    starts_each_run: bool = False
    """Whether each run takes `program_s` until it learns, as a trainer's process does, and not only each program."""


class Engine(ABC):
    """Computes runs; by default one at a time."""

    name: ClassVar[str]

    def refusal(self, spec: RunSpec) -> str | None:
        """Why it cannot train a run whose options it has, as a sentence; None where it can."""
        return None

    @abstractmethod
    def make_batch(self, specs: Sequence[RunSpec]) -> RunBatch:
        """Prepare runs of one program."""

    def check(self, spec: RunSpec) -> None:
        """Refuse a run that cannot start on this machine, by preparing it."""
        with closing(self.make_batch([spec])) as batch:
            _ = batch.env_infos

    def cost(self, spec: RunSpec, try_s: float = PROBE_S) -> Cost:
        """The cost of a run on this machine, by a trial of so many seconds of learning, or on another that is named."""
        return probe_cost(self.make_batch([spec]), try_s)

    def program(self, spec: RunSpec) -> str:
        """A key of the compiled program: runs with equal keys can be trained in one batch."""
        return json.dumps({**spec.as_json(), "seed": None, "origin": None})

    def max_lanes(self, spec: RunSpec) -> int:
        """The most lanes of a program for such runs; 1 where it has none."""
        return 1

    def max_batch_size(self, spec: RunSpec) -> int:
        """The most runs of a program that it trains together."""
        return 1

    def efficient_batch_size(self, spec: RunSpec) -> int:
        """The runs in a batch beyond which more do not use the machine better."""
        return self.max_batch_size(spec)

    def jax_device(self, spec: RunSpec) -> str:
        """The device of JAX: cpu or gpu."""
        return spec.engine.device

    def single_run(self, specs: Sequence[RunSpec]) -> RunSpec:
        """The only run of a batch, for engines that train one at a time."""
        if len(specs) > 1:
            raise InputError(f"There are {len(specs)} runs: the engine {self.name} trains one at a time.")
        return specs[0]


def probe_cost(batch: RunBatch, try_s: float) -> Cost:
    """Measure the cost of runs by training their beginning, which is not kept.

    Of runs that another process trains, all steps after the first ones that it tells of count as learning.
    """
    program_s = learning_s = 0.0
    learning_steps = steps_before = first_steps = 0
    compiled: set[bool] = set()
    runs = len(batch.env_infos)
    before_s = time.monotonic()
    with closing(batch):
        for chunks in batch.chunks(dict.fromkeys(range(runs))):
            if not chunks:
                continue
            chunk = chunks[0]
            assert isinstance(chunk, Chunk), "a run that begins has no checkpoint to be wrong"
            passed_s, steps = time.monotonic() - before_s, chunk.agent_steps - steps_before
            learns = not batch.can_save or len(chunk.metrics.get("agent_steps", ())) > 0
            if learns not in compiled:  # the program with learning and the one without, each at its first use
                compiled.add(learns)
                program_s, first_steps = program_s + passed_s, steps
            elif learns:
                learning_s, learning_steps = learning_s + passed_s, learning_steps + steps
            if chunk.is_last or learning_s >= try_s:
                break
            before_s, steps_before = time.monotonic(), chunk.agent_steps
    step_s = learning_s / learning_steps if learning_steps else 0.0
    if batch.can_save:
        return Cost(step_s, program_s)
    return Cost(step_s, max(0.0, program_s - step_s * first_steps), starts_each_run=True)


@dataclass(frozen=True)
class EngineEntry:
    """An engine by name and import path: imported only when a run may need it, so that a CPU loads nothing of CUDA."""

    name: str
    path: str
    """Its class, as module:name."""
    devices: tuple[str, ...] = ("cpu", "gpu")
    options: tuple[EngineOption, ...] = ()

    @cached_property
    def engine(self) -> Engine:
        module, _, name = self.path.partition(":")
        engine: Engine = getattr(import_module(module), name)()
        return engine

    def refusal(self, spec: RunSpec) -> str | None:
        if spec.engine.device not in self.devices:
            needed = " or ".join(map(repr, self.devices))
            return f"The engine {self.name} has the device {spec.engine.device!r}: it needs {needed}."
        if isinstance(spec.agent, ExternalAgent) != (self.name == TRAINERS):
            return f"The engine {self.name} does not train {spec.label}: {TRAINERS} is for other libraries' trainers."
        if isinstance(spec.world, RobotEnv) and self.name != _ROBOTS:
            return f"{spec.world.name} is on an arm, which needs the engine {_ROBOTS}."
        return self.engine.refusal(spec)


_ROBOTS, TRAINERS = "real-time", "trainer"
ENGINES: Mapping[str, EngineEntry] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            EngineEntry("cuda", "cycletime.cuda.engine:CudaEngine", devices=("gpu",)),
            EngineEntry("compiled", "cycletime.training.compiled_engine:CompiledEngine", options=("width",)),
            EngineEntry("stepped", "cycletime.training.stepped_engine:SteppedEngine"),
            EngineEntry(TRAINERS, "cycletime.trainers.engine:TrainerEngine"),
            EngineEntry(_ROBOTS, "cycletime.robots.engine:RealTimeEngine", options=("learner",)),
        )
    }
)
"""By name, in the order in which they are asked whether they take a run."""
AUTO = "auto"
"""The fastest engine that takes a run, among those of every installation: an engine is part of a run's identity, which
must not depend on the machine that asks."""


def engine_for(spec: RunSpec) -> Engine:
    asked, entry = spec.engine, _entry(spec.engine.name)
    if asked.version != asked.newest_version:
        ours = f"version {asked.newest_version}, whose numbers differ in their last bits, so train it anew elsewhere"
        run = f"The run is of version {asked.version} of the engine {asked.name}"
        raise InputError(f"{run}: this version of cycletime computes {ours}.")
    if sentence := _missing_option(spec) or entry.refusal(spec):
        raise InputError(sentence)
    return entry.engine


def _entry(name: str) -> EngineEntry:
    _check_name(name, ENGINES)
    return ENGINES[name]


def _check_name(name: str, known: Collection[str]) -> None:
    if name in ("cpu", "gpu"):
        raise InputError(f"engine is {name!r}, which is a device: write device={name!r}.")
    if name == "native":  # whose runs can still be read and reported
        remedy = "resume its runs there, or train them anew on another engine"
        raise InputError(f"The engine {name} was part of cycletime between 0.2.0 and 0.3.0 only: {remedy}.")
    if name not in known:
        raise unknown_name_error(name, "an engine", known)


def _missing_option(spec: RunSpec) -> str | None:
    """Which option of the run its engine lacks, as a sentence; None where it has all."""
    usual, entry = EngineSpec(), _entry(spec.engine.name)
    for option in get_args(EngineOption):
        chosen = getattr(spec.engine, option)
        if option not in entry.options and chosen != getattr(usual, option):
            having = " or ".join(each.name for each in ENGINES.values() if option in each.options)
            return f"{option} is {chosen!r}: only the engine {having} has the choice."
    return None


def with_engine(spec: RunSpec, name: str = AUTO) -> RunSpec:
    """A run with the engine of that name, or the one that AUTO chooses, on its own device and with its own width."""
    if name != AUTO:
        chosen = _with_engine_name(spec, name)
        engine_for(chosen)
        return chosen
    taken: RunSpec | None = None
    for entry in ENGINES.values():
        chosen = _with_engine_name(spec, entry.name)
        if entry.refusal(chosen) is None:
            if _missing_option(chosen) is None:
                return chosen
            taken = taken or chosen
    taken = taken or chosen
    engine_for(taken)  # which says why, as none takes it
    return taken


def _with_engine_name(spec: RunSpec, name: str) -> RunSpec:
    """The run with another engine; engines without lanes have the width 1."""
    width = spec.engine.width if "width" in _entry(name).options else 1
    return replace(spec, engine=replace(spec.engine, name=name, width=width, version=0))


def make_batch(specs: Sequence[RunSpec]) -> RunBatch:
    engine = engine_for(specs[0])
    for spec in specs[1:]:
        if engine_for(spec) is not engine:
            raise InputError(f"{spec.name} and {specs[0].name} are for different engines: train them apart.")
    return engine.make_batch(specs)


def runs_on_robot(spec: RunSpec) -> bool:
    return spec.engine.name == _ROBOTS


def check_study_engine(engine: str) -> None:
    """Refuse what is no engine for many runs, trained several at a time, as is that of robots."""
    if engine == _ROBOTS:
        remedy = "train it with 'cycletime robot run' or 'cycletime train', and study the closed form of the paper's"
        raise InputError(f"engine is {engine!r}: a robot is one run's at a time, so {remedy}, the task ur-reacher.")
    _check_name(engine, [AUTO, *(name for name in ENGINES if name not in (_ROBOTS, TRAINERS))])
