"""Studies whose scores are made up: run folders as training leaves them, without any training."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.duration import Duration
from cycletime.loops import Episodes
from cycletime.runs.curve import write_curve
from cycletime.runs.folder import RunFolder
from cycletime.runs.result import result_of
from cycletime.studies.folder import StudyFolder, add_failure, failure_of
from cycletime.studies.plan import Plan
from cycletime.studies.study_file import study_from

TABLE: Mapping[str, Any] = {
    "name": "small",
    "task": "reacher",
    "algorithm": "ppo",
    "dts": ["32ms", "16ms"],
    "rules": ["baseline", "dt-aware"],
    "seeds": 3,
    "env_steps": 4800,
    "tuned": {"dt": "16ms", "batch": 100, "minibatch": 50},
}
"""Nine runs: at 16 ms the rules agree."""
MACHINE = {"cycletime": "1.2.3", "jax": "0.9", "device": "cpu", "processor": "Abacus", "cores": "2"}

Come = float | str | None
"""What becomes of a run: a score, or 'astray', 'failed', 'damaged'; None if it is not done."""
MakeStudy = Callable[..., StudyFolder]


@pytest.fixture
def make_study(tmp_path: Path) -> MakeStudy:
    """A study of which `score(labels, seed)` tells what becomes of each run; further keys change its file."""

    def make(score: Callable[[Mapping[str, Any], int], Come], **keys: Any) -> StudyFolder:  # noqa: ANN401
        folder = StudyFolder.create(tmp_path / "study", study_from({**TABLE, **keys}))
        plan = Plan.of(folder.study)
        for planned in plan.runs:
            come = score(plan.cells[planned.cell].labels, planned.seed)
            if come is not None:
                _finish(folder.run_folder(plan.spec(planned)), come)
        return folder

    return make


def _finish(folder: RunFolder, come: float | str) -> None:
    if come == "failed":
        add_failure(folder.path, failure_of("it burnt down", gives_up=True))
        return
    if come == "damaged":
        (folder.path / "result.json").write_text('{"average')
        return
    spec = folder.spec
    ends = np.arange(1, 5, dtype=np.int64) * round(spec.env_steps / 4)
    returns = np.full(4, np.nan if isinstance(come, str) else come)
    curve = Episodes(ends, np.rint(ends / 8).astype(np.int64), returns, np.diff(ends, prepend=0))
    write_curve(folder.curve_file, curve, spec.world.env_dt or Duration("50ms"))
    told = result_of(spec, curve, where="closed form", agent_steps=600, remarks=(), sessions=1, wall_s=0.0)
    folder.write_result({**told, "machine": MACHINE})


@pytest.fixture
def decided(make_study: MakeStudy) -> StudyFolder:
    """At 16 ms -20, -22 and -24; at 32 ms -40, -41 and -42 with baseline and -25, -26 and -27 with dt-aware."""
    return make_study(decided_score)


def decided_score(labels: Mapping[str, Any], seed: int) -> float:
    if str(labels["dt"]) == "16ms":
        return -20.0 - 2 * seed
    return (-40.0 if labels["rule"] == "baseline" else -25.0) - seed
