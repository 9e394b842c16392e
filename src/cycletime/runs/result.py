"""What a finished run says of itself: its performance with all that is needed to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import file_digest
from typing import Any

import numpy as np

from cycletime.loops import EpisodeBins, Episodes
from cycletime.loops.episodes import BINS as BINS
from cycletime.runs.folder import RunFolder
from cycletime.runs.machine import this_machine
from cycletime.runs.spec import RunSpec


def result_of(
    spec: RunSpec,
    curve: Episodes | EpisodeBins,
    *,
    where: str,
    agent_steps: int,
    remarks: tuple[str, ...],
    sessions: int,
    wall_s: float,
    files: Mapping[str, str] | None = None,
    machine: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What result.json holds."""
    return {
        "format": 1,
        "identity": spec.identity,
        "world": spec.world.name,
        "where": where,
        "algorithm": spec.algorithm,
        "dt": str(spec.dt),
        "seed": spec.seed,
        "env_steps": spec.env_steps,
        "agent_steps": agent_steps,
        "episodes": len(curve),
        **performance(curve, spec.env_steps),
        "resumed": _resumed(sessions, remarks),
        "remarks": list(remarks),
        "sessions": sessions,
        "wall_s": round(wall_s, 3),
        "files": dict(files or {}),
        **({"curve": f"{len(curve.counts)} bins"} if isinstance(curve, EpisodeBins) else {}),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": dict(this_machine() if machine is None else machine),
    }


def hashes_of(folder: RunFolder) -> dict[str, str]:
    """By name, the SHA-256 of the files that hold a run's numbers.

    A run that was computed elsewhere may have come without its policy.
    """
    hashes = {}
    policy = [folder.policy_file] if folder.policy_file.exists() else []
    for path in (folder.curve_file, folder.metrics_file, *policy):
        with path.open("rb") as file:
            hashes[path.name] = file_digest(file, "sha256").hexdigest()
    return hashes


def performance(curve: Episodes | EpisodeBins, env_steps: int) -> dict[str, float | None]:
    """The paper's measure, the same of the last tenth of learning, and the plain mean over episodes."""
    if not len(curve):
        return {"average_return": None, "last_tenth_return": None, "mean_over_episodes": None}
    bins = curve.binned(env_steps, BINS)
    return {
        "average_return": _number(bins.mean()),
        "last_tenth_return": _number(bins[-10:].mean()),
        "mean_over_episodes": _number(curve.mean_return),
    }


def _number(mean: np.floating[Any] | float) -> float | None:
    """None where learning went astray; JSON knows no infinity."""
    return float(mean) if np.isfinite(mean) else None


def _resumed(sessions: int, remarks: tuple[str, ...]) -> str:
    """The label of the result."""
    if remarks:
        return "resumed, not identical"
    return "resumed, identical" if sessions > 1 else "never"
