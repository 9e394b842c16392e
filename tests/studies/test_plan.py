import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan, agent_steps_of, names_of
from cycletime.studies.spec import Study
from cycletime.studies.study_file import study_from

MANY = """
import json, sys, time
from pathlib import Path
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.running import jobs_of
from cycletime.studies.study_file import study_from

began = time.process_time()
told = {"name": "many", "task": "reacher", "algorithm": "ppo", "dts": ["4ms", "8ms", "16ms", "32ms", "64ms"]}
told |= {"rules": ["baseline", "dt-aware"], "seeds": 4000, "env_steps": 100_000}
told |= {"tuned": {"dt": "16ms", "batch": 2000, "discount": [0.99, 0.98, 0.97]}}
folder = StudyFolder.create(Path(sys.argv[1]) / "study", study_from(told))
plan = Plan.of(folder.study)
states = {planned.name: state for planned, state in plan.states(folder)}
jobs = list(jobs_of(plan, plan.runs))
specs = sum(len(job.specs) for job in jobs)
# Not from getrusage, whose peak begins with that of the process that started this one.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
memory_mb = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps([len(states), specs, memory_mb, time.process_time() - began]))
"""


@given(
    world=st.sampled_from([{"task": "double-pendulum"}, {"env": 'strange/"seed":0,"world":-v1', "env_dt": "4ms"}]),
    algorithm=st.sampled_from(["ppo", "sac", "actor-critic"]),
    dt=st.sampled_from(["8ms", "31.25Hz"]),
    seeds=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5, unique=True),
)
def test_names_are_those_of_the_runs(world: dict[str, str], algorithm: str, dt: str, seeds: list[int]) -> None:
    study = study_from({"name": "s", **world, "algorithm": algorithm, "dt": dt, "seeds": seeds, "env_steps": 9})
    for cell in study.cells():
        assert names_of(cell, study.seeds) == tuple(cell.run(seed).name for seed in seeds)


def test_a_run_that_two_cells_share_is_planned_once_and_named_in_both(make_study: Callable[..., Study]) -> None:
    plan = Plan.of(make_study())
    assert (len(plan.cells), len(plan.runs), len({planned.name for planned in plan.runs})) == (4, 6, 6)
    assert plan.names[0] == plan.names[1]  # at the cycle time that they were tuned at
    assert set(plan.names[2]).isdisjoint(plan.names[3])
    assert {name for names in plan.names.values() for name in names} == {planned.name for planned in plan.runs}


def test_specs_are_those_of_the_runs(make_study: Callable[..., Study]) -> None:
    plan = Plan.of(make_study(seeds=[7, 3]))
    assert list(plan.specs(plan.runs)) == [plan.spec(planned).as_json() for planned in plan.runs]
    assert [plan.spec(planned).name for planned in plan.runs] == [planned.name for planned in plan.runs]


def test_one_program_serves_runs_that_differ_in_seeds_and_rates_alone(make_study: Callable[..., Study]) -> None:
    def sizes(**keys: Any) -> list[int]:  # noqa: ANN401
        return [len(group) for group in Plan.of(make_study(**keys)).groups().values()]

    tuned = {"dt": "16ms", "batch": 100, "minibatch": 50}
    assert sizes() == [2, 2, 2]
    assert sizes(tuned={**tuned, "discount": [0.9, 0.99]}) == [4, 4, 4]
    assert sizes(tuned={**tuned, "batch": [100, 200]}) == [2] * 6
    assert sizes(set={"learning_rate": [1e-3, 1e-4]}) == [4, 4, 4]
    assert sizes(set={"hidden": [[8], [16]]}) == [2] * 6
    assert sizes(seeds=5, rules=["baseline"]) == [5, 5]


def test_steps_and_hours_are_those_of_all_runs(make_study: Callable[..., Study]) -> None:
    plan = Plan.of(make_study(seeds=3, env_steps=9000))
    assert plan.env_steps == 9 * 9000
    assert plan.simulated_h == pytest.approx(9 * 9000 * 0.002 / 3600)
    assert [agent_steps_of(cell) for cell in plan.cells] == [9000 / 8, 9000 / 8, 9000 / 16, 9000 / 16]


def test_states_are_those_of_the_folder(make_folder: Callable[..., StudyFolder], finish: Callable[..., None]) -> None:
    folder = make_folder()
    plan = Plan.of(folder.study)
    finish(folder.run_folder(plan.spec(plan.runs[1])))
    assert [state for _, state in plan.states(folder)] == ["pending", "done", *["pending"] * 4]


def test_a_hundred_thousand_runs_fit_into_little_memory_and_time(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", MANY, str(tmp_path)], capture_output=True, text=True, check=True)
    runs, specs, memory_mb, cpu_s = json.loads(ran.stdout)
    assert runs == specs == 108_000
    assert memory_mb < 400
    assert cpu_s < 30
