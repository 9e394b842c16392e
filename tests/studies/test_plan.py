import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.studies.plan import Plan, agent_steps_per_run, run_names
from cycletime.studies.spec_file import study_from_table
from tests.studies.small import small_study

MANY = """
import json, sys
from pathlib import Path
from cycletime.studies.plan import Plan
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder

told = {"name": "many", "task": "reacher", "algorithm": "ppo", "dts": ["4ms", "8ms", "16ms", "32ms", "64ms"]}
told |= {"rules": ["baseline", "dt-aware"], "seeds": 4000, "env_steps": 100_000}
told |= {"tuned": {"dt": "16ms", "batch": 2000, "discount": [0.99, 0.98, 0.97]}}
folder = StudyFolder.create(Path(sys.argv[1]) / "study", study_from_table(told))
plan = Plan.of(folder.study)
states = folder.states(planned.name for planned in plan.runs)
shared = sum(len(group) for group in plan.groups().values())
# Not from getrusage, whose peak begins with that of the process that started this one.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
memory_mb = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps([len(states), shared, memory_mb]))
"""


@given(
    world=st.sampled_from([{"task": "double-pendulum"}, {"env": 'strange/"seed":0,"world":-v1', "env_dt": "4ms"}]),
    algorithm=st.sampled_from(["ppo", "sac", "actor-critic"]),
    dt=st.sampled_from(["8ms", "31.25Hz"]),
    seeds=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5, unique=True),
)
def test_names_are_those_of_the_runs(world: dict[str, str], algorithm: str, dt: str, seeds: list[int]) -> None:
    study = study_from_table({"name": "s", **world, "algorithm": algorithm, "dt": dt, "seeds": seeds, "env_steps": 9})
    for cell in study.cells():
        assert run_names(cell, study.seeds) == tuple(cell.run(seed).name for seed in seeds)


def test_a_run_that_two_cells_share_is_planned_once_and_named_in_both() -> None:
    plan = Plan.of(small_study())
    assert (len(plan.cells), len(plan.runs), len({planned.name for planned in plan.runs})) == (4, 6, 6)
    assert plan.names[0] == plan.names[1]  # at the cycle time that they were tuned at
    assert set(plan.names[2]).isdisjoint(plan.names[3])
    assert {name for names in plan.names.values() for name in names} == {planned.name for planned in plan.runs}


def test_specs_are_those_of_the_runs() -> None:
    plan = Plan.of(small_study(seeds=[7, 3]))
    assert [plan.spec(planned).name for planned in plan.runs] == [planned.name for planned in plan.runs]
    assert [plan.spec(planned).seed for planned in plan.runs[:2]] == [7, 3]


def test_one_program_serves_runs_that_differ_in_seeds_and_rates_alone() -> None:
    def sizes(**keys: Any) -> list[int]:  # noqa: ANN401
        return [len(group) for group in Plan.of(small_study(**keys)).groups().values()]

    tuned = {"dt": "16ms", "batch": 100, "minibatch": 50}
    assert sizes() == [2, 2, 2]
    assert sizes(tuned={**tuned, "discount": [0.9, 0.99]}) == [4, 4, 4]
    assert sizes(tuned={**tuned, "batch": [100, 200]}) == [2] * 6
    assert sizes(set={"learning_rate": [1e-3, 1e-4]}) == [4, 4, 4]
    assert sizes(set={"hidden": [[8], [16]]}) == [2] * 6
    assert sizes(seeds=5, rules=["baseline"]) == [5, 5]


def test_steps_and_hours_are_those_of_all_runs() -> None:
    plan = Plan.of(small_study(seeds=3, env_steps=9000))
    assert plan.env_steps == 9 * 9000
    assert plan.simulated_h == pytest.approx(9 * 9000 * 0.002 / 3600)
    assert [agent_steps_per_run(cell) for cell in plan.cells] == [9000 / 8, 9000 / 8, 9000 / 16, 9000 / 16]


def wide(**keys: Any) -> Plan:  # noqa: ANN401
    """A plan of one program."""
    return Plan.of(small_study(**{"rules": ["baseline"], "dts": ["16ms"], **keys}))


def on_the_kernel(seeds: int) -> Plan:
    return wide(seeds=seeds, device="gpu")


@pytest.mark.parametrize(("workers", "share"), [(1, 1), (50, 1)])
def test_on_a_cpu_a_worker_takes_one_run_at_a_time(workers: int, share: int) -> None:
    plan = wide(seeds=9)
    assert plan.batch_size(plan.runs, workers) == share
    assert plan.workers_needed(plan.runs, workers) == min(workers, 9)


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_runs_that_a_program_carries_are_not_taken_apart(workers: int) -> None:
    plan = wide(seeds=7, width=3)
    assert plan.batch_size(plan.runs, workers) == 3
    assert plan.workers_needed(plan.runs, workers) == min(workers, 3)
    assert plan.workers_needed(plan.runs[:2], workers) == 1


@pytest.mark.parametrize(
    ("seeds", "workers", "share", "turns"),
    [
        (3000, 1, 1024, 1),  # no more than one process should have
        (600, 2, 300, 2),  # an even share
        (600, 50, 132, 5),  # but enough to keep a large GPU busy
        (100, 2, 132, 1),
    ],
)
def test_runs_of_which_some_are_enough_are_shared_among_workers(
    seeds: int, workers: int, share: int, turns: int
) -> None:
    plan = on_the_kernel(seeds)
    assert plan.engines() == {"cuda": seeds}
    assert (plan.batch_size(plan.runs, workers), plan.workers_needed(plan.runs, workers)) == (share, turns)


def test_each_program_has_turns_of_its_own_and_workers_bound_them() -> None:
    plan = Plan.of(small_study(seeds=5, width=2))
    assert plan.workers_needed(plan.runs, 50) == 3 * 3
    assert plan.workers_needed(plan.runs, 4) == 4
    assert plan.workers_needed((), 4) == 0


def test_a_plan_is_of_the_study_as_it_is_resolved() -> None:
    study = small_study()
    assert (study.width, Plan.of(study).study.width) == (None, 1)
    assert Plan.of(study).jax_device == "cpu"


def test_a_hundred_thousand_runs_fit_into_little_memory(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", MANY, str(tmp_path)], capture_output=True, text=True, check=True)
    runs, shared, memory_mb = json.loads(ran.stdout)
    assert runs == shared == 108_000
    assert memory_mb < 400
