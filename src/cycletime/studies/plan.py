"""What a study has to do: its runs, each once though cells may share it, in groups that one program serves."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cycletime.duration import cycle_steps
from cycletime.engines.choosing import enough_together, most_together
from cycletime.runs.spec import RESULT_VERSION, RunSpec
from cycletime.studies.folder import State, StudyFolder
from cycletime.studies.spec import Cell, Study

_RATES = ("discount", "trace_decay", "learning_rate", "clip", "policy_rate", "value_rate", "target_smoothing")
"""Fields that a compiled program takes as data."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A run, as little of it as is needed to make it again: there may be very many."""

    cell: int
    """The cell that it was first met in."""
    seed: int
    name: str
    """Its folder's name, which ends with its identity."""


@dataclass(frozen=True)
class Plan:
    """All runs of a study."""

    study: Study
    cells: tuple[Cell, ...]
    runs: tuple[Planned, ...]
    """Without those that another cell has already."""
    names: Mapping[int, tuple[str, ...]]
    """By cell, its runs' names in the order of the seeds."""

    @classmethod
    def of(cls, study: Study) -> Plan:
        """Plan a study."""
        cells, runs, names, seen = tuple(study.cells()), [], {}, set()
        for index, cell in enumerate(cells):
            names[index] = names_of(cell, study.seeds)
            for seed, name in zip(study.seeds, names[index], strict=True):
                if name not in seen:
                    seen.add(name)
                    runs.append(Planned(index, seed, name))
        return cls(study, cells, tuple(runs), names)

    def spec(self, planned: Planned) -> RunSpec:
        """A run's spec."""
        return self.cells[planned.cell].run(planned.seed)

    def specs(self, runs: Sequence[Planned]) -> tuple[Mapping[str, Any], ...]:
        """Runs' specs as `RunSpec.as_json` gives them; runs of a cell share all but the outermost table."""
        cells: dict[int, Mapping[str, Any]] = {}
        for planned in runs:
            if planned.cell not in cells:
                cells[planned.cell] = self.spec(planned).as_json()
        return tuple({**cells[planned.cell], "seed": planned.seed} for planned in runs)

    def groups(self, runs: tuple[Planned, ...] | None = None) -> dict[str, list[Planned]]:
        """Runs, by default all, by the program that computes them; the largest group first."""
        keys = [program_key(cell) for cell in self.cells]
        found: dict[str, list[Planned]] = {}
        for planned in self.runs if runs is None else runs:
            found.setdefault(keys[planned.cell], []).append(planned)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def together(self, planned: Planned) -> int:
        """How many runs of its group one worker trains together, at most."""
        return most_together(self.cells[planned.cell].engine)

    def enough(self, planned: Planned) -> int | None:
        """How many of them make as good a use of a worker as more do; None where only the most do."""
        return enough_together(self.cells[planned.cell].engine)

    def states(self, folder: StudyFolder) -> Iterator[tuple[Planned, State]]:
        """How far each run is."""
        for planned in self.runs:
            yield planned, folder.state_of(planned.name)

    @property
    def env_steps(self) -> int:
        """Of all runs."""
        return len(self.runs) * self.study.env_steps

    @property
    def simulated_h(self) -> float:
        """Hours of the environments' time, of runs on tasks whose time step is known without making them."""
        seconds = 0.0
        for cell, count in Counter(planned.cell for planned in self.runs).items():
            env_dt = self.cells[cell].world.env_dt
            seconds += count * self.study.env_steps * float(env_dt) if env_dt is not None else 0.0
        return seconds / 3600


def names_of(cell: Cell, seeds: Sequence[int]) -> tuple[str, ...]:
    """The names of a cell's runs, as `RunSpec.name` gives them; a study may have too many to ask each run."""
    first = cell.run(seeds[0])
    told = {**first.as_json(), "result_version": RESULT_VERSION}
    del told["origin"]
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    before, after = text.rsplit(f'"seed":{first.seed},"world":', 1)
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


def program_key(cell: Cell) -> str:
    """The same for cells whose runs one compiled program can compute: only seeds and rates differ."""
    if cell.engine.name == "cuda":
        return "cuda"  # one kernel for all
    told = cell.run(0).as_json()
    agent = {name: value for name, value in told["agent"].items() if name not in _RATES}
    return json.dumps([told["world"], told["algorithm"], agent, told["dt"], told["env_steps"], told["engine"]])


def agent_steps_of(cell: Cell) -> float:
    """About the agent steps of one run, for estimates; an environment's step is taken for the cycle if unknown."""
    env_dt = cell.world.env_dt
    return cell.env_steps / (1 if env_dt is None else cycle_steps(cell.dt, env_dt))
