import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cycletime.engines import training
from cycletime.errors import RunError
from cycletime.runs.spec import RunSpec
from cycletime.studies.estimate import RUN_S, Cost, calibrate, cost_of, estimate
from cycletime.studies.executors.local import Local
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.running import run_study
from cycletime.studies.spec import Study


def test_it_is_the_sum_of_its_parts_shared_among_workers(make_study: Callable[..., Study]) -> None:
    plan = Plan.of(make_study(env_steps=8000))  # two runs of each: 1000 agent steps at 16 ms, two programs of 500
    costs = {("reacher", "ppo", "compiled"): Cost(agent_step_s=0.01, program_s=7.0)}
    told = estimate(plan, plan.runs, costs, start_s=3.0, workers=2)
    assert told.computing_s == pytest.approx(2 * 10 + 4 * 5 + 6 * RUN_S)
    assert told.programs_s == 3 * 7
    assert told.wall_s == pytest.approx((told.computing_s + 21) / 2 + 3)
    assert estimate(plan, plan.runs[:1], costs, 3.0, workers=8).wall_s == pytest.approx(10 + RUN_S + 7 + 3)
    assert estimate(plan, (), costs, 3.0, workers=2).wall_s == 0


def test_runs_that_are_trained_together_take_the_time_of_one(make_study: Callable[..., Study]) -> None:
    plan = Plan.of(make_study(env_steps=8000, seeds=5, width=2, rules=["baseline"], dts=["16ms"]))
    costs = {("reacher", "ppo", "compiled"): Cost(agent_step_s=0.01, program_s=7.0)}
    told = estimate(plan, plan.runs, costs, start_s=3.0, workers=8)
    assert told.computing_s == pytest.approx(3 * 10 + 5 * RUN_S)  # five runs in three turns
    assert told.wall_s == pytest.approx((told.computing_s + 7) / 3 + 3)


def test_a_kind_that_was_not_tried_counts_its_bookkeeping_alone(make_study: Callable[..., Study]) -> None:
    plan = Plan.of(make_study())
    assert estimate(plan, plan.runs, {}, 0.0, workers=1).wall_s == pytest.approx(6 * RUN_S)


class _Paced:
    """An engine whose first chunk takes long, whose chunks without learning are quick, and all others alike."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec

    def chunks(self, arrays: object) -> Any:  # noqa: ANN401
        for number, seconds in enumerate((0.3, 0.0, 0.2, *[0.05] * 50)):
            time.sleep(seconds)
            learns = number >= 2
            metrics = {"agent_steps": np.arange(3)} if learns else {}
            yield SimpleNamespace(agent_steps=100 * (number + 1), metrics=metrics, is_last=False)

    def close(self) -> None:
        pass


def test_a_cost_is_that_of_learning_and_not_of_compiling_or_the_random_start(
    make_study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "engine_for", _Paced)
    (_, spec), *_ = make_study().runs()
    cost = cost_of(spec, try_s=0.3)
    assert 0.5 <= cost.program_s < 5
    assert 0.0005 <= cost.agent_step_s < 0.005


@pytest.mark.slow
def test_a_real_study_takes_about_as_long_as_was_told(make_folder: Callable[..., StudyFolder]) -> None:
    """Within sanity only, since other processes may keep the machine busy at either time."""
    keys = {"algorithm": "actor-critic", "rules": [], "tuned": {}, "dts": ["32ms"], "set": {"hidden": [8]}}
    folder = make_folder(**keys, env_steps=200_000)
    plan = Plan.of(folder.study)
    costs, start_s = calibrate(plan, plan.runs)
    assert set(costs) == {("reacher", "actor-critic", "compiled")}
    assert start_s >= 0
    told = estimate(plan, plan.runs, costs, start_s, workers=1)
    began = time.monotonic()
    assert run_study(folder, Local(1)) == {"done": 2}
    took_s = time.monotonic() - began
    assert took_s / 10 < told.wall_s < 10 * took_s


def test_a_try_that_fails_says_why(make_study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan.of(make_study())
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RunError, match=r"^The try failed: nothing was said\.$"):
        calibrate(plan, plan.runs)
