"""Small studies, runs that were never trained, and what there is to compare of finished ones."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from cycletime.agents.networks import Layer, PolicyNetwork
from cycletime.studies.plan import Plan
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.finished_run import FinishedRun, make_result
from cycletime.training.learning_curve import Episodes
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.run_store import Store
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ActionBounds

TABLE: Mapping[str, Any] = {
    "name": "small",
    "task": "reacher",
    "algorithm": "ppo",
    "dts": ["16ms", "32ms"],
    "rules": ["baseline", "dt-aware"],
    "seeds": 2,
    "env_steps": 4800,
    "tuned": {"dt": "16ms", "batch": 100, "minibatch": 50},
}
"""Six runs in three groups: at 16 ms the rules agree."""
QUICK: Mapping[str, Any] = {
    "name": "quick",
    "task": "reacher",
    "algorithm": "actor-critic",
    "dt": "32ms",
    "seeds": 3,
    "env_steps": 6400,
    "set": {"hidden": [8]},
}
"""Three runs of one program, which is compiled and computed soon."""
_CHANGES = ("resumed", "sessions", "wall_s", "finished", "machine")
"""What a result says of how it came about, and not of what came of it."""


def small_study(**keys: Any) -> StudySpec:  # noqa: ANN401 - whatever a file has
    """The small study, with some keys of its file changed."""
    return study_from_table({**TABLE, **keys})


def quick_study(**keys: Any) -> StudySpec:  # noqa: ANN401
    """The quick study, with some keys of its file changed."""
    return study_from_table({**QUICK, **keys})


def specs_of(folder: StudyFolder) -> list[RunSpec]:
    """The runs that a study plans, in turn."""
    plan = Plan.of(folder.study)
    return [plan.spec(planned) for planned in plan.runs]


def names_of(folder: StudyFolder) -> list[str]:
    """Their names."""
    return [planned.name for planned in Plan.of(folder.study).runs]


def state_of(folder: StudyFolder, name: str) -> str:
    """The state of one run."""
    return folder.states([name])[name]


def finished(spec: RunSpec, value: float | None = None, **changes: Any) -> FinishedRun:  # noqa: ANN401
    """A run as if it had been trained: four episodes, whose returns are the seed or a value."""
    ends = np.arange(1, 5, dtype=np.int64) * (spec.env_steps // 4)
    curve = Episodes(
        ends, ends // 8, np.full(4, float(spec.seed) if value is None else value), np.diff(ends, prepend=0)
    )
    network = PolicyNetwork((Layer(jnp.zeros((4, 2)), jnp.zeros(2)),), "tanh", None, True)
    told = make_result(
        spec,
        curve,
        where="closed form",
        env_dt_s=float(spec.world.env_dt or 0.002),
        agent_steps=int(ends[-1] // 8),
        remarks=(),
        sessions=1,
        wall_s=0.0,
        machine={"device": "none"},
    )
    metrics = {"env_steps": ends, "agent_steps": ends // 8, "loss": np.linspace(1.0, 0.0, 4)}
    policy = SavedPolicy.of(network, ActionBounds.raw(1), spec, spec.env_steps)
    return FinishedRun(spec, {**told, **changes}, curve, metrics, policy)


def finish(folder: StudyFolder, specs: Iterable[RunSpec] | None = None) -> None:
    """Put runs, by default all, into a study's store, each as a file of its own."""
    for spec in specs_of(folder) if specs is None else specs:
        folder.store.add([finished(spec)])


def bits_of(folder: StudyFolder | Path) -> dict[str, Any]:
    """By run, all that it computed, to the bit."""
    store = Store((folder if isinstance(folder, Path) else folder.path) / "finished")
    store.refresh()
    assert not store.damaged
    return {run.name: bits_of_run(run) for run in store.runs()}


def bits_of_run(run: FinishedRun) -> dict[str, Any]:
    """All that a run computed, to the bit."""
    curve = {each.name: getattr(run.curve, each.name) for each in fields(run.curve)}
    policy = {} if run.policy is None else run.policy.arrays()
    arrays = {"curve": curve, "metrics": run.metrics, "policy": policy}
    found = {what: {name: np.asarray(each).tobytes() for name, each in named.items()} for what, named in arrays.items()}
    return {**found, "result": {name: each for name, each in run.result.items() if name not in _CHANGES}}


def wait_until(is_so: Callable[[], object], most_s: float = 120.0) -> None:
    """Wait for what only fails to happen where something is wrong."""
    ends = time.monotonic() + most_s
    while not is_so():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.01)


def make_old(path: Path, seconds: float = 300.0) -> None:
    """Let a file be touched long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))
