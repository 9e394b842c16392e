"""The plan of a study: its runs, each once though cells may share it, in groups of one program."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from cycletime.duration import cycle_steps
from cycletime.studies.spec import Cell, StudySpec
from cycletime.training.engine import engine_for
from cycletime.training.external import ExternalAgent
from cycletime.training.spec import RunSpec
from cycletime.training.toml_files import trained_otherwise


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The least that identifies a run, since there may be a million."""

    cell: int
    seed: int
    name: str
    """Its folder's name, which ends with its identity."""


@dataclass(frozen=True)
class Plan:
    study: StudySpec
    cells: tuple[Cell, ...]
    runs: tuple[PlannedRun, ...]
    names: Mapping[int, tuple[str, ...]]

    @classmethod
    def of(cls, study: StudySpec) -> Plan:
        study = study.resolved()
        cells, runs, names, seen = tuple(study.cells()), [], {}, set()
        for index, cell in enumerate(cells):
            names[index] = run_names(cell, study.seeds)
            for seed, name in zip(study.seeds, names[index], strict=True):
                if name not in seen:
                    seen.add(name)
                    runs.append(PlannedRun(index, seed, name))
        return cls(study, cells, tuple(runs), names)

    def spec(self, planned: PlannedRun) -> RunSpec:
        return self.cells[planned.cell].run(planned.seed)

    @cached_property
    def programs(self) -> tuple[str, ...]:
        specs = [cell.spec for cell in self.cells]
        return tuple(engine_for(spec).program(spec) for spec in specs)

    def groups(self, runs: Iterable[PlannedRun] | None = None) -> dict[str, list[PlannedRun]]:
        """Runs, by default all, by their program; the largest group first."""
        found: dict[str, list[PlannedRun]] = {}
        for planned in self.runs if runs is None else runs:
            found.setdefault(self.programs[planned.cell], []).append(planned)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def batch_size(self, runs: Sequence[PlannedRun], workers: int) -> int:
        """The runs of a group that a worker claims at once, so that other workers have enough too."""
        spec = self.spec(runs[0])
        engine = engine_for(spec)
        return min(engine.max_batch_size(spec), max(engine.efficient_batch_size(spec), math.ceil(len(runs) / workers)))

    def workers_needed(self, runs: Iterable[PlannedRun], workers: int) -> int:
        """How many workers the batches of these runs keep busy, at most as many as there are."""
        groups = self.groups(runs).values()
        return min(workers, sum(math.ceil(len(group) / self.batch_size(group, workers)) for group in groups))

    def notes(self) -> tuple[str, ...]:
        told = [*untrained(cell.spec for cell in self.cells)]
        for tuned in self.study.tuned.values():
            told += trained_otherwise(tuned.source, **self.study.trained_by())
        bare = filter(self.study.is_bare, self.study.algorithms if len(self.study.dts) > 1 else ())
        same = "no rule: [tuned] dt is not given, so the values are the same at every cycle time."
        told += [f"{algorithm}: {same}" for algorithm in bare]
        for agent, dt in ((cell.agent, cell.dt) for cell in self.cells if isinstance(cell.agent, ExternalAgent)):
            told += [f"{agent.algorithm} at {dt}: {each}" for each in agent.notes]
        return tuple(f"note: {each}" for each in dict.fromkeys(told))

    def engines(self) -> Counter[str]:
        return Counter(self.cells[planned.cell].spec.engine.name for planned in self.runs)

    @property
    def jax_device(self) -> str:
        specs = [cell.spec for cell in self.cells]
        return max((engine_for(spec).jax_device(spec) for spec in specs), key=["cpu", "gpu"].index)

    @property
    def env_steps(self) -> int:
        return len(self.runs) * self.study.env_steps

    @property
    def simulated_h(self) -> float | None:
        """Hours of the environments' time; None where a time step is not known without making the environment."""
        seconds = 0.0
        for cell, count in Counter(planned.cell for planned in self.runs).items():
            env_dt = self.cells[cell].world.env_dt
            if env_dt is None:
                return None
            seconds += count * self.study.env_steps * float(env_dt)
        return seconds / 3600


def untrained(specs: Iterable[RunSpec]) -> tuple[str, ...]:
    """A sentence for each task and algorithm whose runs end within their random start, or before they learn."""
    found: dict[str, str] = {}
    for spec in specs:
        if spec.world.env_dt is None:
            continue
        cycle, name = cycle_steps(spec.dt, spec.world.env_dt), f"{spec.world.name} {spec.algorithm}"
        random, first = spec.agent.random_steps * cycle, spec.agent.learns_from * cycle
        if random >= spec.env_steps:
            found[name] = f"the random start lasts {random:,} environment steps, so that the policy never acts."
        elif first > spec.env_steps:
            found[name] = f"a batch at {spec.dt} takes {first:,} environment steps, so that nothing is learned."
    return tuple(f"{name}: {told}" for name, told in found.items())


def run_names(cell: Cell, seeds: Sequence[int]) -> tuple[str, ...]:
    """The names of a cell's runs, as `RunSpec.name` gives them; a study may have too many to ask each run."""
    first = cell.run(seeds[0])
    before, after = first.identity_text().rsplit(f'"seed":{first.seed},"world":', 1)
    begun = sha256(f'{before}"seed":'.encode())
    prefix = first.name.removesuffix(f"seed{first.seed}-{first.identity[:10]}")
    names = []
    for seed in seeds:
        identity = begun.copy()
        identity.update(f'{seed},"world":{after}'.encode())
        names.append(f"{prefix}seed{seed}-{identity.hexdigest()[:10]}")
    if names[0] != first.name:
        raise AssertionError("a run's identity is not what it was when this was written")
    return tuple(names)


def agent_steps_per_run(cell: Cell) -> float:
    """Roughly the agent steps of one run, for estimates; an unknown environment step counts as a cycle."""
    env_dt = cell.world.env_dt
    return cell.spec.env_steps / (1 if env_dt is None else cycle_steps(cell.dt, env_dt))
