"""What the robots' trial consists of: tasks, arms, settings and the order of its runs, read from frozen files.

`preregistration.toml` is written by people; `plan.json` is made from it by `plan.py`. A *setting* is everything that a
training depends on but its seed and its length: task, cycle time, algorithm, rewards and the trainer's values. Arms
that come to the same values share a setting, and its runs count for each of them. Standard library alone: a machine
that trains needs neither this package nor its dependencies.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PREREGISTRATION = HERE / "preregistration.toml"
PLAN = HERE / "plan.json"
SHIPPED = "shipped"
BUDGET = "budget"


@dataclass(frozen=True)
class Task:
    """A task of MuJoCo Playground, and what in it counts in steps."""

    name: str
    kind: str
    sim_dt_ms: float
    cycle_times_ms: tuple[float, float, float]
    interval: int
    resets: int
    reward: str
    expected: tuple[float, float]
    increments: bool = False
    step_ranges: tuple[str, ...] = ()
    fixed_steps: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    measured_by: tuple[str, ...] = ()
    keep_policies: bool = False
    mass_kg: float | None = None

    @property
    def own_ms(self) -> float:
        """The cycle time that Playground ships."""
        return self.cycle_times_ms[1]

    def ratio(self, dt_ms: float) -> Fraction:
        """The ratio rho = dt / dt0, exactly."""
        return Fraction(str(dt_ms)) / Fraction(str(self.own_ms))


@dataclass(frozen=True)
class Setting:
    """All that a training depends on but its seed and its length."""

    name: str
    task: str
    dt_ms: float
    arms: tuple[str, ...]
    algorithm: str
    rewards: str
    values: Mapping[str, Any]
    interval_steps: int
    resets: int
    fixed_intervals: int | None = None
    command: str = ""
    notes: tuple[str, ...] = ()

    @property
    def arm(self) -> str:
        """The first of its arms, by which its rows are called."""
        return self.arms[0]

    @property
    def interval_s(self) -> float:
        """Simulated seconds between two evaluations, over all environments."""
        return self.interval_steps * self.dt_ms / 1000


@dataclass(frozen=True)
class Run:
    """One training of the plan."""

    stage: str
    setting: str
    seed: int

    @property
    def key(self) -> str:
        """What identifies its row."""
        return f"{self.stage}/{self.setting}/{self.seed}" if self.stage == BUDGET else f"{self.setting}/{self.seed}"


@dataclass(frozen=True)
class Trial:
    """The frozen plan."""

    numbers: Mapping[str, Any]
    tasks: Mapping[str, Task]
    settings: Mapping[str, Setting]
    runs: tuple[Run, ...]
    versions: Mapping[str, str] = field(default_factory=dict)

    def task_of(self, run: Run) -> Task:
        """The task that a run trains on."""
        return self.tasks[self.settings[run.setting].task]


def read_preregistration(file: Path = PREREGISTRATION) -> dict[str, Any]:
    """The tables that people wrote."""
    return tomllib.loads(file.read_text(encoding="utf-8"))


def tasks_of(tables: Mapping[str, Any]) -> dict[str, Task]:
    """Tasks by name, in the order in which they are run."""
    return {table["name"]: Task(**{key: _frozen(value) for key, value in table.items()}) for table in tables["tasks"]}


def read_trial(preregistration: Path = PREREGISTRATION, plan: Path = PLAN) -> Trial:
    """The trial as it was frozen."""
    tables = read_preregistration(preregistration)
    planned = json.loads(plan.read_text(encoding="utf-8"))
    settings = {
        name: Setting(name=name, **{key: _frozen(value) for key, value in table.items()})
        for name, table in planned["settings"].items()
    }
    runs = tuple(Run(stage, setting, seed) for stage, setting, seed in planned["runs"])
    return Trial(tables["trial"], tasks_of(tables), settings, runs, tables["versions"])


def setting_name(task: Task, dt_ms: float, arm: str) -> str:
    """What a setting is called: by its first arm."""
    return f"{task.name}/{dt_ms:g}ms/{arm}"


@dataclass(frozen=True)
class Block:
    """All settings of one task and some arms, with the same seeds."""

    stage: str
    task: str
    arms: frozenset[str]
    seeds: tuple[int, ...]


def ordered_runs(tables: Mapping[str, Any], settings: Mapping[str, Setting]) -> Iterator[Run]:
    """All runs, block by block, such that every prefix of whole blocks is balanced."""
    main = {SHIPPED, *tables["stages"]["main"]}
    for block in _blocks(tables):
        for name, setting in settings.items():
            arms = set(setting.arms)
            # A setting that counts for arms of two stages is run in the first of them.
            earlier = block.stage in ("rivals", "corrected", "sac") and arms & main
            if setting.task == block.task and arms & block.arms and not earlier:
                yield from (Run(block.stage, name, seed) for seed in block.seeds)


def _blocks(tables: Mapping[str, Any]) -> Iterator[Block]:
    """Blocks in the order in which they are run.

    Each task's budget stands before the block of the task before it, so that nothing waits for it. Go1 comes first,
    then the main arms on one task after the other. After the eighth of them come Go1's rivals and corrected rewards,
    after the last what is run on a few tasks only, and then more seeds.
    """
    numbers, stages = tables["trial"], tables["stages"]
    names = list(tasks_of(tables))
    first, main = names[0], frozenset({SHIPPED, *stages["main"]})
    for index, task in enumerate(names):
        ahead = names[: 2 if index == 0 else 0] or names[index + 1 : index + 2]
        yield from (Block(BUDGET, each, frozenset({SHIPPED}), (numbers["budget_seed"],)) for each in ahead)
        yield Block("main", task, main, _seeds(numbers, task == first))
        if index + 1 == stages["first_task_rivals_after"]:
            yield from (_few(tables, stage, first, True) for stage in ("rivals", "corrected"))
    for stage in ("rivals", "sac"):
        for task in stages[f"{stage}_on"]:
            if stage == "sac" or task != first:
                yield _few(tables, stage, task, task == first)
    for task in names:
        later = numbers["first_task_later_seeds" if task == first else "later_seeds"]
        yield Block("more seeds", task, main, tuple(later))


def _few(tables: Mapping[str, Any], stage: str, task: str, is_first: bool) -> Block:
    """A block of arms that are run on a few tasks only."""
    arms = frozenset({*tables["stages"][stage], f"{SHIPPED}-{stage}"})
    return Block(stage, task, arms, _seeds(tables["trial"], is_first))


def _seeds(numbers: Mapping[str, Any], is_first: bool) -> tuple[int, ...]:
    return tuple(numbers["first_task_seeds" if is_first else "seeds"])


def _frozen(value: Any) -> Any:  # noqa: ANN401
    return tuple(value) if isinstance(value, list) else value
