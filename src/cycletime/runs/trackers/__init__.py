"""Listeners to a run beside its own files: TensorBoard, Weights & Biases, MLflow, Trackio, each an extra."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from cycletime.errors import InputError
from cycletime.runs.trackers.guarded import Guarded
from cycletime.runs.trackers.to_mlflow import MLflow
from cycletime.runs.trackers.to_tensorboard import TensorBoard
from cycletime.runs.trackers.to_trackio import Trackio
from cycletime.runs.trackers.to_wandb import WeightsAndBiases
from cycletime.runs.trackers.tracker import RunInfo, Scalar, Status, Tracker

__all__ = ["TRACKERS", "Guarded", "RunInfo", "Scalar", "Status", "Tracker", "trackers_for"]

TRACKERS: Mapping[str, Callable[[], Tracker]] = MappingProxyType(
    {"tensorboard": TensorBoard, "wandb": WeightsAndBiases, "mlflow": MLflow, "trackio": Trackio}
)
"""The trackers by name, which is also the name of the extra."""


def trackers_for(names: Sequence[str]) -> list[Tracker]:
    """The trackers of these names, their packages loaded; an unknown name or a missing package is refused.

    Raises:
        InputError: if so.
    """
    for place, name in enumerate(names):
        if name not in TRACKERS:
            raise InputError(f"{name!r} is not a tracker: give one of {', '.join(TRACKERS)}.")
        if name in names[:place]:
            raise InputError(f"{name!r} is given twice: name each tracker once.")
    return [TRACKERS[name]() for name in names]
