"""What a trainer in Python gets, and how it tells what it has learned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cycletime.duration import Duration
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import make_env

if TYPE_CHECKING:
    import gymnasium

POINTS_FILE = "points.jsonl"


@dataclass(frozen=True)
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

    spec: RunSpec
    folder: Path
    """For whatever the trainer writes; removed when the run is finished."""
    resumes: bool = False
    """Whether the folder has what this trainer left when it was stopped; only where it can resume."""

    @property
    def env(self) -> str:
        """The task's or environment's name."""
        return self.spec.world.name

    @property
    def algorithm(self) -> str:
        return self.spec.algorithm

    @property
    def dt(self) -> Duration:
        return self.spec.dt

    @property
    def dt_s(self) -> float:
        """The action-cycle time in seconds."""
        return float(self.spec.dt)

    @property
    def dt_ms(self) -> float:
        return float(1000 * self.spec.dt.exact_s)

    @property
    def values(self) -> Mapping[str, Any]:
        """Hyper-parameters, in the words of the study's `words` or in ours: batch, discount, ..."""
        return self.spec.agent.settings  # type: ignore[union-attr]  # of a trainer

    @property
    def num_envs(self) -> int:
        return self.spec.agent.trainer.num_envs  # type: ignore[union-attr]  # of a trainer

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def agent_steps(self) -> int:
        """The budget in agent steps of all environments together."""
        return round(self.simulated_s / self.dt_s)

    @property
    def simulated_s(self) -> float:
        """The budget in seconds of the environments' time."""
        env_dt = self.spec.world.env_dt
        return float(self.spec.env_steps * (self._env_dt() if env_dt is None else env_dt))

    @property
    def device(self) -> str:
        """Where to compute: cpu or gpu."""
        return self.spec.engine.device

    def _env_dt(self) -> Duration:
        env = self.make_env()
        env_dt = Duration(env.get_wrapper_attr("env_dt"))
        env.close()
        return env_dt

    def make_env(self) -> gymnasium.Env[Any, Any]:
        """The study's task or environment, of which one step is one cycle."""
        return make_env(self.spec.world, self.dt)

    def report(self, simulated_s: float, agent_steps: int, mean_return: float) -> None:
        """Tell how it goes."""
        point = {"seconds": float(simulated_s), "agent_steps": int(agent_steps), "return": float(mean_return)}
        with (self.folder / POINTS_FILE).open("a") as file:
            file.write(json.dumps(point) + "\n")
