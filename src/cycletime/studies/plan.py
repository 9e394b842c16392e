"""What a study has to do: its runs, each once though cells may share it, in groups that one program serves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cycletime.duration import cycle_steps
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import PaperTask
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
            own = []
            for seed in study.seeds:
                name = cell.run(seed).name
                own.append(name)
                if name not in seen:
                    seen.add(name)
                    runs.append(Planned(index, seed, name))
            names[index] = tuple(own)
        return cls(study, cells, tuple(runs), names)

    def spec(self, planned: Planned) -> RunSpec:
        """A run's spec."""
        return self.cells[planned.cell].run(planned.seed)

    def groups(self, runs: tuple[Planned, ...] | None = None) -> dict[str, list[Planned]]:
        """Runs, by default all, by the program that computes them; the largest group first."""
        keys = [program_key(cell) for cell in self.cells]
        found: dict[str, list[Planned]] = {}
        for planned in self.runs if runs is None else runs:
            found.setdefault(keys[planned.cell], []).append(planned)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

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
        for planned in self.runs:
            world = self.cells[planned.cell].world
            env_dt = world.env_dt
            seconds += self.study.env_steps * float(env_dt) if env_dt is not None else 0.0
        return seconds / 3600


def program_key(cell: Cell) -> str:
    """The same for cells whose runs one compiled program can compute: only seeds and rates differ."""
    told = cell.run(0).as_json()
    agent = {name: value for name, value in told["agent"].items() if name not in _RATES}
    return json.dumps([told["world"], told["algorithm"], agent, told["dt"], told["env_steps"], told["engine"]])


def agent_steps_of(cell: Cell) -> float:
    """About the agent steps of one run, for estimates; an environment's step is taken for the cycle if unknown."""
    env_dt = cell.world.task.env_dt if isinstance(cell.world, PaperTask) else cell.world.env_dt
    return cell.env_steps / (1 if env_dt is None else cycle_steps(cell.dt, env_dt))
