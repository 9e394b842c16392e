"""Whole configurations at another cycle time: what changes, what is kept or named, and files as they were elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cycletime.errors import InputError
from cycletime.libraries.carry_configuration import CarriedConfiguration, carry_configuration
from cycletime.libraries.configuration import read_configuration
from tests.libraries.configurations import (
    BRAX,
    CLEANRL,
    CLEANRL_TABLE,
    ISAAC_ENV,
    LEROBOT,
    LEROBOT_0_4,
    MJLAB_ENV,
    PLAYGROUND_ENV,
    RL_GAMES,
    RSL_RL_AGENT,
    SKRL,
    ZOO,
    write_model,
    write_run,
)


def carry(path: Path, to_dt: str | None, **options: Any) -> CarriedConfiguration:  # noqa: ANN401 - of two functions
    reading = {name: options.pop(name) for name in ("env_id", "library", "algorithm") if name in options}
    return carry_configuration(read_configuration(path, **reading), to_dt, **options)


def named(carried: CarriedConfiguration, treatment: str) -> dict[str, Any]:
    return {each.name: each.new for each in carried.changes if each.treatment == treatment}


def test_isaac_lab_s_run_at_half_the_cycle_time(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    carried = carry(run, "10ms")
    assert carried.changed() == {
        "agent.num_steps_per_env": 48,
        "env.sim.render_interval": 2,
        "env.decimation": 2,
        "env.scene.height_scanner.update_period": 0.01,
        "env.observations.policy.history_length": 10,
        "env.rewards.action_rate_l2.weight": -0.02,
        "env.rewards.termination_penalty.weight": -400.0,
        "env.curriculum.action_rate.params.weight": -0.2,
        "env.curriculum.action_rate.params.num_steps": 24_000,
    }
    assert set(named(carried, "kept")) == {
        "agent.max_iterations",
        "agent.save_interval",
        "env.sim.dt",
        "env.scene.contact_forces.update_period",
        "env.scene.contact_forces.history_length",
        "env.events.push_robot.interval_range_s",
        "env.rewards.track_lin_vel_xy_exp.weight",
        "env.commands.base_velocity.resampling_time_range",
        "env.episode_length_s",
    }
    texts, notes = carried.texts()
    env = ISAAC_ENV
    for old, new in (
        ("render_interval: 4", "render_interval: 2"),
        ("decimation: 4", "decimation: 2"),
        ("update_period: 0.02", "update_period: 0.01"),
        ("history_length: 5", "history_length: 10"),
        ("weight: -0.01", "weight: -0.02"),
        ("weight: -200.0", "weight: -400.0"),
        ("weight: -0.1\n", "weight: -0.2\n"),
        ("12000", "24000"),
    ):
        assert env.count(old) == 1
        env = env.replace(old, new)
    assert texts == {
        run / "params" / "env.yaml": env,
        run / "params" / "agent.yaml": RSL_RL_AGENT.replace("num_steps_per_env: 24", "num_steps_per_env: 48"),
    }
    assert notes == ()
    assert carried.overrides()[0][:3] == [
        "agent.num_steps_per_env=48",
        "env.sim.render_interval=2",
        "env.decimation=2",
    ]


def test_mjlab_counts_delays_in_the_agent_s_steps_and_in_the_physics(tmp_path: Path) -> None:
    carried = carry(write_run(tmp_path / "run", MJLAB_ENV), "10ms")
    term = "env.observations.actor.terms.base_ang_vel"
    actuator = "env.scene.entities.robot.articulation.actuators.0"
    assert carried.changed() == {
        "agent.num_steps_per_env": 48,
        "env.decimation": 2,
        "env.scene.sensors.0.history_length": 2,
        f"{term}.delay_max_lag": 4,
        f"{term}.history_length": 6,
        "env.rewards.action_rate_l2.weight": -0.2,
        "env.rewards.soft_landing.weight": -2e-05,
        "env.curriculum.command_vel.params.velocity_stages.1.step": 240_000,
    }
    assert named(carried, "kept")[f"{actuator}.delay_max_lag"] == 4
    texts, _ = carried.texts()
    (env,) = [text for path, text in texts.items() if path.name == "env.yaml"]
    old, new = MJLAB_ENV.splitlines(), env.splitlines()
    assert len([1 for before, after in zip(old, new, strict=True) if before != after]) == 7


FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "skrl.yaml": (SKRL, {"from_dt": "20ms", "n_envs": 512}),
    "rl_games.yaml": (RL_GAMES, {"from_dt": "20ms"}),
    "rsl_rl.yaml": (RSL_RL_AGENT, {"from_dt": "20ms", "n_envs": 64}),
    "brax.json": (json.dumps(BRAX, indent=2), {"from_dt": "20ms"}),
    "brax.yaml": (yaml.safe_dump(BRAX), {"from_dt": "20ms"}),
    "env.json": (json.dumps(PLAYGROUND_ENV), {}),
    "both.json": (json.dumps({"env": PLAYGROUND_ENV, "ppo": BRAX}, indent="\t"), {}),
    "flat.json": (json.dumps(PLAYGROUND_ENV | BRAX), {}),
    "train_config.json": (json.dumps(LEROBOT, indent=4), {}),
    "old.json": (json.dumps(LEROBOT_0_4), {}),
    "flags.txt": (CLEANRL, {"from_dt": "20ms"}),
    "hyperparameters": (CLEANRL_TABLE, {"from_dt": "20ms"}),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("factor", [2, "half"])
def test_there_and_back_is_the_same_file(name: str, factor: object, tmp_path: Path) -> None:
    text, options = FILES[name]
    (tmp_path / name).write_text(text)
    read = read_configuration(tmp_path / name)
    own = read.cycle_time[0].exact_s if read.cycle_time else 0.02
    there_dt = f"{float(own) * 2 if factor == 2 else float(own) / 2}s"
    if "ctrl_dt" in text and factor == "half":
        there_dt = "8ms"  # a whole number of steps of the physics, 4 ms
    there = carry(tmp_path / name, there_dt, rule="scaled", **options)
    ((_, new),) = there.texts()[0].items()
    assert new != text
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / name).write_text(new)
    if "from_dt" in options:
        options = {**options, "from_dt": there_dt}
    back = carry(tmp_path / "there" / name, f"{float(own)}s", rule="scaled", **options)
    before, after = (
        {setting: each.value for setting, each in read_configuration(path).settings.items()}
        for path in (tmp_path / name, _written(tmp_path / "back" / name, back))
    )
    added = {"gae_lambda": 0.95, "ppo.gae_lambda": 0.95}  # brax's default, which the file does not say
    after = {each: value for each, value in after.items() if each in before or added.get(each) != pytest.approx(value)}
    assert after.keys() == before.keys()
    for each, value in before.items():
        close = isinstance(value, float) and not isinstance(value, bool)
        assert after[each] == (pytest.approx(value, rel=1e-12) if close else value), each


def _written(path: Path, carried: CarriedConfiguration) -> Path:
    path.parent.mkdir()
    path.write_text(next(iter(carried.texts()[0].values())))
    return path


def test_an_adaptive_schedule_leaves_a_carried_learning_rate(tmp_path: Path) -> None:
    run, told = write_run(tmp_path / "run"), "algorithm.schedule adaptive leaves the carried learning rate at once."
    assert told in carry(run, "10ms", also=["learning-rate"]).notes
    assert told not in carry(run, "10ms").notes


def test_what_was_rounded_is_told(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ISAAC_ENV.replace("history_length: 5", "history_length: 3"))
    (change,) = [each for each in carry(run, "40ms").changes if each.name == "env.observations.policy.history_length"]
    assert (change.new, change.reason[-16:]) == (2, "rounded from 1.5"), "one frame would be no history"
    for length, new in ((3, 2), (1, 1)):  # of a sensor, whose single reading is no history
        sensor = CONTACT_SENSOR.replace("0.005", "0.02").replace("3", str(length))
        env = ISAAC_ENV.replace(CONTACT_SENSOR, sensor)
        changes = carry(write_run(tmp_path / str(length), env), "60ms").changes
        assert [each.new for each in changes if each.name.endswith("forces.history_length")] == [new]


CONTACT_SENSOR = "update_period: 0.005\n    history_length: 3"


@pytest.mark.parametrize(("period", "carried"), [("0.02", 6), ("0.005", None), ("0.0", None), ("0.1", None)])
def test_a_sensor_s_history_counts_its_updates(period: str, carried: int | None, tmp_path: Path) -> None:
    assert CONTACT_SENSOR in ISAAC_ENV
    env = ISAAC_ENV.replace(CONTACT_SENSOR, CONTACT_SENSOR.replace("0.005", period))
    changed = carry(write_run(tmp_path / "run", env), "10ms").changed()
    assert changed.get("env.scene.contact_forces.history_length") == carried
    assert changed.get("env.scene.contact_forces.update_period") == (0.01 if carried else None)
    (kept,) = [each for each in carry(tmp_path / "run", "10ms").changes if each.name.endswith("forces.history_length")]
    physics = "it counts steps of the physics" if period == "0.0" else "it counts the sensor's updates"
    assert kept.reason == (physics if carried is None else "it counts the sensor's updates, one per cycle")


@pytest.mark.parametrize(("module", "squared"), [("my_tasks.velocity.mdp", True), ("velocity.config.spot.mdp", False)])
def test_spot_s_smoothness_is_a_norm_and_not_squared(module: str, squared: bool, tmp_path: Path) -> None:
    env = ISAAC_ENV.replace("isaaclab.envs.mdp.rewards:action_rate_l2", f"{module}.rewards:action_smoothness_penalty")
    name = "env.rewards.action_rate_l2.weight"
    (change,) = [each for each in carry(write_run(tmp_path / "run", env), "10ms").changes if each.name == name]
    assert (change.new, "rho^2" in change.reason) == (-0.02, squared)


def test_filters_of_actions_are_carried_and_those_of_observations_named(tmp_path: Path) -> None:
    filters = "act_moving_average: 0.3\nctrl:\n  ema_factor: 0.2\n"
    digital = "      modifiers:\n      - func: isaaclab.utils.modifiers:DigitalFilter\n"
    digital += "        A: [0.0, 0.1]\n        B: [0.25]\n"
    env = filters + ISAAC_ENV.replace("    joint_pos:\n", f"    joint_pos:\n{digital}", 1)
    carried = carry(write_run(tmp_path / "run", env), "10ms")
    assert carried.changed()["env.act_moving_average"] == pytest.approx(1 - 0.7**0.5)
    assert carried.changed()["env.ctrl.ema_factor"] == pytest.approx(1 - 0.8**0.5)
    (named,) = [note for note in carried.notes if note.startswith("May mean time")]
    assert "joint_pos.modifiers.0.A" in named
    assert "joint_pos.modifiers.0.B" in named


def test_rl_games_number_of_environments_changes_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(RL_GAMES)
    changes = carry(tmp_path / "a.yaml", "10ms", from_dt="20ms", to_num_envs=256).changes
    (change,) = [each for each in changes if each.name == "params.config.num_actors"]
    assert (change.new, change.reason) == (256, "as asked")


def test_playground_s_rewards_by_how_they_are_paid(tmp_path: Path) -> None:
    def scaled(env: dict[str, Any]) -> dict[str, Any]:
        (tmp_path / "a.json").write_text(json.dumps({"env": env, "ppo": BRAX | {"reward_scaling": 10.0}}))
        return carry(tmp_path / "a.json", "40ms").changed()

    per_second = scaled(PLAYGROUND_ENV)
    assert (per_second["env.reward_config.scales.termination"], "ppo.reward_scaling" in per_second) == (-0.5, False)
    dm_control = scaled({name: value for name, value in PLAYGROUND_ENV.items() if name != "reward_config"})
    assert dm_control["ppo.reward_scaling"] == 20.0
    arm = scaled(
        PLAYGROUND_ENV
        | {"reward_config": {"scales": {"gripper_box": 4.0, "no_floor_collision": 0.25}, "success_reward": 2.0}}
    )
    assert arm["env.reward_config.scales.gripper_box"] == 8.0
    assert not {"ppo.reward_scaling", "env.reward_config.success_reward"} & arm.keys()


@pytest.mark.parametrize(
    ("terms", "treatment"),
    [
        (("gripper_box", "box_target"), "carried"),  # PandaPickCube
        (("peg_insertion_reward", "left_reward"), "carried"),  # AlohaSinglePegInsertion
        (("hand_pose", "action_rate"), "carried"),  # LeapCubeReorient
        (("stay_still", "termination"), "carried"),  # Go1Handstand
        (("foot_slip", "feet_phase"), "carried"),  # H1JoystickGaitTracking
        (("feet_slip", "feet_phase"), "yours"),  # G1JoystickFlatTerrain, whose actions are targets
        (("angvel", "action_rate"), "yours"),  # LeapCubeRotateZAxis, the same
        ((), "yours"),
    ],
)
def test_increments_of_playground_s_tasks_follow_the_cycle_time(
    terms: tuple[str, ...], treatment: str, tmp_path: Path
) -> None:
    scales = {"reward_config": {"scales": dict.fromkeys(terms, 1.0)}} if terms else {}
    env = {name: value for name, value in PLAYGROUND_ENV.items() if name != "reward_config"}
    (tmp_path / "a.json").write_text(json.dumps({**env, **scales, "action_scale": 0.04}))
    (change,) = [each for each in carry(tmp_path / "a.json", "40ms").changes if each.name == "action_scale"]
    assert (change.treatment, change.new) == (treatment, 0.08)


def test_delays_filters_and_waits_of_playground(tmp_path: Path) -> None:
    env = PLAYGROUND_ENV | {
        "ema_alpha": 0.5,
        "obs_history_len": 30,
        "noise_config": {"action_min_delay": 1, "action_max_delay": 3, "obs_min_delay": 0},
        "pert_config": {"pert_wait_steps": [60, 150], "pert_durations": [0.05, 0.2]},
    }
    (tmp_path / "a.json").write_text(json.dumps(env))
    changed = carry(tmp_path / "a.json", "40ms").changed()
    assert changed["ema_alpha"] == pytest.approx(0.75)
    assert (changed["obs_history_len"], changed["noise_config.action_max_delay"]) == (15, 1)
    assert changed["pert_config.pert_wait_steps"] == [30, 75]
    assert "pert_config.pert_durations" not in changed
    assert "noise_config.obs_min_delay" not in changed


def test_a_direct_environment_s_rewards_are_named(tmp_path: Path) -> None:
    env = "decimation: 2\nsim: {dt: 0.005}\nepisode_length_s: 5.0\nrew_scale_alive: 1.0\nrew_scale_terminated: -2.0\n"
    env += "action_rate_reward_scale: -0.01\nfeet_air_time_reward_scale: 0.5\ncurriculum: {x: {is_delay: true}}\n"
    env += "contact_sensor: {history_length: 3, update_period: 0.01}\nhistory_length: 5\n"
    (tmp_path / "env.yaml").write_text(env)
    carried = carry(tmp_path / "env.yaml", "5ms")
    assert carried.values is None
    assert carried.changed() == {"decimation": 1, "contact_sensor.update_period": 0.005, "history_length": 10}
    assert named(carried, "kept")["contact_sensor.history_length"] == 3, "steps of the physics"
    once = {"rew_scale_terminated": -4.0, "action_rate_reward_scale": -0.02, "feet_air_time_reward_scale": 1.0}
    assert named(carried, "yours") == {"rew_scale_alive": 0.5, **once}, "each with what it is for"
    reasons = {each.name: each.reason for each in carried.changes if each.treatment == "yours"}
    assert reasons["rew_scale_alive"].startswith("if the environment pays per step;")
    assert all("if rewards are multiplied by the cycle time (step_dt)" in reasons[name] for name in once)


@pytest.mark.parametrize(
    ("function", "factor", "reason"),
    [
        ("feet_air_time", 2.0, "an event is paid once, times the cycle time"),  # when a foot lands
        ("is_terminated", 2.0, "an event is paid once, times the cycle time"),
        ("feet_air_time_positive_biped", 1.0, "taken as a rate per second: "),  # as long as one foot is in the air
        ("joint_acc_l2", 1.0, "taken as a rate per second: "),
        ("open_drawer_bonus", 1.0, "taken as a rate per second: "),  # as long as the drawer is open
        ("success_reward", 1.0, "taken as a rate per second: "),
        ("mystery", 1.0, "not known, so taken as a rate per second: check"),
        *((name, 2.0, "by its name an event") for name in ("reached_goal_bonus", "success", "fall_penalty", "fallen")),
        *((name, 2.0, "by its name an event") for name in ("first_contact", "touchdown_impact", "bonus_term")),
        ("action_rate_l2_clamped", 2.0, "a squared difference"),
        (
            "action_acc_l2",
            4.0,
            "a squared second difference: between what keeps the noise's share (x1) and that of smoo",
        ),
        ("action_smoothness_2", 4.0, "a squared second difference"),
    ],
)
def test_rewards_go_by_their_functions(function: str, factor: float, reason: str, tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text(ISAAC_ENV.replace("rewards:track_lin_vel_xy_exp", f"rewards:{function}"))
    changes = carry(tmp_path / "env.yaml", "10ms").changes
    (change,) = [each for each in changes if each.name == "rewards.track_lin_vel_xy_exp.weight"]
    assert (change.new, change.reason[: len(reason)]) == (factor, reason)


def _with_actions(terms: str) -> str:
    return ISAAC_ENV.replace("commands:\n", f"actions:\n{terms}\ncommands:\n")


@pytest.mark.parametrize(
    ("term", "treatments"),
    [
        ("class_type: 'm:RelativeJointPositionAction', scale: 0.5", {"scale": ("kept", 0.5)}),  # at each physics step
        ("class_type: 'm:JointPositionAction', scale: 0.5", {}),
        ("class_type: 'm:X', scale: 0.5, controller: {use_relative_mode: true}", {"scale": ("yours", 0.25)}),
        ("class_type: 'm:RMPFlowAction', scale: 0.5, use_relative_mode: true", {"scale": ("yours", 0.25)}),
        (
            "class_type: 'm:OSC', position_scale: 0.1, orientation_scale: 0.2, stiffness_scale: 9.0, "
            "controller_cfg: {target_types: [pose_rel, wrench_abs]}",
            {"position_scale": ("yours", 0.05), "orientation_scale": ("yours", 0.1)},
        ),
        ("class_type: 'm:OSC', position_scale: 0.1, controller_cfg: {target_types: [pose_abs]}", {}),
    ],
)
def test_increments_of_actions_are_named(term: str, treatments: dict[str, tuple[str, float]], tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text(_with_actions(f"  arm: {{{term}}}"))
    changes = carry(tmp_path / "env.yaml", "10ms").changes
    found = {each.name.rpartition(".")[2]: (each.treatment, each.new) for each in changes if "actions." in each.name}
    assert found == treatments


def test_names_that_look_like_time_are_named(tmp_path: Path) -> None:
    looks = "max_delay: 4, smoothing: 0.9, beta: 0.3, obs_history_len: 6, wrench_prob: 0.1, "
    looks += "patience: 25, max_consecutive: 5, update_every: 10, start_iter: 100, force_prob_range: [0.1, 0.2]"
    others = "max_iterations: 5, log_std: 0.1, scale: 0.5, solver_iteration_count: 4, max_consecutive_success: 0"
    looks += ", episode_length: 1000, max_episode_length: 1000, action_latency: 2, obs_latency_range: [1, 3]"
    (tmp_path / "env.yaml").write_text(_with_actions(f"  my: {{{looks}}}\n  other: {{{others}}}"))
    (note,) = [each for each in carry(tmp_path / "env.yaml", "10ms").notes if each.startswith("May mean time")]
    names = [each.partition(":")[0] for each in looks.split(", ") if ":" in each]
    assert [each.removeprefix("actions.my.") for each in note.rstrip(".").partition(": ")[2].split(", ")] == names


def test_a_motion_of_mjlab_that_plays_a_frame_per_cycle_is_named(tmp_path: Path) -> None:
    """Its command adds 1 to the time step at each step of the environment."""
    run = write_run(tmp_path / "run", MJLAB_ENV + "commands: {motion: {motion_file: walk.npz}}\n")
    assert named(carry(run, "10ms"), "yours")["env.commands.motion.motion_file"] == "walk.npz"


@pytest.mark.parametrize(("period", "prob"), [(0, 0.25**0.5), (5, None)])
def test_a_chance_to_hold_a_delay_is_one_per_step_or_per_period(period: int, prob: float, tmp_path: Path) -> None:
    term = f"    joint_pos:\n      delay_hold_prob: 0.25\n      delay_update_period: {period}\n"
    (tmp_path / "env.yaml").write_text(ISAAC_ENV.replace("    joint_pos:\n", term))
    changed = carry(tmp_path / "env.yaml", "10ms").changed()
    head = "observations.policy.joint_pos.delay"
    assert (changed.get(f"{head}_hold_prob"), changed.get(f"{head}_update_period")) == (prob, 2 * period or None)


def _curriculum(params: str) -> str:
    return ISAAC_ENV.replace(
        "commands:\n", f"  more:\n    params: {{{params}}}\nactions: {{joint: {{alpha: 0.75}}}}\ncommands:\n"
    )


@pytest.mark.parametrize(
    ("params", "changed", "yours"),
    [
        ("address: rewards.termination_penalty.weight, modify_params: {value: -400, num_steps: 50}", (-800, 100), {}),
        ("address: reward_manager.cfg.termination_penalty.weight, modify_params: {value: -3.0}", (-6.0,), {}),
        ("address: actions.joint.alpha, modify_params: {value: 0.5}", (1 - 0.5**0.5,), {}),
        ("address: rewards.track_lin_vel_xy_exp.weight, modify_params: {value: 2.0}", (), {}),
        ("address: rewards.termination_penalty.weight, modify_params: {final: -400.0}", (), {"final": -800.0}),
        ("address: commands.base.ranges.pos_x, modify_params: {value: [0.0, 1.0]}", (), {}),
        ("term_name: action_rate_l2, initial_weight: -0.01, end_step: 9", (), {"initial_weight": -0.02}),
        ("reward_name: action_rate_l2, weight_stages: [{step: 500, weight: -0.1}]", (1000, -0.2), {}),
    ],
)
def test_what_a_curriculum_sets_is_carried_as_the_setting_is(
    params: str, changed: tuple[float, ...], yours: dict[str, float], tmp_path: Path
) -> None:
    (tmp_path / "env.yaml").write_text(_curriculum(params))
    carried = carry(tmp_path / "env.yaml", "10ms")
    assert tuple(new for name, new in carried.changed().items() if ".more." in name) == pytest.approx(changed)
    found = {name.rpartition(".")[2]: new for name, new in named(carried, "yours").items() if ".more." in name}
    assert found == yours


def test_a_zoo_entry_and_a_model(tmp_path: Path) -> None:
    (tmp_path / "ppo.yml").write_text(ZOO)
    carried = carry(tmp_path / "ppo.yml", "4ms", env_id="Hopper-v5", from_dt="8ms")
    assert carried.changed() == {"n_steps": 1024, "batch_size": 128, "n_timesteps": 2_000_000}
    text = carried.texts()[0][tmp_path / "ppo.yml"]
    assert yaml.safe_load(text)["Walker2d-v5"] == yaml.safe_load(ZOO)["Walker2d-v5"]
    carried = carry(write_model(tmp_path / "model.zip"), "4ms", from_dt="8ms")
    assert carried.overrides() == (["n_steps=1024", "batch_size=128"], ())
    assert carried.documents()[tmp_path / "model.zip"]["n_steps"] == 1024
    with pytest.raises(InputError, match="is a model that was trained, and stays as it is"):
        carried.texts()


def test_what_a_model_has_pickled_is_no_default(tmp_path: Path) -> None:
    pickled = {":type:": "<class 'TrainFreq'>", ":serialized:": "gAWV"}
    data = {"gamma": 0.98, "buffer_size": 1000, "gradient_steps": 4, "train_freq": pickled, "_stats_window_size": 100}
    path = write_model(tmp_path / "model.zip", {**data, "policy_class": pickled})
    with pytest.raises(InputError, match=r"pickled in the file'.*; give values, as in --from-library .* train_freq=1"):
        carry(path, "16ms", from_dt="8ms", also=["updates-per-second"])
    with pytest.raises(InputError, match="train_freq is 'pickled"):
        carry(path, "16ms", from_dt="8ms", rule="horizons")
    carried = carry(path, "4ms", from_dt="8ms", rule="horizons")
    assert carried.changed().keys() == {"gamma"}, "shorter cycles leave the updates alone"
    assert carried.values is not None
    assert "updates_per_step" not in carried.values.stated()
    assert not any("_stats_window_size" in note for note in carried.notes)
    carried = carry(write_model(path, {**data, "gradient_steps": -1}), "16ms", from_dt="8ms", also="updates-per-second")
    assert carried.changed() == {"gradient_steps": 2, "train_freq": 1}, "as many updates as steps, then twice as many"
    by_rule = carry(path, "16ms", from_dt="8ms", rule="horizons").changed()
    assert by_rule == {**carried.changed(), "gamma": pytest.approx(0.98**2)}
    assert {each.reason for each in carried.changes[:2]} == {"updates_per_step: x0 * rho, 0.008 s"}


def test_isaac_lab_s_count_of_mini_batches_in_stable_baselines3(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("n_timesteps: 1000000\npolicy: 'MlpPolicy'\nn_steps: 16\nn_minibatches: 8\n")
    carried = carry(tmp_path / "a.yaml", "10ms", from_dt="20ms", n_envs=512)
    assert carried.changed() == {"n_steps": 32, "n_timesteps": 2_000_000}
    assert carried.values is not None
    assert carried.values.stated()["minibatch"] == 32 * 512 / 8
    with pytest.raises(InputError, match="counts mini-batches"):
        carry(tmp_path / "a.yaml", "10ms", from_dt="20ms")


def test_other_numbers_of_environments(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    for to_dt in (None, "20ms"):
        carried = carry(run, to_dt, to_num_envs=1024)
        assert carried.changed() == {
            "agent.num_steps_per_env": 96,
            "env.scene.num_envs": 1024,
            "env.curriculum.action_rate.params.num_steps": 48_000,
        }
        assert carried.notes[:2] == (
            "4096 environments become 1024 with 98304 samples in a batch, and so as many updates per second of "
            "experience: recommended. A rollout lasts 1.92 s in each, and did 0.48 s.",
            "For rollouts as long as before, and a batch that follows the environments, set num_steps_per_env 24: a "
            "batch of 24576 and a minibatch of 6144 samples, and 4 times as many updates per second of experience.",
        )
    both = carry(run, "10ms", to_num_envs=2048).changed()
    assert (both["agent.num_steps_per_env"], both["env.scene.num_envs"], both["env.decimation"]) == (96, 2048, 2)
    assert "set num_steps_per_env 48: a batch of 393216" in carry(run, "10ms", to_num_envs=8192).notes[1]
    # What is said is of the whole steps that are written: one, which is 1.5 times as many updates, and no advice.
    note = next(note for note in carry(run, None, to_num_envs=65_536).notes if "become" in note)
    assert "65536 samples in a batch, and so 1.5 times as many updates per second of experience: not recomm" in note
    assert note.endswith("A rollout lasts 0.02 s in each, and did 0.48 s.")
    (tmp_path / "skrl.yaml").write_text(SKRL)
    carried = carry(tmp_path / "skrl.yaml", "10ms", from_dt="20ms", n_envs=512, to_num_envs=256)
    assert carried.changed() == {"agent.rollouts": 64, "trainer.timesteps": 9600}
    (length,) = [each for each in carried.changes if each.name == "trainer.timesteps"]
    assert length.reason == "it counts steps of all environments at once: as many seconds in all"
    says = "  experiment: {checkpoint_interval: 400}\n  rewards_shaper_scale"
    own = SKRL.replace("memory_size: -1", "memory_size: 16").replace("  rewards_shaper_scale", says)
    (tmp_path / "own.yaml").write_text(own)
    carried = carry(tmp_path / "own.yaml", "10ms", from_dt="20ms", n_envs=512, to_num_envs=256)
    sizes = {"agent.rollouts": 64, "memory.memory_size": 64, "agent.experiment.checkpoint_interval": 1600}
    assert carried.changed() == {**sizes, "trainer.timesteps": 9600}
    assert {each.reason for each in carried.changes if each.name == "memory.memory_size"} == {"as long as the rollout"}
    same = carry(run, "10ms", to_num_envs=8192)
    assert named(same, "kept")["env.curriculum.action_rate.params.num_steps"] == 12_000, "not changed by both"
    (tmp_path / "endless.yaml").write_text(SKRL.replace("timesteps: ", "timesteps: .inf  # "))
    carried = carry(tmp_path / "endless.yaml", None, from_dt="20ms", n_envs=512, to_num_envs=256)
    assert carried.changed() == {"agent.rollouts": 32}
    with pytest.raises(InputError, match="--to is missing"):
        carry(run, None)


def test_for_rollouts_as_long_as_before_brax_s_batch_size_follows_the_environments(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"env": PLAYGROUND_ENV, "ppo": BRAX}))
    carried = carry(tmp_path / "a.json", "8ms", to_num_envs=4096)
    assert carried.changed()["ppo.unroll_length"] == 50
    says = "set batch_size 128: a batch of 204800 and a minibatch of 6400 samples, and 2 times as many updates"
    assert any(says in note for note in carried.notes)


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (SKRL, {}, "give it with --from, or give files that say env.sim.dt and env.decimation."),
        (RSL_RL_AGENT, {}, "or give files that say env.sim.dt and env.decimation."),
        (RL_GAMES.replace("512", "-1"), {"from_dt": "20ms"}, "the number of environments: give --num-envs"),
        (RL_GAMES, {"from_dt": "20ms", "n_envs": 8}, "--num-envs is 8, and"),
        (ISAAC_ENV, {"from_dt": "10ms"}, "sim.dt 0.005 x decimation 4 is a cycle time of 20ms, and --from is 10ms"),
        (ISAAC_ENV.replace("12000", ".nan"), {}, "num_steps is nan: it counts or decays in steps"),
        (SKRL.replace("lambda: 0.95", "lambda: 0.95\n  gae_lambda: 0.9"), {"from_dt": "20ms"}, "are the same setting"),
        (ISAAC_ENV.replace("decimation: 4", "decimation: 2.5"), {}, "decimation is 2.5: it must be a whole number of"),
        (SKRL.replace("rollouts: 16", "rollout: 16"), {"from_dt": "20ms"}, "did you mean rollouts?"),
    ],
)
def test_what_cannot_be_carried_is_refused(content: str, options: dict[str, Any], says: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(content)
    with pytest.raises(InputError) as refusal:
        carry(tmp_path / "a.yaml", "10ms", **options)
    assert says in str(refusal.value)


def test_a_cycle_that_the_physics_cannot_make_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"are 5ms and 10ms\. Or change sim\.dt, which is 0\.005, first\."):
        carry(write_run(tmp_path / "run"), "7ms")
    (tmp_path / "a.json").write_text(json.dumps(PLAYGROUND_ENV))
    with pytest.raises(InputError, match="are 8ms and 12ms"):
        carry(tmp_path / "a.json", "10ms")
    (tmp_path / "a.json").write_text(json.dumps(PLAYGROUND_ENV | {"action_repeat": 2}))
    with pytest.raises(InputError, match="are 16ms and 24ms"):
        carry(tmp_path / "a.json", "20ms")
    assert carry(tmp_path / "a.json", "24ms").changed()["ctrl_dt"] == 0.012


@pytest.mark.parametrize("library", ["skrl", "stable-baselines3", "brax"])
def test_a_library_that_a_file_is_not_of_is_refused(library: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with pytest.raises(
        InputError, match=rf"agent\.yaml is of rsl-rl and has no setting of {library}: leave --library out"
    ):
        read_configuration(run, library=library)


@pytest.mark.parametrize(
    ("env", "agent", "says"),
    [
        (("", ""), ("num_steps_per_env", "num_step_per_env"), "did you mean num_steps_per_env"),
        (
            ("decimation:", "decimatoin:"),
            ("", ""),
            r"env\.decimatoin is no setting that is known; did you mean decimation",
        ),
        (
            ("decimation: 4", ""),
            ("", ""),
            "env.yaml is of no library that was recognised: mend the name in it that is missing",
        ),
        (("", ""), ("algorithm:", "algoritm:"), "agent.yaml is of no library that was recognised"),
        (("decimation: 4", "decimation: four"), ("", ""), r"env\.decimation is 'four': it must be a whole number"),
        (("decimation: 4", "decimation: -4"), ("", ""), r"env\.decimation is -4: it must be a whole number"),
        (("  dt: 0.005", "  dt: 5ms"), ("", ""), r"env\.sim\.dt is '5ms': it must be a number above 0"),
        (("", ""), ("gamma: 0.99", "gamma:"), r"agent\.algorithm\.gamma is None: it must be a number above 0"),
    ],
)
@pytest.mark.parametrize("from_dt", [None, "20ms"])
def test_a_slip_in_a_run_is_named_and_no_file_of_it_passed_by(
    env: tuple[str, str], agent: tuple[str, str], says: str, from_dt: str | None, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", ISAAC_ENV.replace(*env), RSL_RL_AGENT.replace(*agent))
    with pytest.raises(InputError, match=says):
        carry(run, "10ms", from_dt=from_dt)


def test_files_of_a_folder_that_were_not_taken_are_named(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(RL_GAMES)
    (tmp_path / "broken.yaml").write_text("a: [")
    (tmp_path / "notes.json").write_text('{"color": "red"}')
    notes = carry(tmp_path, "10ms", from_dt="20ms").notes
    assert "Files of the folder that were not read: broken.yaml, notes.json." in notes


@pytest.mark.parametrize("beside", ["a/metrics.json", "b/hparams.yaml", "summary.json", "a/params/deploy.yaml"])
def test_a_folder_of_several_runs_is_refused_whatever_else_is_in_it(beside: str, tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "b")
    (tmp_path / beside).write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"has runs in it: give the folder of one, such as .*b\."):
        read_configuration(tmp_path)


def test_a_run_in_a_run_s_folder_is_named(tmp_path: Path) -> None:
    write_run(write_run(tmp_path / "run") / "old")
    notes = carry(tmp_path / "run", "10ms").notes
    assert "Files of the folder that were not read: old/params/agent.yaml, old/params/env.yaml." in notes


def test_a_run_without_its_agent_is_said_to_be_carried_by_half(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    whole, missing = carry(run, "10ms").notes, "No agent.yaml is here, so no rollout, mini-batches, discount"
    assert not any(missing in note for note in whole)
    (run / "params" / "agent.yaml").unlink()
    for path in (run, run / "params" / "env.yaml"):
        assert any(missing in note for note in carry(path, "10ms").notes)
