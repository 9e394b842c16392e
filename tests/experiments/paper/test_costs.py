"""How large experiments are and how long they take, against what was counted and measured elsewhere."""

import re
from pathlib import Path

import pytest

from cycletime.duration import cycle_steps
from cycletime.experiments.investigation import Size
from cycletime.experiments.outcome import Results
from cycletime.experiments.paper.declaration import PAPER
from cycletime.experiments.paper.experiments import EXPERIMENTS, load_study
from cycletime.experiments.running import COMPILE_S, ExperimentRow, Workspace, core_cost, experiment_row
from cycletime.studies.plan import Plan

MEASURED = (Path(__file__).parents[3] / "results" / "training-cpu.txt").read_text()


def cost_of(name: str, size: Size = Size()) -> ExperimentRow:  # noqa: B008 - it is frozen
    workspace = Workspace(investigation=PAPER, out=Path(), size=size)
    return experiment_row(EXPERIMENTS[name], workspace, Results({}))


@pytest.mark.parametrize(
    ("name", "runs", "hours"),
    [
        ("ppo-baseline", 150, 150 * 1e7 * 0.002 / 3600),
        ("ppo-grid", 3750 + 150, 3900 * 1e7 * 0.002 / 3600),
        ("ppo-pendulum", 300 - 30, 270 * 1e7 * 0.004 / 3600),
        ("sac-gamma-sweep", 1800 + 150 + 150, 2100 * 5e5 * 0.002 / 3600),
    ],
)
def test_runs_and_simulated_hours_are_counted_by_hand(name: str, runs: int, hours: float) -> None:
    found = cost_of(name)
    assert found.runs == runs
    assert found.simulated_h == pytest.approx(hours)


def test_the_times_are_about_those_that_were_measured() -> None:
    grid = cost_of("ppo-grid")
    assert grid.h200_s is not None
    assert 150 < grid.h200_s < 300, "README: three and a half minutes"
    assert grid.engines == ("cuda",)
    updates = 360 * 1e6 / 4  # of twelve discounts at 16 ms, with 30 seeds
    sweep = cost_of("sac-pendulum-sweep")
    assert sweep.engines == ("cuda",)
    assert sweep.h200_s is not None
    assert 5e-6 * updates < sweep.h200_s < 6e-6 * updates, "benchmarks/sac_kernel.py has a goal of 6 us an update"


@pytest.mark.parametrize(
    ("line", "study", "dt", "steps"),
    [
        (r"PPO, .*?cycletime, Reacher 16ms +([\d.]+) +([\d.]+) ", "ppo-baseline", "16ms", 2000),
        (r"PPO, .*?cycletime, Reacher 4ms +([\d.]+) +([\d.]+) ", "ppo-baseline", "4ms", 2000),
        (r"SAC, .*?cycletime, Reacher 16ms +([\d.]+) +([\d.]+) ", "sac-baseline", "16ms", 1),
    ],
)
def test_a_core_takes_about_the_time_of_the_benchmark(line: str, study: str, dt: str, steps: int) -> None:
    found = re.search(line, MEASURED, re.DOTALL)
    assert found is not None
    best_s, median_s = (float(each) / 1000 / steps for each in found.groups())
    (cell,) = (cell for cell in load_study(study).cells() if str(cell.dt) == dt)
    assert 0.9 * best_s < core_cost(cell.run(0)).agent_step_s < 1.1 * median_s


def test_a_tenth_of_the_steps_takes_a_tenth_of_the_time_and_programs_their_own() -> None:
    full, tenth = (cost_of("ppo-dt0", Size(scale, 30)) for scale in (1.0, 0.1))
    assert tenth.runs == full.runs
    assert tenth.simulated_h == pytest.approx(full.simulated_h / 10)
    assert full.cores_s[2] / 10 < tenth.cores_s[2] < full.cores_s[2] / 5


def test_cores_share_the_runs_until_the_longest_is_all_that_is_left() -> None:
    plan = Plan.of(load_study("ppo-baseline"))
    costs = {cell.dt: core_cost(cell.run(0)) for cell in plan.cells}
    runs_s = {dt: 1e7 / cycle_steps(dt, "2ms") * cost.agent_step_s for dt, cost in costs.items()}
    found = cost_of("ppo-baseline").cores_s
    for count in (2, 16):
        assert found[count] == pytest.approx((30 * sum(runs_s.values()) + 5 * COMPILE_S) / count)
    few = cost_of("ppo-baseline", Size(1.0, 2)).cores_s
    assert few[64] == pytest.approx(max(runs_s.values()) + COMPILE_S), "ten runs, of which those at 4 ms take longest"
