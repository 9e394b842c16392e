"""Studies whose scores are made up: stores as training leaves them, without any training."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.duration import Duration
from cycletime.studies.plan import Plan
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import MAX_FAILURES, StudyFolder
from cycletime.training.finished_run import FinishedRun, make_result
from cycletime.training.learning_curve import Episodes
from cycletime.training.spec import RunSpec

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
"""What becomes of a run: a score, or 'astray' or 'failed'; None if it is not done."""
MakeStudy = Callable[..., StudyFolder]


@pytest.fixture
def make_study(tmp_path: Path) -> MakeStudy:
    """A study of which `score(labels, seed)` tells what becomes of each run; further keys change its file."""

    def make(score: Callable[[Mapping[str, Any], int], Come], **keys: Any) -> StudyFolder:  # noqa: ANN401
        folder = StudyFolder.create(tmp_path / "study", study_from_table({**TABLE, **keys}))
        plan = Plan.of(folder.study)
        done = []
        for planned in plan.runs:
            come = score(plan.cells[planned.cell].labels, planned.seed)
            if come == "failed":
                for _ in range(MAX_FAILURES):
                    folder.failures(planned.name).add("it burnt down")
            elif come is not None:
                done.append(finished(plan.spec(planned), np.nan if isinstance(come, str) else come))
        if done:
            folder.store.add(done)
        return folder

    return make


def finished(spec: RunSpec, score: float, remarks: tuple[str, ...] = ()) -> FinishedRun:
    """A run of four episodes, each with the score as its return."""
    ends = np.arange(1, 5, dtype=np.int64) * round(spec.env_steps / 4)
    curve = Episodes(ends, np.rint(ends / 8).astype(np.int64), np.full(4, score), np.diff(ends, prepend=0))
    told = make_result(
        spec,
        curve,
        where="closed form",
        env_dt_s=float(spec.world.env_dt or Duration("50ms")),
        agent_steps=600,
        remarks=remarks,
        sessions=1,
        wall_s=0.0,
        machine=MACHINE,
    )
    return FinishedRun(spec, told, curve, {})


@pytest.fixture
def decided(make_study: MakeStudy) -> StudyFolder:
    """At 16 ms -20, -22 and -24; at 32 ms -40, -41 and -42 with baseline and -27, -26 and -25 with dt-aware."""
    return make_study(decided_score)


def decided_score(labels: Mapping[str, Any], seed: int) -> float:
    if str(labels["dt"]) == "16ms":
        return -20.0 - 2 * seed
    return -40.0 - seed if labels["rule"] == "baseline" else -27.0 + seed
