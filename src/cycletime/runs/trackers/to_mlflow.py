"""MLflow: one of its runs is one of ours, found again by a tag with the run's identity."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cycletime.runs.trackers.extras import load
from cycletime.runs.trackers.tracker import RunInfo, Status

_STATUSES: Mapping[Status, str] = MappingProxyType({"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"})
_IDENTITY = "cycletime.identity"


class MLflow:
    """Logs to MLflow. Store and experiment are MLflow's own variables: MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME."""

    def __init__(self) -> None:
        """Refuse a missing package before the run starts."""
        self._entities: Any = load("mlflow.entities", "MLflow", "mlflow")
        self._mlflow: Any = load("mlflow", "MLflow", "mlflow")
        self._client: Any = None
        self._run_id = ""
        self._logged: dict[str, int] = {}

    def begin(self, run: RunInfo) -> None:
        """Find the run by its identity and go on with it, or create it."""
        # The client, not mlflow.start_run: runs can go on side by side in one process.
        self._client, self._logged = self._mlflow.MlflowClient(), {}
        experiment = self._experiment()
        found = self._client.search_runs([experiment], f"tags.`{_IDENTITY}` = '{run.identity}'", max_results=1)
        if found:
            self._run_id = found[0].info.run_id
            self._client.update_run(self._run_id, status="RUNNING")
            self._logged = {key: self._last_step(key) for key in found[0].data.metrics}
            return
        created = self._client.create_run(experiment, run_name=run.name, tags={_IDENTITY: run.identity})
        self._run_id = created.info.run_id
        params = [self._entities.Param(key, str(value)) for key, value in run.config.items()]
        self._client.log_batch(self._run_id, params=params)

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        """Log the values that MLflow does not have yet: it would keep both of two at one step."""
        now = int(time.time() * 1000)
        new = [
            self._entities.Metric(key, float(value), now, env_steps)
            for key, value in values.items()
            if env_steps > self._logged.get(key, -1)
        ]
        if new:
            self._client.log_batch(self._run_id, metrics=new)

    def end(self, status: Status) -> None:
        """Close the run."""
        with contextlib.redirect_stdout(sys.stderr):  # its links are no output of ours
            self._client.set_terminated(self._run_id, status=_STATUSES[status])

    def _experiment(self) -> str:
        """The id of the experiment, which is created where it is missing."""
        if given := os.environ.get("MLFLOW_EXPERIMENT_ID"):
            return given
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "cycletime"
        if (experiment := self._client.get_experiment_by_name(name)) is None:
            try:
                return str(self._client.create_experiment(name))
            except self._mlflow.MlflowException:
                # Another run may have created it in between; if not, the error stands.
                if (experiment := self._client.get_experiment_by_name(name)) is None:
                    raise
        return str(experiment.experiment_id)

    def _last_step(self, key: str) -> int:
        return max(int(metric.step) for metric in self._client.get_metric_history(self._run_id, key))
