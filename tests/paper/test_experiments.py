"""The experiments: those of the paper, each with the studies that it takes, in any size."""

from importlib.resources import files

import pytest

from cycletime.errors import InputError
from cycletime.paper.experiments import EXPERIMENTS, Size, experiment_of, experiments, study_of, sweep_of
from cycletime.studies.plan.plan import Plan

PARTS = [part for each in EXPERIMENTS.values() for part in each.studies]


def test_every_study_file_is_called_as_its_study_and_belongs_to_one_experiment() -> None:
    there = {file.name.removesuffix(".toml") for file in (files("cycletime.paper") / "studies").iterdir()}
    assert sorted(PARTS) == sorted(there)
    assert all(study_of(part).name == part for part in PARTS)


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
    studies = [study_of(part) for part in EXPERIMENTS[name].studies]
    assert sum(len(list(study.cells())) for study in studies) == cells
    assert {(study.env_steps, study.seeds) for study in studies} == {(env_steps, tuple(range(30)))}


def test_dt_aware_values_keep_the_batch_time() -> None:
    times = {(cell.labels["batch"], cell.agent.capacity * float(cell.dt)) for cell in study_of("ppo-dt-aware").cells()}
    assert times == {(500, 8.0), (1000, 16.0), (2000, 32.0), (4000, 64.0), (8000, 128.0)}


def test_the_robot_s_have_nothing_to_run() -> None:
    assert [each.name for each in EXPERIMENTS.values() if each.needs_robot] == [
        "ppo-robot",
        "ppo-robot-2000",
        "sac-robot",
    ]


def test_a_size_changes_budget_and_seeds_and_nothing_else() -> None:
    full, small = study_of("ppo-baseline"), study_of("ppo-baseline", Size(0.001, 2))
    assert (small.env_steps, small.seeds) == (10_000, (0, 1))
    assert [cell.agent for cell in small.cells()] == [cell.agent for cell in full.cells()]
    assert len(Plan.of(study_of("pendulum-grid", Size(seeds=3))).runs) == 125 * 3


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
        experiments(["ppo-baseline", "ppo-gird"])
    with pytest.raises(InputError, match=r"^The paper has no experiment 'dqn': there are ppo-baseline, ppo-grid, "):
        experiments(["dqn"])


def test_a_study_knows_its_experiment_and_the_winners_their_sweep() -> None:
    told = experiment_of("sac-gamma-sweep-winners")
    assert told is EXPERIMENTS["sac-gamma-sweep"]
    assert told.parts == ("sac-gamma-sweep", "sac-scaled", "sac-gamma-sweep-winners")
    assert sweep_of("sac-gamma-sweep-winners") == "sac-gamma-sweep"
    assert sweep_of("sac-gamma-sweep") is None
    assert experiment_of("other") is None


def test_policies_are_kept_where_claims_are_about_behaviour() -> None:
    kept = [each.name for each in EXPERIMENTS.values() if each.keep.policies]
    assert kept == ["ppo-baseline", "ppo-dt-aware", "ppo-pendulum"]
    assert not any(each.keep.episodes for each in EXPERIMENTS.values())
