"""Each kind of finding on a small configuration that has it, beside one that differs in a single value and has not."""

import json
from math import exp, log
from pathlib import Path
from typing import Any

import pytest

from cycletime.duration import Duration
from cycletime.libraries.carry_configuration import carry_configuration
from cycletime.libraries.config_in_seconds import describe
from cycletime.libraries.config_search import Search, find_configurations
from cycletime.libraries.configuration import Configuration, Setting, read_configuration
from cycletime.libraries.findings import Finding, find_inconsistencies
from cycletime.libraries.names import table_names
from tests.libraries.configurations import BRAX as PLAYGROUND_PPO
from tests.libraries.configurations import ISAAC_ENV, LEROBOT, MJLAB_ENV, PLAYGROUND_ENV, RL_GAMES, SKRL, write_run

ISAAC_LAB = {"sim.dt": 0.005, "decimation": 4, "episode_length_s": 20.0, "scene.num_envs": 4096}
RSL_RL = {"num_steps_per_env": 24, "max_iterations": 1500, "algorithm.gamma": 0.99, "algorithm.lam": 0.95}
RSL_RL |= {"algorithm.num_mini_batches": 4, "algorithm.num_learning_epochs": 5}
LEGGED_GYM = {"sim.dt": 0.005, "control.decimation": 4, "env.episode_length_s": 20, "env.num_envs": 4096}
PLAYGROUND = {"ctrl_dt": 0.02, "sim_dt": 0.004, "episode_length": 1000}
BRAX = {"unroll_length": 20, "batch_size": 256, "num_minibatches": 32, "num_envs": 8192, "discounting": 0.97}


def configuration(
    env: dict[str, Any],
    agent: dict[str, Any] | None = None,
    library: str = "rsl-rl",
    environment: str | None = "isaac-lab",
    algorithm: str = "ppo",
    name: str = "task",
    comments: dict[str, str] | None = None,
    dt: str | None = None,
) -> Configuration:
    def stated(values: dict[str, Any]) -> dict[str, Setting]:
        return {key: Setting(key, value, f"{key}:1", (comments or {}).get(key, "")) for key, value in values.items()}

    given = Duration(dt) if dt else None
    return Configuration(
        name, library, environment, algorithm, stated(RSL_RL if agent is None else agent), stated(env), given_dt=given
    )


def kinds(found: Configuration) -> set[str]:
    return {each.kind for each in find_inconsistencies(found)}


def only(found: Configuration) -> Finding:
    (finding,) = find_inconsistencies(found)
    return finding


def test_a_usual_configuration_has_no_findings() -> None:
    assert find_inconsistencies(configuration(ISAAC_LAB)) == []
    assert find_inconsistencies(configuration(LEGGED_GYM, environment="legged-gym")) == []
    assert find_inconsistencies(configuration(PLAYGROUND, BRAX, "mujoco-playground", "mujoco-playground")) == []


@pytest.mark.parametrize(
    ("name", "comment", "contradicts"),
    [
        ("decimation", "100 Hz", True),
        ("decimation", "50 Hz", False),
        ("decimation", "200 Hz / 4 = 50Hz", False),
        ("sim.dt", "1/60 s", True),
        ("sim.dt", "0.2 kHz", False),
        ("sim.dt", "1/200", False),
        ("decimation", "policy at 49.9 Hz", False),
        ("decimation", "every 4 steps", False),
        ("episode_length_s", "the camera has 30 Hz", False),
    ],
)
def test_a_comment_says_another_rate(name: str, comment: str, contradicts: bool) -> None:
    found = configuration(ISAAC_LAB, comments={name: comment})
    assert kinds(found) == ({"rate-in-words"} if contradicts else set())
    if contradicts:
        assert only(found).rank == "contradiction"
        assert "sim.dt 0.005 x decimation 4 is 50 Hz (20 ms)" in only(found).sentence


def test_a_name_of_trifinger_s_is_no_slip_of_anymal_terrain_s() -> None:
    env = {"sim.dt": 0.02, "env.numEnvs": 64, "env.control_decimation": 1}
    assert kinds(configuration(env, {}, environment="isaac-gym")) == set()
    assert kinds(configuration(env | {"env.controlFrequencyIn": 1}, {}, environment="isaac-gym")) == {"misspelt"}


@pytest.mark.parametrize(("comment", "contradicts"), [("simulation at 200Hz", False), ("100 Hz", True)])
def test_a_comment_on_the_physics_of_a_deployment(comment: str, contradicts: bool) -> None:
    env = {"policy_dt": 0.02, "sim_dt": 0.005}
    found = configuration(env, {}, environment="deployment", comments={"sim_dt": comment})
    assert kinds(found) == ({"rate-in-words"} if contradicts else set())


@pytest.mark.parametrize(("name", "contradicts"), [("Go2-60Hz", True), ("go2_50hz", False), ("Go2-v60", False)])
def test_a_name_says_another_rate(name: str, contradicts: bool) -> None:
    assert kinds(configuration(ISAAC_LAB, name=name)) == ({"rate-in-words"} if contradicts else set())


@pytest.mark.parametrize(
    ("settings", "contradicts"),
    [
        ({"control_dt": 0.01}, True),
        ({"control_dt": 0.02}, False),
        ({"robot.policy_frequency": 100}, True),
        ({"robot.policy_frequency": 50}, False),
        ({"control_dt": 0.004, "policy_dt": 0.02}, False),
        ({"control_dt": 0.004, "policy_dt": 0.04}, True),
        ({"gait.cycle_time": 0.64}, False),
        ({"actuators.gear.dt": 0.1}, False),
    ],
)
def test_another_setting_says_another_cycle_time(settings: dict[str, Any], contradicts: bool) -> None:
    assert kinds(configuration(ISAAC_LAB | settings)) == ({"two-cycle-times"} if contradicts else set())


@pytest.mark.parametrize(("sim_dt", "contradicts"), [(0.003, True), (0.004, False), (0.02, False)])
def test_a_cycle_that_is_no_whole_number_of_physics_steps(sim_dt: float, contradicts: bool) -> None:
    found = configuration(PLAYGROUND | {"sim_dt": sim_dt}, BRAX, "mujoco-playground", "mujoco-playground")
    assert kinds(found) == ({"refused"} if contradicts else set())
    if contradicts:
        assert "is not a whole multiple of the environment time step 3ms" in only(found).sentence


@pytest.mark.parametrize(
    ("comment", "contradicts"), [("8 s", True), ("20 s", False), ("20s at 50 Hz", False), ("500 ms", True), ("", False)]
)
def test_a_comment_says_other_seconds_than_the_steps_last(comment: str, contradicts: bool) -> None:
    comments = {"episode_length": comment}
    found = configuration(PLAYGROUND, BRAX, "mujoco-playground", "mujoco-playground", comments=comments)
    assert kinds(found) == ({"seconds-in-words"} if contradicts else set())


@pytest.mark.parametrize(("gamma", "short"), [(0.8, True), (0.83, False), (0.9, False)])
def test_a_horizon_of_a_few_steps(gamma: float, short: bool) -> None:
    assert (-1 / log(gamma) < 5) == short
    assert kinds(configuration(ISAAC_LAB, RSL_RL | {"algorithm.gamma": gamma})) == (
        {"short-horizon"} if short else set()
    )


@pytest.mark.parametrize(("episode_s", "rank"), [(0.5, "warning"), (1.5, "note"), (2.5, None), (20.0, None)])
def test_a_horizon_longer_than_the_episode(episode_s: float, rank: str | None) -> None:
    found = configuration(ISAAC_LAB | {"episode_length_s": episode_s})
    assert [each.rank for each in find_inconsistencies(found)] == ([rank] if rank else [])
    if rank:
        assert f"{exp(-0.02 / episode_s):.4g} would look as far" in only(found).sentence
        assert "looks 1.99 s ahead" in only(found).sentence


@pytest.mark.parametrize(
    ("steps", "kind", "rank"),
    [
        (2, "short-rollout", "warning"),
        (8, "rollout-cuts-trace", "warning"),
        (12, "rollout-cuts-trace", "note"),
        (16, None, None),
        (24, None, None),
    ],
)
def test_a_rollout_shorter_than_the_trace(steps: int, kind: str | None, rank: str | None) -> None:
    assert -1 / log(0.99 * 0.95) == pytest.approx(16.3, abs=0.05)
    found = find_inconsistencies(configuration(ISAAC_LAB, RSL_RL | {"num_steps_per_env": steps}))
    assert [(each.kind, each.rank) for each in found] == ([(kind, rank)] if kind else [])


def test_a_trace_that_never_decays_asks_for_no_rollout() -> None:
    assert kinds(configuration(ISAAC_LAB, RSL_RL | {"algorithm.lam": 1.0})) == set()


@pytest.mark.parametrize(("count", "left"), [(7, 4096 * 24 % 7), (3, 0), (4, 0)])
def test_mini_batches_that_do_not_divide(count: int, left: int) -> None:
    found = configuration(ISAAC_LAB, RSL_RL | {"algorithm.num_mini_batches": count})
    assert kinds(found) == ({"minibatches"} if left else set())
    if left:
        assert f": {left} are left over" in only(found).sentence


@pytest.mark.parametrize(("minibatch", "refused"), [(30_000, True), (32_768, False), (200_000, True)])
def test_mini_batches_that_rl_games_refuses(minibatch: int, refused: bool) -> None:
    agent = {"gamma": 0.99, "tau": 0.95, "horizon_length": 24, "minibatch_size": minibatch}
    found = configuration(ISAAC_LAB, agent, "rl-games")
    assert [each.rank for each in find_inconsistencies(found)] == (["contradiction"] if refused else [])


def test_agents_of_one_environment_count_in_the_batch_of_rl_games() -> None:
    """As in rl_games' own configuration of 5m_vs_6m: 8 environments of 5 agents, 128 steps."""
    agent = {"gamma": 0.99, "tau": 0.95, "horizon_length": 128, "minibatch_size": 2560, "num_actors": 8}
    assert kinds(configuration({}, agent, "rl-games", None)) == set()


@pytest.mark.parametrize(
    ("n_steps", "batch_size", "rank"),
    [(8, 256, "warning"), (2048, 64, None), (2048, 100, "note"), (100, 64, "warning")],
)
def test_mini_batches_that_stable_baselines3_cuts_short(n_steps: int, batch_size: int, rank: str | None) -> None:
    agent = {"n_envs": 1, "n_steps": n_steps, "batch_size": batch_size, "gae_lambda": 0.8, "gamma": 0.99}
    found = find_inconsistencies(configuration({}, agent, "stable-baselines3", None))
    assert [each.rank for each in found] == ([rank] if rank else [])


@pytest.mark.parametrize(("n_envs", "refused"), [(8192, False), (3000, True)])
def test_rollouts_that_brax_cannot_collect(n_envs: int, refused: bool) -> None:
    found = configuration(PLAYGROUND, BRAX | {"num_envs": n_envs}, "mujoco-playground", "mujoco-playground")
    assert kinds(found) == ({"refused"} if refused else set())
    assert not refused or "brax stops at the start" in only(found).sentence


@pytest.mark.parametrize(("iterations", "short"), [(20, True), (1500, False)])
def test_a_training_shorter_than_an_episode(iterations: int, short: bool) -> None:
    found = configuration(ISAAC_LAB, RSL_RL | {"max_iterations": iterations})
    assert kinds(found) == ({"training-shorter-than-episode"} if short else set())
    if short:
        assert "for 9.6 s" in only(found).sentence


@pytest.mark.parametrize(("starts", "never"), [(100_000, True), (1_000, False)])
def test_learning_that_starts_after_the_training(starts: int, never: bool) -> None:
    agent = {"learning_starts": starts, "n_timesteps": 50_000, "buffer_size": 50_000, "gamma": 0.99}
    found = configuration({}, agent, "stable-baselines3", None, "sac")
    assert kinds(found) == ({"no-learning"} if never else set())


@pytest.mark.parametrize(("num_steps", "never"), [(40_000, True), (30_000, False)])
def test_a_curriculum_after_the_training(num_steps: int, never: bool) -> None:
    """1500 updates of 24 steps are 36000 steps of each environment."""
    found = configuration(ISAAC_LAB | {"curriculum.action_rate.params.num_steps": num_steps})
    assert kinds(found) == {"curriculum-in-steps"} | ({"curriculum-after-training"} if never else set())


def test_a_curriculum_in_steps_is_said_in_seconds() -> None:
    stages = {"curriculum.velocity.params.stages.0.step": 0, "curriculum.velocity.params.stages.1.step": 12_000}
    assert "12000 is 240 s:" in only(configuration(ISAAC_LAB | stages)).sentence
    assert kinds(configuration(ISAAC_LAB | {"curriculum.terrain.params.command": "base"})) == set()


@pytest.mark.parametrize(
    ("function", "weight", "kind"),
    [
        ("mdp.is_terminated", -200.0, "event-times-dt"),
        ("isaaclab.envs.mdp.rewards:is_terminated_term", -200.0, "event-times-dt"),
        ("mdp.action_rate_l2", -0.01, "squared-difference"),
        ("mdp.action_rate_l2", 0.0, None),
        ("mdp.track_lin_vel_xy_exp", 1.0, None),
        ("mdp.is_alive", 1.0, None),
        ("mdp.joint_acc_l2", -1e-7, None),
    ],
)
def test_rewards_that_are_multiplied_by_the_cycle_time(function: str, weight: float, kind: str | None) -> None:
    env = ISAAC_LAB | {"rewards.term.func": function, "rewards.term.weight": weight}
    found = find_inconsistencies(configuration(env))
    assert [each.kind for each in found] == ([kind] if kind else [])
    if kind == "event-times-dt":
        assert "-4 each at 20 ms" in found[0].sentence
    assert find_inconsistencies(configuration(env, environment=None, dt="20ms")) == [], "nobody multiplies there"


@pytest.mark.parametrize(("term", "kind"), [("termination", "event-times-dt"), ("action_rate", "squared-difference")])
def test_rewards_of_legged_gym(term: str, kind: str) -> None:
    found = configuration(LEGGED_GYM | {f"rewards.scales.{term}": -2.0}, environment="legged-gym")
    assert only(found).kind == kind
    assert kinds(configuration(LEGGED_GYM | {f"rewards.scales.{term}": -0.0}, environment="legged-gym")) == set()
    assert kinds(configuration(LEGGED_GYM | {"rewards.scales.torques": -1e-5}, environment="legged-gym")) == set()


@pytest.mark.parametrize(("environment", "event"), [("isaac-lab", True), ("mjlab", False)])
def test_air_time_is_paid_at_landing_but_not_in_mjlab(environment: str, event: bool) -> None:
    env: dict[str, Any] = {"sim.dt": 0.005, "sim.mujoco.timestep": 0.005, "decimation": 4}
    env |= {"rewards.air.func": "mdp.feet_air_time", "rewards.air.weight": 0.5}
    assert kinds(configuration(env, environment=environment)) == ({"event-times-dt"} if event else set())


@pytest.mark.parametrize("event", ["termination", "feet_height"])
def test_rewards_of_playground(event: str) -> None:
    env = PLAYGROUND | {f"reward_config.scales.{event}": -1.0, "reward_config.scales.tracking_lin_vel": 1.0}
    found = configuration(env, BRAX, "mujoco-playground", "mujoco-playground")
    assert "-0.02 each at 20 ms" in only(found).sentence


@pytest.mark.parametrize(
    ("interval", "global_time", "never"),
    [
        ([20.0, 30.0], False, True),
        ([10.0, 15.0], False, False),
        ([15.0, 30.0], False, False),
        ([20.0, 30.0], True, False),
        ([15.0, 10.0], False, None),
    ],
)
def test_an_event_that_comes_after_the_episode(interval: list[float], global_time: bool, never: bool | None) -> None:
    event = {"events.push.interval_range_s": interval, "events.push.is_global_time": global_time}
    expected = {"impossible"} if never is None else {"event-after-episode"} if never else set()
    assert kinds(configuration(ISAAC_LAB | event)) == expected


@pytest.mark.parametrize(("period", "slow"), [(0.1, True), (0.02, False), (0.005, False), (0.0, False)])
def test_a_sensor_slower_than_the_cycle(period: float, slow: bool) -> None:
    found = configuration(ISAAC_LAB | {"scene.height_scanner.update_period": period})
    assert kinds(found) == ({"slow-sensor"} if slow else set())


@pytest.mark.parametrize(("gamma", "differs"), [(0.999, True), (0.99, False)])
def test_rewards_normalised_with_another_discount(gamma: float, differs: bool) -> None:
    found = configuration(ISAAC_LAB, RSL_RL | {"reward_normalization.gamma": gamma})
    assert kinds(found) == ({"normalisation-gamma"} if differs else set())


@pytest.mark.parametrize(("size", "differs"), [(96, True), (24, False), (-1, False)])
def test_a_memory_of_another_length_than_the_rollout(size: int, differs: bool) -> None:
    agent = {"agent.rollouts": 24, "agent.discount_factor": 0.99, "agent.mini_batches": 4, "memory.memory_size": size}
    found = configuration(ISAAC_LAB, agent, "skrl")
    assert kinds(found) == ({"memory-size"} if differs else set())


@pytest.mark.parametrize(
    ("settings", "differs"),
    [
        ({"simulation_dt": 0.002, "control_decimation": 10}, False),
        ({"simulation_dt": 0.002, "control_decimation": 5}, True),
        ({"control_dt": 0.004, "policy_dt": 0.02}, False),
        ({"control_dt": 0.01}, True),
    ],
)
def test_a_policy_that_is_run_at_another_cycle_time(settings: dict[str, Any], differs: bool) -> None:
    found = configuration(settings, {}, environment="deployment")
    assert [each.kind for each in find_inconsistencies(found, [0.02])] == (
        ["deployed-at-another-rate"] if differs else []
    )
    assert find_inconsistencies(found) == [], "no training to compare with"


def test_what_contradicts_comes_first_and_notes_last() -> None:
    env = ISAAC_LAB | {"rewards.end.func": "mdp.is_terminated", "rewards.end.weight": -1.0}
    found = configuration(env, RSL_RL | {"num_steps_per_env": 2}, comments={"decimation": "60 Hz"})
    assert [each.rank for each in find_inconsistencies(found)] == ["contradiction", "warning", "note"]


def test_a_physics_step_without_its_decimation_is_refused_for_nothing() -> None:
    assert kinds(configuration({"sim.dt": 0.0166})) == set()


def test_without_a_cycle_time_what_is_in_steps_is_still_found() -> None:
    found = configuration({}, RSL_RL | {"num_steps_per_env": 2}, environment=None)
    assert kinds(found) == {"short-rollout"}
    assert find_inconsistencies(configuration({}, {}, environment=None)) == []
    assert configuration(ISAAC_LAB | {"sim.dt": float("inf")}).cycle_time is None


def test_what_counts_batches_lasts_as_long_as_they_do() -> None:
    rows = {row.value: row.meaning for row in describe(configuration(ISAAC_LAB, RSL_RL | {"save_interval": 50}))}
    assert rows["save_interval 50"] == f"{50 * 24 * 0.02:.0f} s"


def test_what_a_direct_environment_pays_is_left_to_its_code() -> None:
    direct = ISAAC_LAB | {"action_rate_reward_scale": -0.01, "feet_air_time_reward_scale": 0.5}
    assert kinds(configuration(direct)) == kinds(configuration(ISAAC_LAB)) == set()


def test_the_meaning_in_seconds() -> None:
    """Written out by hand: 20 ms, 1/0.02 Hz, -0.02/ln(0.99), 24 steps, 4096 environments, 20 updates in 0.48 s."""
    env = ISAAC_LAB | {"observations.policy.history_length": 5, "actions.arm.alpha": 0.5}
    env |= {"robot.actuators.legs.max_delay": 6}
    env |= {"contact_sensor.history_length": 3, "contact_sensor.update_period": 0.01}
    env |= {"events.push.min_step_count_between_reset": 720, "action_lag": 2}
    meaning = {row.what: row for row in describe(configuration(env))}
    assert meaning["cycle time"].value == "20 ms (50 Hz)"
    assert meaning["discount"].meaning == "horizon 99.5 steps, 1.99 s"
    assert meaning["trace"].meaning == "gamma lambda: 16.3 steps, 0.326 s"
    assert meaning["rollout"].meaning == "0.48 s in each environment"
    assert meaning["batch"].value == f"{4096 * 24} samples"
    assert meaning["gradient steps"].meaning == f"{20 / 0.48:.4g} per simulated second"
    assert meaning["episode"].meaning == "20 s, 1000 steps"
    assert meaning["training"].meaning == f"{1500 * 24 * 0.02:.0f} s in each environment"
    histories = [row.meaning for row in describe(configuration(env)) if row.what == "history"]
    assert histories == ["0.1 s", "0.03 s: it counts the sensor's updates"]
    assert meaning["steps"].meaning == f"{720 * 0.02} s"
    assert meaning["may mean time"].meaning == "0.04 s if it counts cycles"
    assert meaning["filter"].meaning == f"time constant {0.02 / log(2):.3g} s"
    assert meaning["delay"].meaning == "0.03 s: it counts steps of the physics"


def test_an_episode_that_isaac_lab_counts_in_seconds_alone() -> None:
    env = {name: value for name, value in ISAAC_LAB.items() if name != "episode_length_s"} | {"episode_length": 1000}
    assert configuration(env).episode is None


@pytest.mark.parametrize("name", ["isaac", "mjlab", "skrl", "rl-games", "playground", "lerobot"])
def test_what_a_transfer_carries_has_a_row_or_a_finding(name: str, tmp_path: Path) -> None:
    """All but the values of rules, of which some have a row in other words."""
    runs = {"isaac": (), "mjlab": (MJLAB_ENV,), "skrl": (ISAAC_ENV, SKRL), "rl-games": (ISAAC_ENV, RL_GAMES)}
    path = tmp_path / "a.json"
    if name in runs:
        path = write_run(tmp_path / "run", *runs[name])
    else:
        path.write_text(json.dumps(LEROBOT if name == "lerobot" else {"env": PLAYGROUND_ENV, "ppo": PLAYGROUND_PPO}))
    read = read_configuration(path)
    assert read.cycle_time is not None
    carried = carry_configuration(read, Duration(2 * read.cycle_time[0].exact_s))
    names = [each.name for each in carried.changes if each.treatment == "carried" and each.old is not None]
    said = [f"{row.value} {row.meaning} " for row in describe(read)]
    said += [f"{each.sentence} " for each in find_inconsistencies(read)]
    by_rule = [each.name for word, each in read.canonical.items() if word in table_names(read.table)]
    assert names
    assert [
        each for each in names if each not in by_rule and not any(each.removeprefix("env.") in one for one in said)
    ] == []


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("n_timesteps: 1e6", "n_timesteps is '1e6': it must be a whole number of at least 1; YAML reads a number from"),
        ("n_timesteps: .inf", "n_timesteps is inf: it must be a whole number of at least 1."),
        ("n_timesteps: 100, n_envs: 8.5", "A: n_envs is 8.5: it must be a whole number of at least 1."),
        ("n_timesteps: 100, gamma: 0.98, gama: 0.99", "stable-baselines3 has no setting 'gama' that depends"),
        ("n_timesteps: 100, batch_size: 1, learning_rate: lin_3e-4, clip_range: auto", None),
    ],
)
def test_what_a_transfer_refuses_contradicts(entry: str, says: str | None, tmp_path: Path) -> None:
    (tmp_path / "ppo.yml").write_text(f"A: {{policy: MlpPolicy, n_steps: 512, {entry}}}\n")
    found = [
        each
        for read in find_configurations(tmp_path / "ppo.yml").configurations
        for each in find_inconsistencies(read)
        if each.rank == "contradiction"
    ]
    assert [each.place for each in found] == (["ppo.yml:1"] if says else [])
    assert all(each.sentence.startswith(str(says)) for each in found)


def test_an_entry_of_the_zoo_has_one_environment_unless_it_says_more(tmp_path: Path) -> None:
    (tmp_path / "ppo.yml").write_text("A: {n_timesteps: 1000, policy: MlpPolicy, n_steps: 8}\n")
    (read,) = find_configurations(tmp_path / "ppo.yml").configurations
    assert (read.batch, kinds(read)) == (8, {"minibatches", "rollout-cuts-trace"})


def test_what_a_replay_buffer_s_algorithm_has_besides_is_said_in_seconds(tmp_path: Path) -> None:
    """By hand, at 20 ms: 300000 and 10000 transitions of 4 arms; 64 updates after 64 steps of 4; -0.08/ln(0.98)."""
    (tmp_path / "sac.yml").write_text(
        "A: {n_timesteps: 1000000, learning_starts: 10000, buffer_size: 300000, tau: 0.02, train_freq: 64, "
        "gradient_steps: 64, n_envs: 4}\n"
    )
    (read,) = find_configurations(tmp_path / "sac.yml", Search(dt=Duration("20ms"))).configurations
    rows = {row.what: (row.value, row.meaning) for row in describe(read)}
    all_of_4 = "{:.3g} s over all environments, {:.3g} s in each"
    assert rows["replay span"] == ("buffer_size 300000", "6000 s over all environments, 1500 s in each")
    assert rows["warm-up time"] == ("learning_starts 10000", all_of_4.format(200, 50))
    assert rows["time between updates"] == ("gradient_steps 64, train_freq 64", all_of_4.format(0.08, 0.02))
    constant = -0.08 / log(0.98)
    assert rows["target time constant"] == ("tau 0.02", all_of_4.format(constant, constant / 4))
    (tmp_path / "sac.yml").write_text("A: {n_timesteps: 1000000, buffer_size: 300000, tau: 0.02}\n")
    (read,) = find_configurations(tmp_path / "sac.yml", Search(dt=Duration("20ms"))).configurations
    assert ("replay span", "6000 s") in {(row.what, row.meaning) for row in describe(read)}, (
        "of one alone nothing is said"
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("algorithm.gamma", 99, "algorithm.gamma is 99: it must be a number above 0 and at most 1."),
        ("num_steps_per_env", 0, "num_steps_per_env is 0: it must be a whole number of at least 1."),
        ("episode_length_s", 0, "episode_length_s is 0: it must be a number above 0."),
        ("decimation", 2.5, "decimation is 2.5: it must be a whole number of at least 1."),
        ("decimation", "four", "decimation is 'four': it must be a whole number of at least 1."),
        ("decimation", -4, "decimation is -4: it must be a whole number of at least 1."),
        ("sim.dt", "5ms", "sim.dt is '5ms': it must be a number above 0 and below 1, in seconds."),
        ("sim.dt", 5, "sim.dt is 5: it must be a number above 0 and below 1, in seconds."),
        ("num_steps_per_env", [24], "num_steps_per_env is [24]: it must be a whole number of at least 1."),
        *(
            ("algorithm.gamma", value, f"algorithm.gamma is {value!r}: it must be a number above 0 and at most 1.")
            for value in ("0.97", 0, None)
        ),
        ("algorithm.lam", 0, None),
        ("algorithm.lam", "${lam}", None),
    ],
)
def test_values_that_no_library_can_use(name: str, value: object, says: str | None) -> None:
    env, agent = ({**side, **({name: value} if name in side else {})} for side in (ISAAC_LAB, RSL_RL))
    found = find_inconsistencies(configuration(env, agent))
    assert [each.sentence for each in found if each.kind == "impossible"] == ([says] if says else [])
    # The library's default is not shown instead.
    assert not any("(default)" in row.value for row in describe(configuration(env, agent)))


def test_a_default_is_said_to_be_one() -> None:
    rest = {name: value for name, value in RSL_RL.items() if name != "algorithm.gamma"}
    rows = {row.what: row.value for row in describe(configuration(ISAAC_LAB, rest))}
    assert (rows["discount"], rows["trace"]) == ("algorithm.gamma 0.99 (default)", "algorithm.lam 0.95")


@pytest.mark.parametrize(
    ("name", "slip", "meant"),
    [
        ("num_steps_per_env", "num_step_per_env", "num_steps_per_env"),
        ("algorithm.gamma", "algorithm.gama", "algorithm.gamma"),
        ("algorithm.gamma", "algorithm.discount", "algorithm.gamma"),
        ("decimation", "decimatoin", "decimation"),
        ("algorithm.num_mini_batches", "algorithm.entropy_coef", None),
        ("nothing", "algorithm.gama", None),  # where the known name stands as well, the other is of something else
    ],
)
def test_a_misspelt_name_is_found(name: str, slip: str, meant: str | None) -> None:
    env, agent = (
        {slip if known == name else known: value for known, value in side.items()} for side in (ISAAC_LAB, RSL_RL)
    )
    found = find_inconsistencies(configuration(env, agent if name != "nothing" else {**agent, slip: 0.9}))
    says = [f"{slip} is no setting that is known; did you mean {meant}?"] if meant else []
    assert [each.sentence for each in found if each.kind == "misspelt"] == says
