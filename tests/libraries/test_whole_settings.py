"""A library's whole settings: what does not depend on the cycle time comes back untouched, and the rest carried."""

from typing import Any

import pytest

from cycletime.errors import InputError
from cycletime.libraries import LibraryValues
from cycletime.libraries.parameters import plain_value
from cycletime.rules import A2C, ALGORITHMS, DDPG, PPO, SAC, TD3, TQC, Rule, laws

ARCHITECTURE = {"net_arch": {"pi": [64, 64], "vf": [64]}, "log_std_init": -2}


def schedule(progress: float) -> float:
    return progress * 3e-4


WHOLE: dict[str, Any] = {
    "learning_rate": schedule,
    "n_steps": 512,
    "batch_size": 64.0,
    "gamma": 0.98,
    "n_epochs": 20,
    "ent_coef": 0.0,
    "use_sde": True,
    "sde_sample_freq": 4,
    "policy_kwargs": ARCHITECTURE,
    "tensorboard_log": None,
}


def test_ppo_s_settings_come_back_whole_in_their_order_and_untouched() -> None:
    carried = PPO.from_("sb3", dt="40ms", n_envs=8, **WHOLE).at("10ms", "dt-aware").to("sb3")
    assert dict(carried) == {**WHOLE, "n_steps": 2048, "batch_size": 256, "gae_lambda": 0.95}
    assert [*carried][:-1] == [*WHOLE]
    assert carried["learning_rate"] is schedule
    assert carried["policy_kwargs"] is ARCHITECTURE
    assert carried.notes == ("NOT carried, set it yourself: sde_sample_freq 4 (would be 16: it counts agent steps).",)


def test_at_the_same_cycle_time_everything_comes_back_as_it_was_said() -> None:
    values = PPO.from_("sb3", dt="40ms", n_envs=8, **WHOLE)
    same = {**WHOLE, "gae_lambda": 0.95}
    for unchanged in (values, values.at("40ms"), values.at("10ms", "scaled").at("40ms")):
        exported = unchanged.to("sb3")
        assert dict(exported) == {**same, "gamma": pytest.approx(0.98), "gae_lambda": pytest.approx(0.95)}
        assert type(exported["batch_size"]) is float
        assert exported.notes == ()


def test_the_number_of_environments_is_remembered_unless_another_is_given() -> None:
    carried = PPO.from_("sb3", dt="40ms", n_envs=8, n_steps=100).at("20ms")
    assert carried.to("sb3")["n_steps"] == 200
    assert carried.to("sb3", n_envs=16)["n_steps"] == 100
    assert carried.to("cleanrl")["num_steps"] == 1600, "another library has one unless told"


def test_another_library_is_given_its_own_words_alone() -> None:
    carried = PPO.from_("sb3", dt="40ms", n_envs=8, **WHOLE).at("10ms")
    assert {*carried.to("cleanrl")} == {"num_envs", "num_steps", "num_minibatches", "gamma", "gae_lambda"}


@pytest.mark.parametrize("slip", ["gama", "gammma", "gmama", "n_step", "nsteps", "batch-size", "Gamma", "gae_lambada"])
def test_a_slip_of_the_keyboard_is_refused(slip: str) -> None:
    with pytest.raises(
        InputError, match=rf"^\S+ has no setting '{slip}' that depends on .* did you mean (gamma|n_steps|batch_s|gae)"
    ):
        PPO.from_("sb3", dt="40ms", **{slip: 1})


@pytest.mark.parametrize("slip", ["n_env", "num_env", "num_envs"])
def test_the_number_of_environments_by_another_name_is_refused(slip: str) -> None:
    with pytest.raises(InputError, match=f"^{slip}=8 is no setting: give --num-envs 8, in Python n_envs=8"):
        PPO.from_("sb3", dt="40ms", **{slip: 8})


def test_a_name_without_its_section_is_refused_and_not_replaced_by_a_default() -> None:
    with pytest.raises(InputError, match=r"^lerobot has no setting 'discount' .* did you mean algorithm\.discount\?$"):
        SAC.from_("lerobot", dt="100ms", discount=0.97)
    named: dict[str, Any] = {"algorithm.discount": 0.97}
    assert SAC.from_("lerobot", dt="100ms", **named).discount == 0.97


def test_what_other_libraries_call_the_discount_is_refused_and_not_replaced_by_a_default() -> None:
    with pytest.raises(InputError, match=r"^brax has no setting 'gamma' .* did you mean discounting\?$"):
        PPO.from_("brax", dt="20ms", gamma=0.97)
    with pytest.raises(InputError, match=r"^rl-games has no setting 'discount' .* did you mean gamma\?$"):
        PPO.from_("rl-games", dt="20ms", horizon_length=16, minibatch_size=64, num_actors=8, tau=0.95, discount=0.97)


ALL_OF_SB3 = {
    *("learning_rate", "n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range", "clip_range_vf"),
    *("normalize_advantage", "ent_coef", "vf_coef", "max_grad_norm", "use_sde", "sde_sample_freq", "target_kl"),
    *("rollout_buffer_class", "rollout_buffer_kwargs", "stats_window_size", "tensorboard_log", "policy_kwargs"),
    *("verbose", "seed", "device", "_init_setup_model", "rms_prop_eps", "use_rms_prop", "buffer_size", "tau"),
    *("learning_starts", "train_freq", "gradient_steps", "action_noise", "replay_buffer_class", "policy_delay"),
    *("replay_buffer_kwargs", "optimize_memory_usage", "target_policy_noise", "target_noise_clip"),
    *("target_update_interval", "target_entropy", "use_sde_at_warmup", "top_quantiles_to_drop_per_net"),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_name_of_stable_baselines3_is_taken_for_a_slip(algorithm: str) -> None:
    kind = ALGORITHMS[algorithm]
    values = kind.from_("sb3", dt="40ms", **dict.fromkeys(ALL_OF_SB3))
    assert {*values.at("20ms").to("sb3")} >= ALL_OF_SB3


def test_a_mini_batch_greater_than_the_batch_is_the_whole_batch_as_stable_baselines3_takes_it() -> None:
    values = PPO.from_("sb3", dt="40ms", n_envs=2, n_steps=64, batch_size=256)
    assert (values.batch, values.minibatch) == (128, 128)
    assert values.to("sb3")["batch_size"] == 256
    carried = values.at("20ms")
    assert "batch_size 256 is more than the batch, 128: stable-baselines3 then takes the whole batch at once." in (
        carried.notes
    )
    assert (carried.to("sb3")["n_steps"], carried.to("sb3")["batch_size"]) == (128, 256)


@pytest.mark.parametrize("gradient_steps", [-1, 100])
def test_updates_once_per_episode_are_left_alone_by_a_rule_with_a_note(gradient_steps: int) -> None:
    said: dict[str, Any] = {"train_freq": (1, "episode"), "gradient_steps": gradient_steps}
    values = SAC.from_("sb3", dt="16ms", gamma=0.98, **said)
    longer, shorter = values.at("64ms", "horizons"), values.at("4ms", "horizons")
    assert longer.notes == (
        "stable-baselines3's train_freq is (1, 'episode'), no number of steps: the updates are left alone.",
    )
    assert shorter.notes == ()
    for carried in (longer, shorter):
        assert dict(carried.to("sb3")) == {**said, "gamma": carried.discount}
    with pytest.raises(InputError, match=r"train_freq is \(1, 'episode'\): only a number can be carried"):
        values.at("8ms", also="updates-per-second")


def test_a_period_that_was_carried_with_its_updates_was_not_left_alone() -> None:
    carried = SAC.from_("sb3", dt="16ms", gamma=0.98, train_freq=8, gradient_steps=8, learning_starts=100)
    carried = carried.at("64ms", "horizons")
    exported = carried.to("sb3")
    assert (exported["train_freq"], exported["gradient_steps"]) == (8, 32)
    assert exported.notes == (
        "NOT carried, set it yourself: learning_starts 100 (would be 25: it counts agent steps).",
    )


def test_one_step_and_updates_are_kept_and_the_rhythm_of_updates_is_not_left_to_the_user() -> None:
    counts = {"n_steps": 1, "target_update_interval": 2, "train_freq": 8, "gradient_steps": 8}
    exported = SAC.from_("sb3", dt="40ms", **counts).at("80ms").to("sb3")
    assert dict(exported) == {**counts, "gamma": 0.99}
    assert exported.notes == ("Kept: n_steps 1 (a single step); target_update_interval 2 (it counts updates).",)


def test_a_schedule_that_a_rule_of_one_s_own_would_carry_is_refused() -> None:
    values = SAC.from_("sb3", dt="16ms", gamma=0.98, learning_rate="lin_3e-4")
    with pytest.raises(InputError, match="only a number can be carried"):
        values.at("64ms", Rule("mine", {"learning_rate": laws.ROOT}))


@pytest.mark.parametrize("kind", [SAC, TQC, TD3, DDPG])
def test_off_policy_settings_come_back_with_the_discount_alone_carried(kind: type[SAC]) -> None:
    said: dict[str, Any] = {
        "gamma": 0.98,
        "tau": 0.01,
        "buffer_size": 300_000,
        "train_freq": (1, "episode"),
        "gradient_steps": 8,
    }
    carried = kind.from_("sb3", dt="50ms", **said).at("100ms", "scaled").to("sb3")
    assert dict(carried) == {**said, "gamma": pytest.approx(0.98**2)}
    assert carried.notes == (
        "NOT carried, set it yourself: buffer_size 300000 (would be 150000: it counts agent steps).",
    )


def test_what_is_no_number_is_refused_only_where_it_is_to_be_carried() -> None:
    values = SAC.from_("sb3", dt="50ms", gamma=0.98, train_freq=(1, "episode"), learning_starts="many")
    assert values.at("100ms", also="target-smoothing").target_smoothing == pytest.approx(1 - 0.995**2)
    with pytest.raises(InputError, match=r"stable-baselines3's train_freq is \(1, 'episode'\): only a number"):
        values.at("100ms", also="updates-per-second")
    with pytest.raises(InputError, match="stable-baselines3's learning_starts is 'many': only a number"):
        values.at("100ms", also="warm-up")


@pytest.mark.parametrize(
    ("said", "carried"),
    [
        ({"train_freq": (4, "step"), "gradient_steps": 4}, {"train_freq": 4, "gradient_steps": 2}),
        ({"train_freq": 8, "gradient_steps": -1}, {"train_freq": 8, "gradient_steps": 4}),
        ({"target_entropy": "auto"}, {"target_entropy": "auto", "train_freq": 2, "gradient_steps": 1}),
    ],
)
def test_updates_per_second_of_every_way_to_say_them(said: dict[str, Any], carried: dict[str, Any]) -> None:
    values = SAC.from_("sb3", dt="20ms", gamma=0.98, **said).at("10ms", "tuned", also="updates-per-second")
    assert values.updates_per_step == 0.5
    assert dict(values.to("sb3")) == {"gamma": 0.98, **carried}


def test_a2c_has_no_mini_batch() -> None:
    carried = A2C.from_("sb3", dt="40ms", n_envs=16, n_steps=8, use_rms_prop=False).at("10ms").to("sb3")
    assert dict(carried) == {"n_steps": 32, "use_rms_prop": False, "gamma": 0.99, "gae_lambda": 1.0}
    with pytest.raises(InputError, match=r"sbx has no A2C that is known here: choose one of stable-baselines3\.$"):
        A2C.from_("sbx", dt="40ms")


PLAYGROUND = {"num_envs": 2048, "unroll_length": 30, "batch_size": 1024, "num_minibatches": 32}


@pytest.mark.parametrize("library", ["playground", "brax"])
def test_a_playground_layout_survives_the_way_to_another_cycle_time_and_back(library: str) -> None:
    def say(values: PPO) -> LibraryValues:
        return values.to(library)

    tuned = PPO.from_(library, dt="20ms", discounting=0.97, **PLAYGROUND)
    there = say(tuned.at("10ms"))
    assert {name: there[name] for name in PLAYGROUND} == {**PLAYGROUND, "unroll_length": 60}
    back = say(PPO.from_(library, dt="10ms", **there).at("20ms"))
    assert {name: back[name] for name in PLAYGROUND} == PLAYGROUND
    assert say(tuned.at("10ms").at("20ms"))["unroll_length"] == 30
    fewer = tuned.at("10ms").to(library, n_envs=1536)  # no multiple of which has 1024 * 32 trajectories
    assert (fewer["num_envs"], fewer["batch_size"]) == (1536, 48)


def test_lerobot_s_warm_up_is_100_transitions_unless_it_says_otherwise() -> None:
    carried = SAC.from_("lerobot", dt="20ms").at("10ms", also="warm-up")
    assert (carried.warmup_steps, carried.to("lerobot")["policy.online_step_before_learning"]) == (200, 200)
    said = SAC.from_("lerobot", dt="20ms", policy={"online_step_before_learning": 500, "device": "cuda"})
    exported = said.at("10ms", also="warm-up").to("lerobot")
    assert exported.nested()["policy"] == {"online_step_before_learning": 1000, "device": "cuda"}


def test_noise_has_no_single_setting_and_the_note_says_where_it_goes() -> None:
    carried = TD3(dt="16ms", noise_std=0.1).at("4ms", also="exploration-noise").to("sb3")
    assert carried.notes == (
        "stable-baselines3 has no setting for noise_std (pass it as action_noise=NormalActionNoise(mean, sigma)): "
        "0.2 is not in these values.",
    )


def test_a_large_count_that_is_the_user_s_to_set_is_whole() -> None:
    carried = SAC.from_("sb3", dt="20ms", learning_starts=10_000, sde_sample_freq=10).at("30ms").to("sb3")
    assert "learning_starts 10000 (would be 6667: it counts agent steps)" in " ".join(carried.notes)
    assert "sde_sample_freq 10 (would be 6.667: it counts agent steps)" in " ".join(carried.notes)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1e6", 1_000_000), ("2.0", 2.0), ("-3", -3), ("1e-4", 1e-4), (".5", 0.5), ("none", None), ("True", True)),
        *(("[10,15.5]", [10, 15.5]), ("[]", []), ("[a, 1]", ["a", 1]), ("[[1,2],[3,4]]", "[[1,2],[3,4]]")),
        *(("lin_3e-4", "lin_3e-4"), ("", ""), ("1e", "1e")),
    ],
)
def test_a_typed_value_is_what_it_looks_like(text: str, value: object) -> None:
    read = plain_value(text)
    assert (read, type(read)) == (value, type(value))
