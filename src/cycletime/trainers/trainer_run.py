"""The request that a trainer in Python gets, with `report` for the points of its curve."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError
from cycletime.training.worlds import World, make_env, world_as_json, world_from_json

if TYPE_CHECKING:
    import gymnasium

POINTS_FILE = "points.jsonl"


@dataclass(frozen=True, kw_only=True)
class TrainerRun:
    """One training that a function is asked for.

    A function yields, or calls `report` with, points of simulated seconds (of all environments together), agent steps
    and the return of an episode, or the mean of several. It is ended where it goes beyond its budget.

    Example:
        >>> def train(run):
        ...     env = run.make_env()
        ...     for episode in range(10):
        ...         yield run.dt_s * 50 * (episode + 1), 50 * (episode + 1), -1.0
    """

    world: World
    algorithm: str
    dt: Duration
    values: Mapping[str, Any]
    """Hyper-parameters, in the words of the study's `words` or in ours: batch, discount, ..."""
    num_envs: int
    seed: int
    simulated_s: float
    """The budget in seconds of the environments' time."""
    device: str
    folder: Path
    """For whatever the trainer writes; removed when the run is finished."""
    resumes: bool
    """Whether the folder has what this trainer left when it was stopped; only where it can resume."""

    @property
    def env(self) -> str:
        return self.world.name

    @property
    def dt_s(self) -> float:
        return float(self.dt)

    @property
    def dt_ms(self) -> float:
        return float(1000 * self.dt.exact_s)

    @property
    def cycle_steps(self) -> int:
        """Steps of the study's env_dt in a cycle, such as Isaac Lab's decimation; each 1 ms where it has none."""
        return cycle_steps(self.dt, self.world.env_dt or "1ms")

    @property
    def agent_steps(self) -> int:
        """The budget in agent steps of all environments together."""
        return round(self.simulated_s / self.dt_s)

    def make_env(self) -> gymnasium.Env[Any, Any]:
        """The study's task or environment, of which one step is one cycle."""
        return make_env(self.world, self.dt, discrete=True)

    def report(self, simulated_s: float, agent_steps: int, mean_return: float) -> None:
        if 0 < 10 * self.num_envs * agent_steps * self.dt_s < simulated_s:
            place = f"agent step {agent_steps:,}, which is at {agent_steps * self.dt_s:,.6g} s"
            order = "give (seconds, agent steps, return) in this order"
            raise InputError(f"It reports {simulated_s:,.6g} simulated seconds at {place}: {order}.")
        point = {"seconds": float(simulated_s), "agent_steps": int(agent_steps), "return": float(mean_return)}
        with (self.folder / POINTS_FILE).open("a") as file:
            file.write(json.dumps(point) + "\n")

    def as_json(self) -> dict[str, Any]:
        world, values = world_as_json(self.world), dict(self.values)
        return {**vars(self), "world": world, "dt": str(self.dt), "values": values, "folder": str(self.folder)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrainerRun:
        world, dt, folder = world_from_json(data["world"]), Duration(data["dt"]), Path(data["folder"])
        return cls(**{**data, "world": world, "dt": dt, "folder": folder})
