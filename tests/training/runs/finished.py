"""Finished runs of all kinds, which nobody had to train."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.training.checkpoints import Checkpoint, Manifest
from cycletime.training.finished_run import FinishedRun, make_result
from cycletime.training.learning_curve import Columns, EpisodeBins, Episodes
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.policies.conftest import BOUNDS, Trained, trained

AGENTS: dict[str, Any] = {
    "ppo": PPOAgent(hidden=(4,)),
    "sac": SACAgent(hidden=(4,)),
    "actor-critic": ActorCriticAgent(hidden=(4,)),
}
METRICS = {"ppo": ("policy_loss", "kl"), "sac": ("critic_loss", "alpha", "entropy"), "actor-critic": ("value_error",)}
ENV_STEPS = 1000


def make_run(
    kind: str = "ppo", seed: int = 0, *, episodes: bool = True, policy: bool = True, ended: int = 7, lines: int = 5
) -> FinishedRun:
    """A run with so many episodes and lines of metrics, whose numbers follow from its seed."""
    spec = RunSpec(world=ClosedFormWorld("reacher"), agent=AGENTS[kind], dt="16ms", env_steps=ENV_STEPS, seed=seed)
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.choice(np.arange(1, ENV_STEPS + 1), ended, replace=False)).astype(np.int64)
    curve = Episodes(ends, ends, rng.normal(size=ended), np.diff(ends, prepend=0))
    return run_of(spec, curve if episodes else EpisodeBins.none(ENV_STEPS).plus(curve), policy=policy, lines=lines)


def save_checkpoint(
    folder: RunFolder, policy: SavedPolicy, curve: Episodes | None = None, metrics: Columns | None = None
) -> RunFolder:
    """A run that has come as far as its policy, without what it would go on from."""
    curve = curve or Episodes.none()
    arrays = {
        **{f"policy/{name}": array for name, array in policy.arrays().items()},
        **{f"episodes/{each.name}": getattr(curve, each.name) for each in fields(curve)},
        **{f"metrics/lines/{name}": column for name, column in (metrics or {}).items()},
    }
    about: dict[str, Any] = {"exact": True, "sessions": 1, "wall_s": 0.0, "world": "", "machine": {}}
    manifest = Manifest(folder.spec.identity, policy.env_steps, 1, **about, policy=policy.description())
    folder.checkpoints.save(Checkpoint(manifest, arrays))
    return folder


def run_of(spec: RunSpec, curve: Episodes | EpisodeBins, *, policy: bool = True, lines: int = 5) -> FinishedRun:
    """A run with a curve."""
    rng = np.random.default_rng(spec.seed)
    counts = {name: np.arange(1, lines + 1) * 8 for name in ("env_steps", "agent_steps", "learnings")}
    metrics = {**counts, **{name: rng.normal(size=lines) for name in METRICS[spec.algorithm]}}
    result = make_result(
        spec,
        curve,
        where="closed form",
        env_dt_s=0.002,
        agent_steps=spec.env_steps,
        remarks=(),
        sessions=1,
        wall_s=1.5,
        machine={"device": "cpu"},
    )
    result |= {"finished": "2026-01-01T00:00:00+00:00"}  # so that the same run is the same bytes
    return FinishedRun(spec, result, curve, metrics if lines else {}, make_policy(spec) if policy else None)


def recomputed(run: FinishedRun, **changes: Any) -> FinishedRun:  # noqa: ANN401 - any of its fields
    """A run with something changed, and a result and a policy that fit it."""
    run = replace(run, **changes)
    names = ("where", "env_dt_s", "agent_steps", "sessions", "wall_s", "machine")
    told = {name: run.result[name] for name in names}
    result = make_result(run.spec, run.curve, remarks=tuple(run.result["remarks"]), **told)
    policy = None if run.policy is None else replace(run.policy, identity=run.spec.identity)
    return replace(run, result={**result, "finished": run.result["finished"]}, policy=policy)


def make_policy(spec: RunSpec) -> SavedPolicy:
    """The final policy of a run."""
    made = _trained(spec.algorithm)
    return SavedPolicy.of(made.agent.policy(made.psi), BOUNDS["bounded"], spec, spec.env_steps)


@cache
def _trained(kind: str) -> Trained:
    return trained(AGENTS[kind])


def all_of(run: FinishedRun) -> dict[str, Any]:
    """All that there is of a run, to be compared bit for bit."""
    curve = {each.name: getattr(run.curve, each.name) for each in fields(run.curve)}
    arrays = {**curve, **dict(run.metrics), **({} if run.policy is None else run.policy.arrays())}
    bits = {name: (np.asarray(array).dtype, np.asarray(array).tobytes()) for name, array in arrays.items()}
    policy = None if run.policy is None else run.policy.description()
    return {**bits, "spec": run.spec, "result": run.result, "curve": type(run.curve), "policy": policy}
