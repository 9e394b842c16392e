"""What a finished run says of itself: its performance with all that is needed to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.loops import EpisodeBins, Episodes
from cycletime.loops.episodes import BINS as BINS
from cycletime.runs.metrics import Columns
from cycletime.runs.policies.policy_file import SavedPolicy
from cycletime.runs.spec import RunSpec


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """All that is kept of a run that reached its budget."""

    spec: RunSpec
    result: Mapping[str, Any]
    """As `result_of` gives it."""
    curve: Episodes | EpisodeBins
    """Its learning curve, in bins where the episodes were not wanted."""
    metrics: Columns
    """What learning told of itself."""
    policy: SavedPolicy | None = None
    """What it learned; None where that was not wanted."""

    @property
    def name(self) -> str:
        """The run's."""
        return self.spec.name

    @property
    def bins(self) -> EpisodeBins:
        """Its learning curve in as many bins as the paper's measure has."""
        if isinstance(self.curve, EpisodeBins):
            return self.curve
        return EpisodeBins.none(self.spec.env_steps).plus(self.curve)


def result_of(
    spec: RunSpec,
    curve: Episodes | EpisodeBins,
    *,
    where: str,
    env_dt_s: float,
    agent_steps: int,
    remarks: tuple[str, ...],
    sessions: int,
    wall_s: float,
    machine: Mapping[str, str],
) -> dict[str, Any]:
    """What result.json holds."""
    return {
        "format": 2,
        "identity": spec.identity,
        "world": spec.world.name,
        "where": where,
        "algorithm": spec.algorithm,
        "dt": str(spec.dt),
        "env_dt_s": env_dt_s,
        "seed": spec.seed,
        "env_steps": spec.env_steps,
        "agent_steps": agent_steps,
        "episodes": len(curve),
        **performance(curve, spec.env_steps),
        "resumed": _resumed(sessions, remarks),
        "remarks": list(remarks),
        "sessions": sessions,
        "wall_s": round(wall_s, 3),
        **({"curve": f"{len(curve.counts)} bins"} if isinstance(curve, EpisodeBins) else {}),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": dict(machine),
    }


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


def fault_of(run: FinishedRun) -> str | None:
    """What does not fit together in a finished run, or None."""
    if run.result.get("identity") != run.spec.identity:
        return "its result belongs to another run"
    if len(run.curve) != run.result.get("episodes"):
        return f"its curve has {len(run.curve)} episodes, and the result {run.result.get('episodes')}"
    ends: NDArray[Any] = run.curve.env_steps
    ends = ends[run.curve.counts > 0] if isinstance(run.curve, EpisodeBins) else ends
    if np.any(np.diff(ends, prepend=0) <= 0) or np.any(ends > run.spec.env_steps):
        return "the episodes of its curve are out of order"
    if performance(run.curve, run.spec.env_steps)["average_return"] != run.result.get("average_return"):
        return "its average return is not that of its curve"
    policy = run.policy
    if policy is not None and (policy.identity, policy.env_steps) != (run.spec.identity, run.spec.env_steps):
        return f"its policy is not this run's last, but one of {policy.env_steps} environment steps"
    return None


def _number(mean: np.floating[Any] | float) -> float | None:
    """None where learning went astray; JSON knows no infinity."""
    return float(mean) if np.isfinite(mean) else None


def _resumed(sessions: int, remarks: tuple[str, ...]) -> str:
    """The label of the result."""
    if remarks:
        return "resumed, not identical"
    return "resumed, identical" if sessions > 1 else "never"
