"""Zoo entries carried to another cycle time: the right keys, the file's own values, and nothing else."""

from math import log

import pytest
import yaml

from cycletime.errors import InputError
from tests.libraries.zoo_transfer import ZooTransfer, transfer_entry

PPO_FILE = """\
# comment at the top
HalfCheetahBulletEnv-v0: &pybullet-defaults
  normalize: true
  n_envs: 16
  n_timesteps: !!float 2e6
  n_steps: 512
  batch_size: 128
  gamma: 0.99
  gae_lambda: 0.9
  policy_kwargs: "dict(log_std_init=-2, exec('raise SystemExit'))"
ReacherBulletEnv-v0:
  <<: *pybullet-defaults
  n_envs: 8
  batch_size: 64 # m, not b
  sde_sample_freq: 4
Untuned-v0:
  policy: 'MlpPolicy'
"""
SAC_FILE = """\
Pendulum-v1:
  gamma: 0.98
  learning_starts: 10000
  train_freq: [1, "episode"]
Other-v0:
  gamma: lin_0.9
  buffer_size: !!float 3e5
"""
UNKNOWN = "3 more settings are kept: nothing known of them depends on the cycle time."


def settings(carried: ZooTransfer) -> dict[str, object]:
    """What changed, but for the wrapper."""
    return {key: value for key, value in carried.changed.items() if key != "env_wrapper"}


def test_a_ppo_entry_at_a_quarter_of_its_cycle_time() -> None:
    carried = transfer_entry(PPO_FILE, "ReacherBulletEnv-v0", "ppo", "16ms", "4ms", "dt-aware")
    assert carried.changed == {"n_steps": 2048, "batch_size": 256, "n_timesteps": 8_000_000}
    assert carried.text == PPO_FILE.replace("batch_size: 64 #", "batch_size: 256 #").replace(
        "  sde_sample_freq: 4\n", "  sde_sample_freq: 4\n  n_steps: 2048\n  n_timesteps: 8000000\n"
    )
    assert carried.notes == (
        "sde_sample_freq would be 16: it counts agent steps",
        "No env_wrapper was written, since 4ms is not a whole multiple of the environment's step, 16ms: the "
        "environment itself must step every 4ms (cycletime.tasks.retime can, once register_retiming describes it: "
        "docs/retime.md); rename the entry to its id.",
        UNKNOWN,
    )


def test_a_ppo_entry_at_four_times_its_cycle_time_gets_gamma_and_lambda_too() -> None:
    carried = transfer_entry(PPO_FILE, "HalfCheetahBulletEnv-v0", "ppo", "4ms", "16ms", "dt-aware")
    before, after = yaml.safe_load(PPO_FILE), yaml.safe_load(carried.text)
    wrapper = [{"cycletime.tasks.CycleTime": {"dt": "16ms", "env_dt": "4ms"}}]
    assert after["HalfCheetahBulletEnv-v0"].pop("env_wrapper") == wrapper
    new = {"n_steps": 128, "batch_size": 32, "gamma": 0.99**4, "gae_lambda": 0.9**4, "n_timesteps": 500_000}
    assert after["HalfCheetahBulletEnv-v0"] == pytest.approx(before["HalfCheetahBulletEnv-v0"] | new)
    assert after["ReacherBulletEnv-v0"] == before["ReacherBulletEnv-v0"], "who inherits keeps its own values"


def test_settings_that_the_file_does_not_state_are_stable_baselines3_s() -> None:
    carried = transfer_entry(PPO_FILE, "Untuned-v0", "ppo", "16ms", "8ms")
    assert carried.changed == {"n_steps": 4096, "batch_size": 128}


def test_the_same_cycle_time_changes_no_byte() -> None:
    carried = transfer_entry(PPO_FILE, "ReacherBulletEnv-v0", "ppo", "16ms", "16ms")
    assert (carried.text, carried.changed, carried.notes) == (PPO_FILE, {}, (UNKNOWN,))


def test_a_sac_entry_changes_its_discount_alone() -> None:
    carried = transfer_entry(SAC_FILE, "Pendulum-v1", "sac", "50ms", "100ms", "tuned-scaled")
    assert settings(carried) == {"gamma": pytest.approx(0.98**2)}
    assert carried.notes == (
        "learning_starts would be 5000: it counts agent steps",
        "The env_wrapper holds each action for 2 steps of 50ms: take it out if the environment itself steps every "
        "100ms.",
    )


def test_parts_start_from_the_file_or_from_stable_baselines3() -> None:
    also = ["warm-up", "replay-capacity", "target-smoothing"]
    carried = transfer_entry(SAC_FILE, "Pendulum-v1", "sac", "50ms", "100ms", "tuned", also)
    assert settings(carried) == {
        "learning_starts": 5000,
        "buffer_size": 500_000,
        "tau": pytest.approx(1 - 0.995**2),
    }


@pytest.mark.parametrize(
    ("train_freq", "gradient_steps", "dt", "expected"),
    [
        (8, 8, "10ms", {"gradient_steps": 4}),
        (4, -1, "10ms", {"gradient_steps": 2}),
        (1, 1, "10ms", {"train_freq": 2}),
        (1, 1, "40ms", {"gradient_steps": 2}),
        (3, 1, "40ms", {"gradient_steps": 2}),
        (3, 1, "10ms", {"train_freq": 6}),
        (8, 8, "20ms", {}),
        (8.0, 8, "10ms", {"gradient_steps": 4}),
    ],
)
def test_updates_per_second_are_kept_in_the_entry_s_rhythm(
    train_freq: float, gradient_steps: int, dt: str, expected: dict[str, int]
) -> None:
    file = f"A:\n  train_freq: {train_freq}\n  gradient_steps: {gradient_steps}\n"
    carried = transfer_entry(file, "A", "sac", "20ms", dt, "tuned", ["updates-per-second"])
    assert settings(carried) == expected
    new = yaml.safe_load(carried.text)["A"]
    before = 1 if gradient_steps == -1 else gradient_steps / train_freq
    after = 1 if new["gradient_steps"] == -1 else new["gradient_steps"] / new["train_freq"]
    assert after * 20 == pytest.approx(before * int(dt.removesuffix("ms")))


@pytest.mark.parametrize(("said", "start"), [("-3", -3), ("auto", -2), ("'auto'", -2)])
def test_a_target_entropy_starts_from_the_file_s(said: str, start: float) -> None:
    file = f"A:\n  target_entropy: {said}\n"
    carried = transfer_entry(file, "A", "sac", "16ms", "64ms", "tuned", ["target-entropy"], action_size=2)
    assert settings(carried) == {"target_entropy": pytest.approx(start - log(4))}


def test_a_part_may_be_one_string_and_an_empty_setting_is_the_default() -> None:
    carried = transfer_entry("A:\n  learning_starts:\n", "A", "sac", "16ms", "8ms", "tuned", "warm-up")
    assert carried.changed == {"learning_starts": 200}
    carried = transfer_entry("A:\n  train_freq:\n", "A", "sac", "16ms", "8ms", "tuned", "updates-per-second")
    assert carried.changed == {"train_freq": 2}


def test_the_same_time_written_in_two_ways_is_no_change() -> None:
    carried = transfer_entry(SAC_FILE, "Pendulum-v1", "sac", "20ms", 0.02)
    assert (carried.text, carried.notes) == (SAC_FILE, ())


@pytest.mark.parametrize(
    ("file", "env_id", "algorithm", "also", "says"),
    [
        (SAC_FILE, "Other-v0", "sac", [], "gamma is 'lin_0.9': it must be a number above 0 and at most 1"),
        (SAC_FILE, "Pendulum-v1", "sac", ["updates-per-second"], "train_freq is [1, 'episode']: only a number"),
        (
            SAC_FILE,
            "Pendulum",
            "sac",
            [],
            "There is no environment 'Pendulum' in the file; the closest are Pendulum-v1",
        ),
        ("A:\n  n_envs: many\n", "A", "ppo", [], "A: n_envs is 'many': it must be a whole number"),
        ("A:\n  n_envs: .inf\n", "A", "ppo", [], "A: n_envs is inf: it must be a whole number"),
        ("A:\n  n_envs: .nan\n", "A", "sac", [], "A: n_envs is nan: it must be a whole number"),
        ("A:\n  n_envs: 0\n", "A", "sac", [], "A: n_envs is 0: it must be a whole number"),
        ("A:\n  train_freq: 0\n", "A", "sac", ["updates-per-second"], "train_freq is 0: it must be a whole number"),
        (
            SAC_FILE,
            "Pendulum-v1",
            "sac",
            ["exploration-noise"],
            "exploration-noise is not a single number in this entry",
        ),
        (
            "A:\n  n_timesteps: 1e6\n",
            "A",
            "ppo",
            [],
            "n_timesteps is '1e6': it must be a whole number of at least 1; YAML reads a number from !!float 1e6",
        ),
        ("A: {}\n", "A", "dqn", [], "'dqn' is not an algorithm with a rule: give one of ppo, sac, a2c"),
        ("A: {}\n", "A", "td4", [], "td3, ddpg; did you mean td3?"),
        ("A: [", "A", "ppo", [], "Line 1 is not valid YAML"),
    ],
)
def test_what_cannot_be_carried_is_refused(file: str, env_id: str, algorithm: str, also: list[str], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        transfer_entry(file, env_id, algorithm, "16ms", "4ms", also=also)
    assert says in str(refusal.value)
