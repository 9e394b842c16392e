"""Weights & Biases: one of its runs is one of ours, with the run's identity as id."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cycletime.runs.trackers.extras import load
from cycletime.runs.trackers.tracker import RunInfo, Status

_EXIT_CODES: Mapping[Status, int] = MappingProxyType({"finished": 0, "stopped": 255, "failed": 1})
"""255 is W&B's own code for an interrupt: it shows such a run as killed."""


class WeightsAndBiases:
    """Logs to W&B. Mode, project, entity and folder are W&B's own variables: WANDB_MODE, WANDB_PROJECT, ..."""

    def __init__(self) -> None:
        """Refuse a missing package before the run starts."""
        self._wandb = load("wandb", "Weights & Biases", "wandb")
        self._run: Any = None

    def begin(self, run: RunInfo) -> None:
        """Open the run, or go on with it."""
        run.folder.mkdir(parents=True, exist_ok=True)
        self._run = self._wandb.init(
            # W&B would let these arguments override its variables.
            project=os.environ.get("WANDB_PROJECT") or "cycletime",
            name=os.environ.get("WANDB_NAME") or run.name,
            dir=os.environ.get("WANDB_DIR") or str(run.folder),
            id=run.identity,
            resume="allow",
            reinit="create_new",  # runs can go on side by side in one process
            config=dict(run.config),
        )

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        """Log the values, unless W&B has them: it takes no step twice, and would warn of each."""
        if env_steps >= self._run.starting_step:
            self._run.log(dict(values), step=env_steps)

    def end(self, status: Status) -> None:
        """Wait until all is written or sent."""
        self._run.finish(exit_code=_EXIT_CODES[status])
