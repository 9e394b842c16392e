import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cycletime.errors import InputError, RunError
from cycletime.studies.executors import LocalExecutor
from cycletime.studies.hardware_estimates import RUN_OVERHEAD_S, check_start, estimate_wall_time, measure_costs
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import run_study
from cycletime.training.engine import Cost
from cycletime.training.worlds import GymnasiumEnv
from tests.studies.small import quick_study, small_study


def test_it_is_the_sum_of_its_parts_shared_among_workers() -> None:
    plan = Plan.of(small_study(env_steps=8000))  # two runs of each: 1000 agent steps at 16 ms, two programs of 500
    costs = {("reacher", "ppo", "compiled"): Cost(agent_step_s=0.01, program_s=7.0)}
    told = estimate_wall_time(plan, plan.runs, costs, start_s=3.0, workers=2)
    assert told.computing_s == pytest.approx(2 * 10 + 4 * 5 + 6 * RUN_OVERHEAD_S)
    assert told.programs_s == 3 * 7
    assert told.wall_s == pytest.approx((told.computing_s + 21) / 2 + 3)
    assert estimate_wall_time(plan, plan.runs[:1], costs, 3.0, workers=8).wall_s == pytest.approx(
        10 + RUN_OVERHEAD_S + 7 + 3
    )
    assert estimate_wall_time(plan, (), costs, 3.0, workers=2).wall_s == 0


def test_runs_of_which_each_starts_a_process_take_its_start_each() -> None:
    plan = Plan.of(small_study(env_steps=8000))  # six runs of three programs
    costs = {("reacher", "ppo", "compiled"): Cost(0.01, 7.0, starts_each_run=True)}
    assert estimate_wall_time(plan, plan.runs, costs, 0.0, workers=2).programs_s == 6 * 7


def test_runs_that_are_trained_together_take_the_time_of_one() -> None:
    plan = Plan.of(small_study(env_steps=8000, seeds=5, width=2, rules=["baseline"], dts=["16ms"]))
    costs = {("reacher", "ppo", "compiled"): Cost(agent_step_s=0.01, program_s=7.0)}
    told = estimate_wall_time(plan, plan.runs, costs, start_s=3.0, workers=8)
    assert told.computing_s == pytest.approx(3 * 10 + 5 * RUN_OVERHEAD_S)  # five runs in three turns
    assert estimate_wall_time(plan, plan.runs, costs, 3.0, workers=2).wall_s == pytest.approx(
        (told.computing_s + 7) / 2 + 3
    )
    assert told.wall_s == pytest.approx(7 + 10 + RUN_OVERHEAD_S + 3), (
        "no turn is done before its program and its steps are"
    )


def test_a_kind_that_was_not_tried_counts_its_bookkeeping_alone() -> None:
    plan = Plan.of(small_study())
    assert estimate_wall_time(plan, plan.runs, {}, 0.0, workers=1).wall_s == pytest.approx(6 * RUN_OVERHEAD_S)


def test_runs_on_the_kernel_are_trained_as_many_at_a_time_as_a_card_has_blocks() -> None:
    plan = Plan.of(small_study(device="gpu", seeds=264, dts=["16ms"], rules=["baseline"], env_steps=8000))
    costs = {("reacher", "ppo", "cuda"): Cost(0.01, 20.0, runs_at_once=132)}
    told = estimate_wall_time(plan, plan.runs, costs, 0.0, 1)
    assert told.computing_s == pytest.approx(2 * 10 + 264 * RUN_OVERHEAD_S)
    assert told.wall_s == pytest.approx(told.computing_s + 20)


def test_runs_of_one_algorithm_on_two_engines_have_their_own_costs() -> None:
    layers = {"hidden": [[64, 64], [32, 32]]}
    plan = Plan.of(small_study(device="gpu", width=2, dts=["16ms"], rules=["baseline"], env_steps=8000, set=layers))
    costs = {("reacher", "ppo", "cuda"): Cost(0.001, 20.0, 132), ("reacher", "ppo", "compiled"): Cost(0.01, 9.0)}
    told = estimate_wall_time(plan, plan.runs, costs, 0.0, 1)
    assert told.programs_s == 29
    assert told.computing_s == pytest.approx(1 + 10 + 4 * RUN_OVERHEAD_S), (
        "two runs side by side, and two in two blocks"
    )


@pytest.mark.slow
def test_a_real_study_takes_about_as_long_as_was_told(make_folder: Callable[..., StudyFolder]) -> None:
    """Within sanity only, since other processes may keep the machine busy at either time."""
    keys = {"algorithm": "actor-critic", "rules": [], "tuned": {}, "dts": ["32ms"], "set": {"hidden": [8]}}
    folder = make_folder(**keys, env_steps=200_000)
    plan = Plan.of(folder.study)
    costs, start_s = measure_costs(plan, plan.runs)
    assert set(costs) == {("reacher", "actor-critic", "compiled")}
    assert start_s >= 0
    told = estimate_wall_time(plan, plan.runs, costs, start_s, workers=1)
    began = time.monotonic()
    assert run_study(folder, LocalExecutor(1)) == {"done": 2}
    took_s = time.monotonic() - began
    assert took_s / 10 < told.wall_s < 10 * took_s


def test_the_try_compiles_its_program_though_it_was_compiled_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would be kept is neither read nor written, so that the time is that of a program which is not there."""
    monkeypatch.setenv("CYCLETIME_CACHE", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    plan = Plan.of(quick_study(set={"hidden": [1]}, env_steps=16))
    costs, _ = measure_costs(plan, plan.runs)
    assert [cost.program_s > 0 for cost in costs.values()] == [True]
    assert not list(tmp_path.glob("*-cache"))


def test_a_try_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan.of(small_study())
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RunError, match=r"^The try failed: nothing was said\.$"):
        measure_costs(plan, plan.runs)


def test_a_try_that_is_refused_says_so_in_a_sentence(tmp_path: Path) -> None:
    plan = Plan.of(replace(quick_study(), worlds=(GymnasiumEnv("CartPole-v1"),)))
    for tried in (lambda: measure_costs(plan, plan.runs), lambda: check_start(plan.cells, tmp_path, "local")):
        with pytest.raises(InputError, match=r"^The actions are Discrete\(2\): the agents need a Box of "):
            tried()
