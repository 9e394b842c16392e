"""All engines. A further one is a further entry here, and nothing else knows them by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import get_args

from cycletime.errors import InputError, unknown_name_error
from cycletime.training.engine import Engine, EngineOption, RunBatch
from cycletime.training.spec import EngineSpec, RunSpec


@dataclass(frozen=True)
class EngineEntry:
    """An engine by name and place: it is imported when a run may need it, so that a CPU loads nothing of CUDA."""

    name: str
    path: str
    """Its class, as module:name."""
    devices: tuple[str, ...] = ("cpu", "gpu")
    """Where it computes."""
    options: tuple[EngineOption, ...] = ()
    """Those that it has."""

    def load(self) -> Engine:
        """The engine itself, always the same."""
        return _load(self.path)

    def refusal(self, spec: RunSpec) -> str | None:
        """In a sentence, why it cannot take a run whose options it has; None where it can."""
        if spec.engine.device not in self.devices:
            needed = " or ".join(map(repr, self.devices))
            return f"The engine {self.name} has the device {spec.engine.device!r}: it needs {needed}."
        return self.load().refusal(spec)


@cache
def _load(path: str) -> Engine:
    module, _, name = path.partition(":")
    engine: Engine = getattr(import_module(module), name)()
    return engine


_ROBOTS = "real-time"
ENGINES: Mapping[str, EngineEntry] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            EngineEntry("cuda", "cycletime.cuda.engine:CudaEngine", devices=("gpu",)),
            EngineEntry("compiled", "cycletime.training.compiled_engine:CompiledEngine", options=("width",)),
            EngineEntry("stepped", "cycletime.training.stepped_engine:SteppedEngine"),
            EngineEntry(_ROBOTS, "cycletime.robots.engine:RealTimeEngine", options=("learner",)),
        )
    }
)
"""By name, in the order in which they are asked whether they take a run."""
AUTO = "auto"
"""What stands for the fastest engine that takes a run and that every installation has: an engine is part of a run's
identity, which must not depend on where it is asked for."""

_REMOVED_ENGINE = "native"
"""Its runs can still be read and reported."""


def engine_for(spec: RunSpec) -> Engine:
    """The engine that a run asks for."""
    asked, entry = spec.engine, _named(spec.engine.name)
    if asked.version != asked.newest_version:
        raise InputError(
            f"The run is of version {asked.version} of the engine {asked.name}: this version of cycletime computes "
            f"version {asked.newest_version}, whose numbers differ in their last bits, so train it anew elsewhere."
        )
    if sentence := _missing_option(spec) or entry.refusal(spec):
        raise InputError(sentence)
    return entry.load()


def _named(name: str) -> EngineEntry:
    _check_name(name, ENGINES)
    return ENGINES[name]


def _check_name(name: str, known: Collection[str]) -> None:
    if name in ("cpu", "gpu"):
        raise InputError(f"engine is {name!r}, which is a device: write device={name!r}.")
    if name == _REMOVED_ENGINE:
        raise InputError(
            f"The engine {name} was part of cycletime between 0.2.0 and 0.3.0 only: resume its runs there, or train "
            "them anew on another engine."
        )
    if name not in known:
        raise unknown_name_error(name, "an engine", known)


def _missing_option(spec: RunSpec) -> str | None:
    """In a sentence, which option of the run its engine does not have; None where it has all."""
    usual, entry = EngineSpec(), _named(spec.engine.name)
    for option in get_args(EngineOption):
        chosen = getattr(spec.engine, option)
        if option not in entry.options and chosen != getattr(usual, option):
            having = " or ".join(each.name for each in ENGINES.values() if option in each.options)
            return f"{option} is {chosen!r}: only the engine {having} has the choice."
    return None


def with_engine(spec: RunSpec, name: str = AUTO) -> RunSpec:
    """A run with the engine of a name, or with that of AUTO, on the device and of the width that it has."""
    if name != AUTO:
        chosen = _on(spec, name)
        engine_for(chosen)
        return chosen
    taken: RunSpec | None = None
    for entry in ENGINES.values():
        chosen = _on(spec, entry.name)
        if entry.refusal(chosen) is None:
            if _missing_option(chosen) is None:
                return chosen
            taken = taken or chosen
    taken = taken or chosen
    engine_for(taken)  # which says why, as none takes it
    return taken


def _on(spec: RunSpec, name: str) -> RunSpec:
    """A run on an engine; those that train no lanes side by side have no width."""
    width = spec.engine.width if "width" in _named(name).options else 1
    return replace(spec, engine=replace(spec.engine, name=name, width=width, version=0))


def make_batch(specs: Sequence[RunSpec]) -> RunBatch:
    """Runs, ready to be trained together."""
    engine = engine_for(specs[0])
    for spec in specs[1:]:
        if engine_for(spec) is not engine:
            raise InputError(f"{spec.name} and {specs[0].name} are for different engines: train them apart.")
    return engine.group(specs)


def runs_on_robot(spec: RunSpec) -> bool:
    """Whether a run moves a robot, so that its cycles are to be seen, and a signal is to let the robot stand."""
    return spec.engine.name == _ROBOTS


def check_study_engine(engine: str) -> None:
    """Refuse what is no engine for many runs, trained several at a time, as is that of robots."""
    if engine == _ROBOTS:
        raise InputError(
            f"engine is {engine!r}: a robot is one run's at a time, so train it with 'cycletime robot run' or "
            "'cycletime train', and study the closed form of the paper's, the task ur-reacher."
        )
    _check_name(engine, [AUTO, *(name for name in ENGINES if name != _ROBOTS)])
