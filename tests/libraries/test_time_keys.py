"""Settings that mean time beside what rules carry: each is carried, kept or named, by whatever name it was given."""

from fractions import Fraction
from typing import Any

import pytest

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.libraries import LIBRARIES, given_cycle_time
from cycletime.libraries.names import PREFIXES
from cycletime.libraries.time_keys import TIME_KEYS, applied_keys, carry_time_keys, environment_keys, stated_cycle_time
from cycletime.rules import PPO, SAC
from cycletime.rules.laws import COUNT

ANYMAL: dict[str, Any] = {  # of Isaac Lab's velocity task, as params/env.yaml and params/agent.yaml have them
    "agent": {"num_steps_per_env": 24, "max_iterations": 1500, "algorithm": {"gamma": 0.99, "num_mini_batches": 4}},
    "env": {
        "decimation": 4,
        "sim": {"dt": 0.005},
        "episode_length_s": 20.0,
        "observations": {"policy": {"history_length": 5}},
        "curriculum": {"action_rate": {"params": {"num_steps": 12_000}}},
        "rewards": {
            "track_lin_vel_xy_exp": {"weight": 1.0},
            "termination_penalty": {"weight": -200.0},
            "action_rate_l2": {"weight": -0.01},
        },
    },
}


def test_a_whole_configuration_of_isaac_lab_at_half_the_cycle_time() -> None:
    exported = PPO.from_("isaac-lab", dt="20ms", n_envs=4096, **ANYMAL).at("10ms").to("isaac-lab")
    changed = {
        "agent.num_steps_per_env": 48,
        "agent.algorithm.lam": 0.95,
        "env.decimation": 2,
        "env.curriculum.action_rate.params.num_steps": 24_000,
        "env.observations.policy.history_length": 10,
        "env.rewards.termination_penalty.weight": -400.0,
        "env.rewards.action_rate_l2.weight": -0.02,
        "env.rewards.track_lin_vel_xy_exp.weight": 1.0,
    }
    assert {name: exported[name] for name in changed} == changed
    kept = ("agent.max_iterations", "agent.algorithm.gamma", "env.episode_length_s", "env.sim.dt")
    assert [exported[name] for name in kept] == [1500, 0.99, 20.0, 0.005]
    assert not [name for name in exported if not name.startswith(("agent.", "env."))]
    (named,) = [note for note in exported.notes if note.startswith("Carried as well")]
    for what in ("history_length 5 -> 10 (", "penalty.weight -200 -> -400 (", "action_rate_l2.weight -0.01 -> -0.02 ("):
        assert what in named
    assert exported.unknown == ()


@pytest.mark.parametrize(
    ("library", "said", "name"),
    [
        ("isaac-lab", {"num_steps_per_env": 24}, "max_iterations"),
        ("rl-games", {"horizon_length": 24, "minibatch_size": 8, "gamma": 0.9, "tau": 0.9}, "max_epochs"),
        ("skrl", {}, "timesteps"),
    ],
)
@pytest.mark.parametrize("rule", ["baseline", "dt-aware"])
@pytest.mark.parametrize("number", [4096, 1024])
def test_a_training_lasts_as_many_seconds_by_any_rule(
    library: str, said: dict[str, Any], name: str, rule: str, number: int
) -> None:
    """The agent steps of a training, from the sizes that are written: as many seconds of experience in all."""
    before = PPO.from_(library, dt="20ms", n_envs=4096, **said, **{name: 1500})
    after = before.at("10ms", rule).to(library, n_envs=number)
    rollout = {"isaac-lab": "num_steps_per_env", "rl-games": "horizon_length"}.get(library)
    per_count = [values[rollout] if rollout else 1 for values in (before.to(library), after)]
    assert after[name] * per_count[1] * number * 0.01 == 1500 * per_count[0] * 4096 * 0.02
    kept = name != "timesteps" and rule == "dt-aware"
    assert any("it counts batches, which last as long" in note for note in after.notes) == kept


def test_there_and_back_is_the_same_configuration() -> None:
    there = PPO.from_("isaac-lab", dt="20ms", n_envs=4096, **ANYMAL).at("10ms", "scaled").to("isaac-lab")
    back = PPO.from_("isaac-lab", dt="10ms", n_envs=4096, **there).at("20ms", "scaled").to("isaac-lab")
    flat = PPO.from_("isaac-lab", dt="20ms", n_envs=4096, **ANYMAL).to("isaac-lab")
    assert dict(back) == pytest.approx(dict(flat))


@pytest.mark.parametrize(
    ("library", "said", "dt", "carried"),
    [
        (
            "mujoco-playground",
            {"num_timesteps": 10_000_000, "episode_length": 1000, "ctrl_dt": 0.02, "action_repeat": 1},
            "20ms",
            {"num_timesteps": 5_000_000, "episode_length": 500, "ctrl_dt": 0.04, "action_repeat": 1},
        ),
        ("mujoco-playground", {"ctrl_dt": 0.01, "action_repeat": 4}, "40ms", {"ctrl_dt": 0.02, "action_repeat": 4}),
        ("cleanrl", {"total_timesteps": 1_000_000}, "20ms", {"total_timesteps": 500_000}),
        ("rl-games", {"params.config.max_epochs": 500}, "20ms", {"params.config.max_epochs": 500}),
    ],
)
def test_lengths_and_the_cycle_itself(library: str, said: dict[str, Any], dt: str, carried: dict[str, Any]) -> None:
    sizes = {"horizon_length": 16, "minibatch_size": 64, "num_actors": 8, "gamma": 0.9, "tau": 0.9}
    if library == "rl-games":
        said = {**said, **{f"params.config.{name}": value for name, value in sizes.items()}}
    values = PPO.from_(library, dt=dt, **said)
    exported = values.at(2 * values.dt.exact_s).to(library)
    assert {name: exported[name] for name in carried} == carried
    assert not exported.unknown


def test_names_of_another_version_are_understood() -> None:
    said: dict[str, Any] = {"policy.discount": 0.9, "env.fps": 10}
    old = SAC.from_("lerobot", dt="0.1", **said)
    assert old.discount == 0.9
    exported = old.at("50ms", "scaled").to("lerobot")
    assert exported["env.fps"] == 20
    assert exported["policy.discount"] == pytest.approx(0.9**0.5)
    assert "algorithm.discount" not in exported


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"agent.algorithm.gamma": 0.9, "algorithm.gamma": 0.9}, "are the same setting: give one of them"),
        ({"agent.gamma": 0.9}, "has no setting 'agent.gamma' that depends on the cycle time"),
        ({"policy.gamma": 0.9}, "did you mean algorithm.gamma"),
        ({"sim.dt": 0.01, "decimation": 4}, "sim.dt 0.01 x decimation 4 is a cycle time of 40ms, and 20ms is given"),
    ],
)
def test_what_would_stand_beside_a_default_is_refused(said: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        PPO.from_("isaac-lab", dt="20ms", num_steps_per_env=24, **said)


def test_what_is_not_known_is_listed_and_passed_on() -> None:
    exported = PPO.from_("sb3", dt="20ms", n_steps=512, own_setting=3).at("10ms").to("sb3")
    assert (exported["own_setting"], exported.unknown) == (3, ("own_setting",))


def test_an_event_s_count_is_no_weight_for_a_scale_in_its_name() -> None:
    name = "events.object_scale_mass.min_step_count_between_reset"
    (change,) = carry_time_keys("isaac-lab", {name: 7}, Fraction(2), [name])
    assert (change.new, type(change.new), change.reason.partition(",")[0]) == (3, int, "it counts environment steps")


def test_a_decimation_that_would_be_no_whole_number_is_named() -> None:
    changes = carry_time_keys("isaac-lab", {"decimation": 4}, Fraction(1, 3), ["decimation"])
    assert [(each.treatment, each.as_text()) for each in changes] == [
        ("yours", "decimation 4 (would be 1.333: it sets the cycle time)")
    ]


@pytest.mark.parametrize(
    ("library", "said", "dt"),
    [
        ("isaac-lab", {"env.decimation": 4, "env.sim.dt": 0.005}, "20ms"),
        ("playground", {"ctrl_dt": 0.02}, "20ms"),
        ("lerobot", {"env.fps": 30}, "30Hz"),
        ("sb3", {"n_steps": 5}, None),
    ],
)
def test_the_cycle_time_is_read_where_it_is_said(library: str, said: dict[str, Any], dt: str | None) -> None:
    found = given_cycle_time(library, said)
    assert (None if found is None else str(found)) == dt


@pytest.mark.parametrize(
    ("library", "said", "dt", "says"),
    [
        ("isaac-gym", {"sim.dt": 0.005}, "5ms", "sim.dt 0.005 x env.controlFrequencyInv 1 (default)"),
        ("isaac-gym", {"sim.dt": 0.005, "env.controlFrequencyInv": 2}, "10ms", "0.005 x env.controlFrequencyInv 2"),
        ("isaac-gym", {"sim.dt": 0.005, "env.control.decimation": 4}, "20ms", "0.005 x env.control.decimation 4"),
        ("mujoco-playground", {"ctrl_dt": 0.02}, "20ms", "ctrl_dt 0.02 x action_repeat 1 (default)"),
    ],
)
def test_what_makes_the_cycle_time_is_said_and_a_default_marked(
    library: str, said: dict[str, Any], dt: str, says: str
) -> None:
    found = stated_cycle_time(library, said)
    assert found is not None
    assert (str(found[0]), found[1].endswith(says)) == (dt, True)


def test_keys_are_of_libraries_that_there_are() -> None:
    assert set(TIME_KEYS) <= set(LIBRARIES)
    assert set(PREFIXES) <= set(LIBRARIES)


def test_a_short_mini_batch_is_told_with_what_would_divide() -> None:
    carried = PPO(dt="16ms", batch=6824, minibatch=107)
    notes = carried.to("sb3", n_envs=8).notes
    assert notes == (
        "stable-baselines3's last mini-batch of each epoch has 83 samples instead of 107; n_steps 856 would divide.",
    )
    assert 856 * 8 % 107 == 0
    assert PPO(dt="16ms", batch=856 * 8, minibatch=107).to("sb3", n_envs=8).notes == ()


def test_the_end_of_brax_s_unrolls_is_told_in_seconds() -> None:
    exported = PPO(dt="8ms", batch=2000, minibatch=50).to("brax")
    assert exported.notes == ("brax cuts its advantages at the end of each unroll: after 50 agent steps, 0.4 s.",)


def test_an_arm_keeps_its_speed_where_actions_are_increments() -> None:
    settings = {"env.fps": 10, "env.processor.inverse_kinematics.end_effector_step_sizes.x": 0.03}
    changes = carry_time_keys("lerobot", settings, Fraction(1, 3), list(settings))
    assert [(each.treatment, each.new) for each in changes] == [("carried", 30), ("carried", 0.01)]


@pytest.mark.parametrize("scales", ["tracking_lin_vel", "no_box_collision"])
def test_noise_of_sensors_is_no_reward(scales: str) -> None:
    settings = {f"reward_config.scales.{scales}": 1.0, "noise_config.scales.joint_vel": 1.5}
    keys = environment_keys("mujoco-playground", settings, trainer=False)
    by_name = {
        each.name: each for each in carry_time_keys("mujoco-playground", settings, Fraction(1, 2), list(settings), keys)
    }
    assert by_name["noise_config.scales.joint_vel"].reason == "noise of a reading"
    assert by_name[f"reward_config.scales.{scales}"].new == (1.0 if scales == "tracking_lin_vel" else 0.5)


def test_playground_s_rewards_are_carried_from_its_words_as_from_its_files() -> None:
    said: dict[str, Any] = {
        "ctrl_dt": 0.02,
        **{f"reward_config.scales.{name}": -1.0 for name in ("action_rate", "alive")},
    }
    exported = PPO.from_("playground", dt="20ms", **said).at("40ms").to("playground")
    assert ([exported[name] for name in said], exported.unknown) == ([0.04, -0.5, -1.0], ())


@pytest.mark.parametrize(
    ("term", "at_half"),
    [("feet_air_time", 2.0), ("feet_slip", 1.0), ("no_table_collision", 0.5), ("gripper_box", 1.0)],
)
def test_one_term_of_playground_s_rewards_says_how_it_is_paid_or_is_left_to_the_user(term: str, at_half: float) -> None:
    said: dict[str, Any] = {"ctrl_dt": 0.02, f"reward_config.scales.{term}": 1.0}
    exported = PPO.from_("playground", dt="20ms", **said).at("10ms").to("playground")
    assert exported[f"reward_config.scales.{term}"] == at_half
    asked = [note for note in exported.notes if "gripper_box 1 (would be 0.5: if the environment pays per" in note]
    assert len(asked) == (term == "gripper_box"), "arms and hands have it, which pay in different ways"


@pytest.mark.parametrize("library", ["rsl-rl", "skrl", "rl-games"])
def test_isaac_lab_s_environment_is_known_beside_any_agent(library: str) -> None:
    settings = {"env.sim.dt": 0.005, "env.decimation": 4, "env.rewards.termination_penalty.weight": -200}
    changes = carry_time_keys(library, settings, Fraction(1, 2), list(settings))
    assert [each.new for each in changes] == [0.005, 2, -400]
    assert given_cycle_time(library, settings) == Duration("20ms")


def test_isaac_lab_s_number_of_environments_is_known_beside_any_agent() -> None:
    flag: dict[str, Any] = {"num_envs": 4096, "num_steps_per_env": 24}  # as its scripts call it
    assert PPO.from_("isaac-lab", dt="20ms", **flag).batch == 24 * 4096
    number: dict[str, Any] = {"env.scene.num_envs": 4096}
    said: dict[str, Any] = {"gamma": 0.99, "tau": 0.95, "horizon_length": 24, "minibatch_size": 24_576}
    read = PPO.from_("rl-games", dt="20ms", params={"config": said}, **number)
    assert (read.batch, read.at("10ms").to("rl-games")["params.config.num_actors"]) == (24 * 4096, 4096)
    with pytest.raises(InputError, match=r"n_envs is 8 and skrl's env\.scene\.num_envs is 4096"):
        PPO.from_("skrl", dt="20ms", n_envs=8, **number)


def test_a_memory_as_long_as_the_rollout_stays_so_with_the_cycle_time_and_the_environments() -> None:
    said = {"rollouts": 24, "memory.memory_size": 24, "trainer.timesteps": 100}
    exported = PPO.from_("skrl", dt="20ms", n_envs=4096, **said).at("10ms").to("skrl", n_envs=2048)
    assert [exported[name] for name in said] == [96, 96, 400]
    alone = PPO.from_("skrl", dt="20ms", n_envs=4096, **said).to("skrl", n_envs=2048)
    assert [alone[name] for name in said] == [48, 48, 200]
    other = PPO.from_("skrl", dt="20ms", n_envs=4096, **{**said, "memory.memory_size": 100}).at("10ms").to("skrl")
    assert "Kept: memory.memory_size 100 (not equal to rollouts)." in other.notes


@pytest.mark.parametrize(
    ("term", "at_half", "says"),
    [
        ("track_lin_vel_xy_exp", 1.0, "taken as a rate per second: rewards are multiplied by the cycle time"),
        ("actoin_rate_l2", 1.0, "not known, so taken as a rate per second: check; did you mean action_rate_l2?"),
        (
            "termniation_penalty",
            1.0,
            "not known, so taken as a rate per second: check; did you mean termination_penalty?",
        ),
        ("terminatoin_penalty", 2.0, "a guess by its name, check; did you mean termination_penalty?"),
        (
            "torque_change_l2",
            1.0,
            "not known, so taken as a rate per second: check",
        ),  # a squared difference, by its name
        ("action_rate_of_arms", 2.0, "and that of smooth motion (/rho^2): a guess by its name, check"),
        ("own_success", 2.0, "by its name an event, paid once, times the cycle time: check"),
        ("open_drawer_bonus", 1.0, "taken as a rate per second: rewards are multiplied by the cycle time"),
        ("joint_acc_l2", 1.0, "taken as a rate per second: rewards are multiplied by the cycle time"),
    ],
)
@pytest.mark.parametrize("form", ["rewards.{}.weight", "env.rewards.{}.weight"])
def test_a_guess_at_a_reward_s_kind_says_so_with_the_nearest_known_term(
    term: str, at_half: float, says: str, form: str
) -> None:
    name = form.format(term)
    said: dict[str, Any] = {name: 1.0}
    (note,) = PPO.from_("isaac-lab", dt="20ms", num_steps_per_env=24, **said).at("10ms").to("isaac-lab").notes[-1:]
    assert f"{name} 1 " in note
    assert f"{says})." in note
    assert ("-> 2 (" in note) == (at_half == 2)


def test_a_misspelt_scale_of_playground_s_rewards_is_a_guess_too() -> None:
    said: dict[str, Any] = {f"reward_config.scales.{name}": -1.0 for name in ("acton_rate", "tracking_lin_vel")}
    notes = " ".join(PPO.from_("playground", dt="20ms", **said).at("10ms").to("playground").notes)
    assert "scales.acton_rate -1 (not known, so taken as a rate per second: check; did you mean action_rate?)" in notes
    assert "scales.tracking_lin_vel -1 (taken as a rate per second: " in notes


@pytest.mark.parametrize("library", ["isaac-lab", "rl-games", "skrl"])
@pytest.mark.parametrize("value", ["abc", None, [1.0, "x"]])
def test_a_reward_s_weight_that_is_no_number_is_refused(library: str, value: object) -> None:
    sizes: dict[str, Any] = {"num_steps_per_env": 24} if library == "isaac-lab" else {}
    sizes |= {"horizon_length": 8, "minibatch_size": 8, "gamma": 1, "tau": 1} if library == "rl-games" else {}
    name = "env.rewards.track_lin_vel_xy_exp.weight"
    with pytest.raises(InputError, match=r"rewards\.track_lin_vel_xy_exp\.weight is .*: it must be a number\.$"):
        PPO.from_(library, dt="20ms", **{**sizes, name: value})


@pytest.mark.parametrize("value", ["auto", "${seed}", None, True])
def test_what_a_library_or_another_program_fills_in_is_no_slip(value: object) -> None:
    said: dict[str, Any] = {"experiment.write_interval": value}
    assert PPO.from_("skrl", dt="20ms", **said).at("10ms").to("skrl")["experiment.write_interval"] == value


@pytest.mark.parametrize("library", ["brax", "mujoco-playground"])
@pytest.mark.parametrize("prefix", ["", "env.", "config.", "ppo."])
def test_the_length_of_an_episode_is_carried_by_each_of_its_names(library: str, prefix: str) -> None:
    said: dict[str, Any] = {f"{prefix}episode_length": 1000}
    exported = PPO.from_(library, dt="20ms", **said).at("10ms").to(library)
    assert (exported[f"{prefix}episode_length"], exported.unknown) == (2000, ())
    assert any(f"Carried as well: {prefix}episode_length 1000 -> 2000" in note for note in exported.notes)


@pytest.mark.parametrize("kind", [PPO, SAC])
def test_rllib_s_former_names_come_back_as_the_current_ones(kind: type[PPO | SAC]) -> None:
    read = kind.from_("rllib", dt="20ms", train_batch_size=4000)
    assert (read.batch if isinstance(read, PPO) else read.minibatch) == 4000
    carried = read.at("10ms")
    exported = carried.to("rllib")
    assert exported["train_batch_size_per_learner"] == (8000 if kind is PPO else 4000)
    assert "train_batch_size" not in exported
    says = "train_batch_size is a name of RLlib's old API stack, where it is of all learners together: the current one"
    assert any(note.startswith(says) for note in carried.notes)
    with pytest.raises(InputError, match="train_batch_size and train_batch_size_per_learner are the same setting"):
        kind.from_("rllib", dt="20ms", train_batch_size=4000, train_batch_size_per_learner=2000)


def test_settings_that_another_library_does_not_get_are_named() -> None:
    carried = PPO.from_("brax", dt="20ms", **{"env.episode_length": 1000, "num_timesteps": 10}).at("10ms")
    left = "Given in brax's words, and not in these: env.episode_length, num_timesteps."
    assert left in carried.to("cleanrl").notes
    assert left not in carried.to("brax").notes


def test_wrappers_that_stack_observations_are_told_by_the_zoo_s_names_and_by_their_own() -> None:
    stacked = {"n_stack": "vec_env_wrapper.0.stable_baselines3.common.vec_env.VecFrameStack.n_stack"}
    stacked["stack_size"] = "env_wrapper.0.gymnasium.wrappers.FrameStackObservation.stack_size"
    settings = {"frame_stack": 4, **dict.fromkeys(stacked.values(), 4)}
    found = {name: key for name, _, key in applied_keys("stable-baselines3", settings, settings)}
    assert found.keys() == settings.keys()
    assert {(key.law.name, key.carried) for key in found.values()} == {(COUNT.name, False)}
