import json
from collections import Counter
from fractions import Fraction
from math import exp

import pytest

from benchmarks.robots.carry import WHEELS
from benchmarks.robots.environments import config_changes
from benchmarks.robots.plan import (
    SET_BY_THE_TRIAL,
    SHIPPED_FILE,
    batch_and_minibatch,
    printed,
    problems,
    transfer_command,
)
from benchmarks.robots.trial import BUDGET, SHIPPED, ordered_runs, read_preregistration, read_trial, tasks_of

TRIAL = read_trial()
TABLES = read_preregistration()
GO1 = "Go1JoystickFlatTerrain"
SHIPPED_VALUES = json.loads(SHIPPED_FILE.read_text())["tasks"]


def test_go1_has_the_values_of_written_out_formulas() -> None:
    values = {name: TRIAL.settings[f"{GO1}/{name}"].values for name in ("8ms/kept", "8ms/dt-aware", "8ms/horizons")}
    sizes = {name: (v["unroll_length"], v["batch_size"], v["num_minibatches"]) for name, v in values.items()}
    assert sizes == {"8ms/kept": (20, 256, 32), "8ms/dt-aware": (50, 256, 32), "8ms/horizons": (50, 256, 32)}
    assert {v["num_envs"] for v in values.values()} == {8192}
    assert [v["discounting"] for v in values.values()] == pytest.approx([0.97, 0.97, 0.97**0.4])
    assert [v["gae_lambda"] for v in values.values()] == pytest.approx([0.95, 0.95, 0.95**0.4])
    longer = TRIAL.settings[f"{GO1}/40ms/dt-aware"]
    assert longer.arms == ("dt-aware", "horizons")
    assert longer.values["unroll_length"] == 10
    assert longer.values["discounting"] == pytest.approx(0.97**2)


def test_rivals_keep_what_they_are_named_after() -> None:
    many = TRIAL.settings[f"{GO1}/8ms/more-environments"].values
    assert (many["num_envs"], many["unroll_length"], batch_and_minibatch(many)) == (20480, 20, (409600, 12800))
    many = TRIAL.settings["CartpoleSwingup/4ms/more-environments"].values
    assert (many["num_envs"], many["unroll_length"], batch_and_minibatch(many)) == (5120, 30, (2457600, 76800))
    assert batch_and_minibatch(TRIAL.settings[f"{GO1}/8ms/minibatch-kept"].values) == (409600, 5120)
    gammas = {dt: TRIAL.settings[f"{GO1}/{dt}ms/episode-fifth"].values["discounting"] for dt in (8, 20, 40)}
    assert gammas == pytest.approx({8: 0.995, 20: 0.995, 40: 0.99})
    sac = TRIAL.settings["CartpoleSwingup/20ms/sac-horizons"].values
    assert (sac["grad_updates_per_step"], sac["discounting"]) == (16, pytest.approx(0.99**2))


@pytest.mark.parametrize("name", [f"{GO1}/8ms/horizons", "AlohaHandOver/40ms/dt-aware", "CartpoleSwingup/4ms/sac-kept"])
def test_the_frozen_values_are_what_transfer_prints(name: str) -> None:
    setting = TRIAL.settings[name]
    shipped = SHIPPED_VALUES[setting.task][setting.algorithm]["values"]
    command = transfer_command(TRIAL.tasks[setting.task], setting.dt_ms, TABLES["arms"][setting.arm], shipped)
    library = printed(command)["library"]["values"]
    frozen = {**library, **{name: value for name, value in setting.values.items() if name not in SET_BY_THE_TRIAL}}
    assert frozen == library


def test_every_setting_can_be_trained_for_the_same_seconds() -> None:
    assert [problem for setting in TRIAL.settings.values() for problem in problems(setting)] == []
    for name in TRIAL.tasks:
        of_ppo = [each for each in TRIAL.settings.values() if each.task == name and each.algorithm == "ppo"]
        assert len({round(each.interval_s, 6) for each in of_ppo}) == 1, name
        steps = {each.values["episode_length"] * Fraction(str(each.dt_ms)) for each in of_ppo}
        assert len(steps) == 1, name


def test_at_the_shipped_cycle_time_the_values_are_shipped() -> None:
    for name, task in TRIAL.tasks.items():
        values = TRIAL.settings[f"{name}/{task.own_ms:g}ms/{SHIPPED}"].values
        shipped = SHIPPED_VALUES[name]["ppo"]["values"]
        assert {key: shipped[key] for key in shipped if key not in SET_BY_THE_TRIAL[1:]}.items() <= values.items(), name
        assert values["gae_lambda"] == 0.95


def test_tasks_are_of_three_kinds_and_the_first_eight_have_five_robots() -> None:
    kinds = Counter(task.kind for task in TRIAL.tasks.values())
    assert len(TRIAL.tasks) >= 12
    assert all(kinds[kind] >= 4 for kind in ("walking", "hands and arms", "dm_control"))
    assert sum(task.kind != "dm_control" for task in list(TRIAL.tasks.values())[:8]) >= 5
    for task in TRIAL.tasks.values():
        assert all((Fraction(str(dt)) / Fraction(str(task.sim_dt_ms))).denominator == 1 for dt in task.cycle_times_ms)
        assert task.ratio(task.cycle_times_ms[0]) in (Fraction(2, 5), Fraction(1, 2))
        assert task.ratio(task.cycle_times_ms[2]) == 2


def test_the_frozen_order_follows_from_the_preregistration() -> None:
    assert tuple(ordered_runs(TABLES, TRIAL.settings)) == TRIAL.runs
    assert len({run.key for run in TRIAL.runs}) == len(TRIAL.runs)


def test_every_prefix_of_whole_blocks_is_balanced() -> None:
    blocks: list[tuple[str, str]] = []
    for run in TRIAL.runs:
        block = (run.stage, TRIAL.task_of(run).name)
        if run.stage != BUDGET and (not blocks or blocks[-1] != block):
            blocks.append(block)
    assert len(blocks) == len(set(blocks)), "a block is not in one piece"
    assert blocks[0] == ("main", GO1)
    assert [task for stage, task in blocks if stage == "main"] == list(TRIAL.tasks)
    for stage, task in blocks:
        seeds = Counter(run.setting for run in TRIAL.runs if (run.stage, TRIAL.task_of(run).name) == (stage, task))
        assert len(set(seeds.values())) == 1, (stage, task)
    budgets = [TRIAL.runs.index(run) for run in TRIAL.runs if run.stage == BUDGET]
    mains = [next(i for i, r in enumerate(TRIAL.runs) if r.stage == "main" and TRIAL.task_of(r) is task)
             for task in TRIAL.tasks.values()]  # fmt: skip
    assert all(budget < main for budget, main in zip(budgets, mains, strict=True))


def test_what_counts_in_steps_is_set_in_seconds() -> None:
    tasks = tasks_of(TABLES)
    kicks = {"episode_length": 1000, "kick_duration_steps": [1, 10], "kick_wait_steps": [50, 150]}
    changes = config_changes(tasks["BarkourJoystick"], 40, kicks)
    assert changes["kick_duration_steps"] == [1, 5]
    assert changes["kick_wait_steps"] == [25, 75]
    assert changes["episode_length"] == 500
    assert (changes["ctrl_dt"], changes["sim_dt"]) == (0.04, 0.004)
    arm = config_changes(tasks["PandaPickCube"], 10, {"episode_length": 150, "action_scale": 0.04})
    assert arm["action_scale"] == pytest.approx(0.02)
    scales = {"termination": -1.0, "feet_height": -0.2, "feet_air_time": 0.1, "action_rate": -0.01, "pose": 0.5}
    shipped = {"episode_length": 1000, "reward_config": {"scales": scales}}
    corrected = config_changes(tasks[GO1], 8, shipped, "corrected")
    assert corrected["reward_config.scales.termination"] == pytest.approx(-2.5)
    assert corrected["reward_config.scales.action_rate"] == pytest.approx(-0.025)
    assert "reward_config.scales.pose" not in corrected
    with pytest.raises(ValueError, match="choose a cycle time that divides it"):
        config_changes(tasks[GO1], 30, {"episode_length": 1000})


def test_what_is_carried_has_the_frozen_versions() -> None:
    assert {f"{name}=={version}" for name, version in TABLES["versions"].items()} <= set(WHEELS)


def test_the_floor_of_horizons_acts_nowhere() -> None:
    # So that at longer cycle times 'dt-aware' and 'horizons' are one arm, as the page says.
    for setting in TRIAL.settings.values():
        if setting.algorithm == "ppo" and "horizons" in setting.arms:
            assert min(setting.values["discounting"], setting.values["gae_lambda"]) > exp(-1 / 6)
