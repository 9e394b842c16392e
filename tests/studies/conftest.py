"""Small studies, and trainings that take no time."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents.networks import Layer, PolicyNetwork
from cycletime.duration import Duration
from cycletime.loops import Episodes
from cycletime.loops.action_bounds import ActionBounds
from cycletime.runs.curve import write_curve
from cycletime.runs.folder import RunFolder
from cycletime.runs.policies.policy_file import write_policy
from cycletime.runs.result import hashes_of, result_of
from cycletime.studies import work
from cycletime.studies.folder import StudyFolder
from cycletime.studies.spec import Study
from cycletime.studies.study_file import study_from

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


@pytest.fixture
def make_study() -> Callable[..., Study]:
    """The small study, with some keys of its file changed."""
    return lambda **keys: study_from({**TABLE, **keys})


@pytest.fixture
def make_folder(tmp_path: Path, make_study: Callable[..., Study]) -> Callable[..., StudyFolder]:
    """The folder of the small study, with some keys of its file changed."""
    return lambda **keys: StudyFolder.create(tmp_path / "study", make_study(**keys))


@pytest.fixture
def finish() -> Callable[[RunFolder], None]:
    """Fill a run's folder as if it had been trained: four episodes, whose returns are the seed."""
    return _finish


def _finish(folder: RunFolder) -> None:
    spec = folder.spec
    ends = np.arange(1, 5, dtype=np.int64) * (spec.env_steps // 4)
    curve = Episodes(ends, ends // 8, np.full(4, float(spec.seed)), np.diff(ends, prepend=0))
    write_curve(folder.curve_file, curve, Duration("2ms"))
    folder.metrics_file.write_text('{"env_steps": 1}\n')
    network = PolicyNetwork((Layer(jnp.zeros((4, 2)), jnp.zeros(2)),), "tanh", None, True)
    write_policy(folder.policy_file, network, ActionBounds.raw(1), spec, spec.env_steps)
    told = result_of(
        spec,
        curve,
        where="closed form",
        agent_steps=int(ends[-1] // 8),
        remarks=(),
        sessions=1,
        wall_s=0.0,
        files=hashes_of(folder),
    )
    folder.write_result(told)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let training take no time; the names of the runs that are trained, in turn."""
    names: list[str] = []

    def train(folder: RunFolder, **_: object) -> str:
        names.append(folder.spec.name)
        _finish(folder)
        return "finished"

    monkeypatch.setattr(work, "train", train)
    return names
