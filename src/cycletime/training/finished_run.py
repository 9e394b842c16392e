"""A finished run: its performance, its result.json, and the checks that both follow from its curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import numpy as np

from cycletime.training.external import ExternalAgent
from cycletime.training.learning_curve import BINS, Columns, EpisodeBins, Episodes
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.sealed_json import is_count
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld, RobotEnv

MEASURES = ("average_return", "last_tenth_return", "mean_over_episodes")
"""The paper's measure of performance, the same of the last tenth of learning, and the plain mean over episodes."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    spec: RunSpec
    result: Mapping[str, Any]
    curve: Episodes | EpisodeBins
    """Its learning curve, in bins where the episodes were not wanted."""
    metrics: Columns
    policy: SavedPolicy | None = None
    """What it learned; None where that was not wanted."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def bins(self) -> EpisodeBins:
        if isinstance(self.curve, EpisodeBins):
            return self.curve
        return EpisodeBins.none(self.spec.env_steps).plus(self.curve)


def make_result(
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
    cadence: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of result.json; a robot's has the timing of its cycles."""
    return {
        **_derived_fields(spec, curve, sessions, remarks),
        "where": where,
        "env_dt_s": env_dt_s,
        "agent_steps": agent_steps,
        "remarks": list(remarks),
        "sessions": sessions,
        "wall_s": round(wall_s, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": dict(machine),
        **({} if cadence is None else {"cadence": dict(cadence)}),
    }


def _derived_fields(
    spec: RunSpec, curve: Episodes | EpisodeBins, sessions: int, remarks: Sequence[str]
) -> dict[str, Any]:
    return {
        "format": 2,
        "identity": spec.identity,
        "world": spec.world.name,
        "algorithm": spec.algorithm,
        "dt": spec.dt.shortest,
        "seed": spec.seed,
        "env_steps": spec.env_steps,
        "episodes": len(curve),
        **performance(curve, spec.env_steps),
        "resumed": "resumed, not identical" if remarks else "resumed, identical" if sessions > 1 else "never",
        **({"curve": f"{len(curve.counts)} bins"} if isinstance(curve, EpisodeBins) else {}),
    }


def performance(curve: Episodes | EpisodeBins, env_steps: int) -> dict[str, float | None]:
    """The scores of a run by `MEASURES`; None where no episode ended or learning diverged."""
    if not len(curve):
        return dict.fromkeys(MEASURES)
    bins = curve.binned(env_steps, BINS)
    means = bins.mean(), bins[-10:].mean(), curve.mean_return
    return {name: float(mean) if isfinite(mean) else None for name, mean in zip(MEASURES, means, strict=True)}


def find_fault(run: FinishedRun) -> str | None:
    """The first inconsistency of a finished run, or None; derived fields are recomputed."""
    fault = _fault_of_facts(run) or _fault_of_curve(run) or _fault_of_derived_fields(run)
    return fault if fault or run.policy is None else fault_of_policy(run.policy, run.spec, run.spec.env_steps)


def _fault_of_facts(run: FinishedRun) -> str | None:
    """Check the fields that cannot be recomputed: each must be possible."""
    result, env_dt = run.result, run.spec.world.env_dt
    if result.get("identity") != run.spec.identity:
        return "its result belongs to another run"
    said = {"cadence": {}, **result}  # which not all results have
    if wrong := [name for name, is_right in _FACTS.items() if not is_right(said.get(name))]:
        return f"its result says {result.get(wrong[0])!r} as {wrong[0]}"
    if result["where"] not in _possible_sources(run.spec, result["where"]):
        return f"its result comes from {result['where']!r}, and its spec is for {run.spec.world.name}"
    if env_dt is not None and result["env_dt_s"] != float(env_dt):
        return f"its result says {result['env_dt_s']!r} as env_dt_s, and it is {float(env_dt)!r}"
    return None


def _fault_of_derived_fields(run: FinishedRun) -> str | None:
    result = run.result
    follows = _derived_fields(run.spec, run.curve, result["sessions"], result["remarks"])
    if missing := follows.keys() - result.keys():
        return f"its result lacks {min(missing)}"
    if unknown := result.keys() - follows.keys() - _FACTS.keys():
        return f"its result says {min(unknown)}, which no result does"
    for name, value in follows.items():
        if result[name] != value:
            return f"its result says {result[name]!r} as {name}, and it is {value!r} by its spec and its curve"
    return None


def _fault_of_curve(run: FinishedRun) -> str | None:
    """Episodes end after each other within the budget, or together in several environments; else there is no return."""
    curve = run.curve
    apart = 1 if run.spec.num_envs == 1 else 0
    ends, acts = curve.env_steps, curve.agent_steps
    if isinstance(curve, EpisodeBins):
        ended = curve.counts != 0
        if curve.counts.min() < 0 or ((curve.sums != 0) | (ends != 0) | (acts != 0))[~ended].any():
            return "its curve has bins that cannot be"
        ends, acts = ends[ended], acts[ended]
    for steps, most in ((ends, run.spec.env_steps), (acts, run.result["agent_steps"])):
        if steps.size and (steps[0] <= 0 or steps[-1] > most or (np.diff(steps) < apart).any()):
            return "the episodes of its curve are out of order"
    if isinstance(curve, Episodes) and ((curve.length_steps < 1) | (curve.length_steps > ends)).any():
        return "its curve has episodes of a length that cannot be"
    return None


def _possible_sources(spec: RunSpec, said: str) -> tuple[str, ...]:
    """Where a spec's results can come from; of Gymnasium's environments only that they are no robots is known."""
    if isinstance(spec.world, RobotEnv):
        return (spec.world.where,)
    if isinstance(spec.world, ClosedFormWorld):
        where = spec.world.task.where
        return (spec.agent.where(where) if isinstance(spec.agent, ExternalAgent) else where,)
    return () if said == "real robot" and spec.engine.name != "real-time" else (said,)


def fault_of_policy(policy: SavedPolicy, spec: RunSpec, env_steps: int) -> str | None:
    """Why a policy is not that of a run after so many environment steps, or None."""
    if (policy.identity, policy.env_steps) != (spec.identity, env_steps):
        return f"its policy is not this run's last, but one of {policy.env_steps} environment steps"
    if (policy.dt, policy.world) != (spec.dt, spec.world.name):
        return f"its policy is for {policy.world} at {policy.dt}"
    return None


def _is_time(value: Any) -> bool:  # noqa: ANN401
    return type(value) in (int, float) and isfinite(value) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_FACTS: Mapping[str, Callable[[Any], bool]] = {
    "where": _is_text,
    "env_dt_s": lambda value: _is_time(value) and value > 0,
    "agent_steps": is_count,
    "remarks": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "sessions": lambda value: is_count(value) and value > 0,
    "wall_s": _is_time,
    "finished": _is_text,
    "machine": lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
    "cadence": lambda value: isinstance(value, dict),
}
"""By name, the fields of a result that are not derived, with the check of each."""
