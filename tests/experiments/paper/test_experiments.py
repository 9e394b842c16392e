"""The experiments: those of the paper, each with the studies that it takes, in any size."""

from fractions import Fraction
from importlib.resources import files
from math import ceil

import pytest

from cycletime import SAC
from cycletime.duration import cycle_steps
from cycletime.errors import InputError
from cycletime.experiments.collecting import scalar_settings
from cycletime.experiments.investigation import Size
from cycletime.experiments.paper.behaviour import MEASURED_STUDIES
from cycletime.experiments.paper.declaration import PAPER
from cycletime.experiments.paper.experiments import EXPERIMENTS, load_study
from cycletime.studies.plan import Plan

PARTS = [part for each in EXPERIMENTS.values() for part in each.studies]


def test_every_study_file_is_called_as_its_study_and_belongs_to_one_experiment() -> None:
    there = {file.name.removesuffix(".toml") for file in (files("cycletime.experiments.paper") / "studies").iterdir()}
    assert sorted(PARTS) == sorted(there)
    assert all(load_study(part).name == part for part in PARTS)


@pytest.mark.parametrize(
    ("name", "cells", "env_steps"),
    [
        ("ppo-baseline", 5, 10_000_000),
        ("ppo-grid", 5 * 25, 10_000_000),
        ("ppo-dt-aware", 5 * 5, 10_000_000),
        ("ppo-scaled", 2 * 5, 10_000_000),
        ("ppo-constant", 2 * 5, 10_000_000),
        ("sac-baseline", 5, 500_000),
        ("sac-gamma-sweep", 5 * 12 + 5, 500_000),
        ("sac-dt-aware", 5 * 2, 500_000),
        ("ppo-dt0", 3 * 5, 10_000_000),
        ("ppo-pendulum", 2 * 5, 10_000_000),
        ("sac-pendulum-sweep", 12, 1_000_000),
        ("sac-pendulum", 5 + 2 * 5, 1_000_000),
    ],
)
def test_the_paper_s_experiments_have_its_points_seeds_and_budgets(name: str, cells: int, env_steps: int) -> None:
    studies = [load_study(part) for part in EXPERIMENTS[name].studies]
    assert sum(len(list(study.cells())) for study in studies) == cells
    assert {(study.env_steps, study.seeds) for study in studies} == {(env_steps, tuple(range(30)))}


def test_dt_aware_values_keep_the_batch_time() -> None:
    times = {
        (cell.labels["batch"], cell.agent.capacity * float(cell.dt)) for cell in load_study("ppo-dt-aware").cells()
    }
    assert times == {(500, 8.0), (1000, 16.0), (2000, 32.0), (4000, 64.0), (8000, 128.0)}


@pytest.mark.parametrize(
    ("name", "cells", "env_steps", "seeds", "env_dt"),
    [
        ("ppo-robot", [4], [600_000], 5, "10ms"),
        ("ppo-robot-2000", [4], [600_000], 5, "10ms"),
        ("sac-robot", [6, 3, 2], [50_000, 50_000, 100_000], 10, "40ms"),
    ],
)
def test_the_robot_s_have_the_paper_s_few_runs_and_time_steps(
    name: str, cells: list[int], env_steps: list[int], seeds: int, env_dt: str
) -> None:
    studies = [load_study(part) for part in EXPERIMENTS[name].studies]
    assert [len(list(study.cells())) for study in studies] == cells
    assert [study.env_steps for study in studies] == env_steps
    assert {study.seeds for study in studies} == {tuple(range(seeds))}
    assert {str(world.env_dt) for study in studies for world in study.worlds} == {env_dt}


@pytest.mark.parametrize(("name", "batch"), [("ppo-robot", (400, 10)), ("ppo-robot-2000", (2000, 50))])
def test_the_robot_s_ppo_keeps_its_batch_or_its_batch_time(name: str, batch: tuple[int, int]) -> None:
    found = {
        (cell.labels["rule"], str(cell.dt)): scalar_settings(cell.run(0).own_agent) for cell in load_study(name).cells()
    }
    told = {place: (values["batch"], values["minibatch"]) for place, values in found.items()}
    longer = (4 * batch[0], 4 * batch[1])
    assert told == {
        ("baseline", "10ms"): batch,
        ("dt-aware", "10ms"): longer,
        ("baseline", "40ms"): batch,
        ("dt-aware", "40ms"): batch,
    }
    assert {(values["discount"], values["trace_decay"]) for values in found.values()} == {(0.99, 0.95)}


def test_the_robot_s_discounts_are_those_of_the_rules() -> None:
    peak = SAC(dt="40ms", discount=0.99**8)
    carried = [peak.at("120ms", rule).discount for rule in ("tuned", "tuned-scaled")]
    for part, wanted in (("sac-robot-120ms", [0.99, *carried]), ("sac-robot-extended", [0.99, carried[1]])):
        assert [cell.labels["discount"] for cell in load_study(part).cells()] == pytest.approx(wanted, abs=1e-6)
    sweep = [cell.labels["discount"] for cell in load_study("sac-robot-sweep").cells()]
    assert sweep == pytest.approx([0.99**e for e in (32, 16, 8, 4, 2, 1)], abs=1e-6)


@pytest.mark.parametrize("part", ["sac-robot-sweep", "sac-robot-120ms", "sac-robot-extended"])
def test_the_robot_s_sac_begins_with_50_random_episodes(part: str) -> None:
    for cell in load_study(part).cells():
        cycles = ceil(Fraction(100, cycle_steps(cell.dt, "40ms")))
        assert cell.agent.random_steps == 50 * cycles


def test_a_size_changes_budget_and_seeds_and_nothing_else() -> None:
    full = load_study("ppo-baseline")
    small = Size(0.001, 2).of(full)
    assert (small.env_steps, small.seeds) == (10_000, (0, 1))
    assert [cell.agent for cell in small.cells()] == [cell.agent for cell in full.cells()]
    assert len(Plan.of(Size(seeds=3).of(load_study("pendulum-grid"))).runs) == 125 * 3


@pytest.mark.parametrize("scale", [0.0, -1.0, 1.1, float("nan")])
def test_what_is_no_scale_is_refused(scale: float) -> None:
    with pytest.raises(InputError, match=f"^scale is {scale}: it must be above 0 and at most 1"):
        Size(scale)


def test_seeds_must_leave_room_for_the_winners() -> None:
    with pytest.raises(InputError, match="seeds is 1001: it must be at most 1000"):
        Size(seeds=1001)
    with pytest.raises(InputError, match="seeds is 0: it must be a whole number of at least 1"):
        Size(seeds=0)


def test_a_slip_in_a_name_is_guessed_and_nonsense_has_the_list() -> None:
    with pytest.raises(InputError, match=r"^The paper has no experiment 'ppo-gird': .*; did you mean ppo-grid\?$"):
        PAPER.known("experiment", "ppo-gird", EXPERIMENTS)
    with pytest.raises(InputError, match=r"^The paper has no experiment 'dqn': there are ppo-baseline, ppo-grid, "):
        PAPER.known("experiment", "dqn", EXPERIMENTS)


def test_an_experiment_has_its_studies_and_winners_their_sweep() -> None:
    assert EXPERIMENTS["sac-gamma-sweep"].parts == ("sac-gamma-sweep", "sac-scaled", "sac-gamma-sweep-winners")
    assert PAPER.sweep_of("sac-gamma-sweep-winners") == "sac-gamma-sweep"
    assert PAPER.sweep_of("sac-gamma-sweep") is None


def test_policies_are_kept_of_what_is_measured_and_where_another_simulator_plays_them() -> None:
    kept = [each.name for each in EXPERIMENTS.values() if each.save_options.policies]
    assert set(MEASURED_STUDIES) <= {study for name in kept for study in EXPERIMENTS[name].studies}
    assert {name for name in kept if name.endswith(("robot", "2000"))} == {"ppo-robot", "ppo-robot-2000", "sac-robot"}
    assert not any(each.save_options.episodes for each in EXPERIMENTS.values())
