"""Other libraries' words: written-out expectations, the traps, round trips, and what cannot be expressed."""

from fractions import Fraction
from math import ceil, isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.rules import PPO, SAC
from cycletime.rules.libraries import LIBRARIES

PPO_LIBRARIES = [name for name, library in LIBRARIES.items() if library.ppo]
SAC_LIBRARIES = [name for name, library in LIBRARIES.items() if library.sac]
BASELINE = PPO(dt="16ms")
FULL_SAC = SAC(
    dt="16ms",
    discount=0.97,
    minibatch=128,
    replay_capacity=400_000,
    warmup_steps=8_000,
    target_smoothing=0.01,
    updates_per_step=1,
    target_entropy=-3.0,
    action_size=2,
)


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("stable-baselines3", {"n_steps": 500, "batch_size": 50, "gamma": 0.99, "gae_lambda": 0.95}),
        ("sbx", {"n_steps": 500, "batch_size": 50, "gamma": 0.99, "gae_lambda": 0.95}),
        (
            "cleanrl",
            {"num_envs": 4, "num_steps": 500, "num_minibatches": 40, "gamma": 0.99, "gae_lambda": 0.95},
        ),
        (
            "rejax",
            {"num_envs": 4, "num_steps": 500, "num_minibatches": 40, "gamma": 0.99, "gae_lambda": 0.95},
        ),
        (
            "brax",
            {
                "num_envs": 4,
                "unroll_length": 50,
                "batch_size": 1,
                "num_minibatches": 40,
                "discounting": 0.99,
                "gae_lambda": 0.95,
            },
        ),
        (
            "rsl-rl",
            {
                "num_steps_per_env": 500,
                "algorithm.num_mini_batches": 40,
                "algorithm.gamma": 0.99,
                "algorithm.lam": 0.95,
            },
        ),
        ("skrl", {"rollouts": 500, "mini_batches": 40, "discount_factor": 0.99, "gae_lambda": 0.95}),
        (
            "torchrl",
            {
                "env.num_envs": 4,
                "collector.frames_per_batch": 2000,
                "loss.mini_batch_size": 50,
                "loss.gamma": 0.99,
                "loss.gae_lambda": 0.95,
            },
        ),
        (
            "rllib",
            {"train_batch_size_per_learner": 2000, "minibatch_size": 50, "gamma": 0.99, "lambda_": 0.95},
        ),
        (
            "tianshou",
            {
                "collection_step_num_env_steps": 2000,
                "batch_size": 50,
                "buffer_size": 2000,
                "gamma": 0.99,
                "gae_lambda": 0.95,
            },
        ),
        ("rl-games", {"num_actors": 4, "horizon_length": 500, "minibatch_size": 50, "gamma": 0.99, "tau": 0.95}),
        ("authors", {"bs": 2000, "mbs": 50, "g": 0.99, "lm": 0.95}),
    ],
)
def test_the_paper_s_baseline_with_four_environments(library: str, expected: dict[str, float]) -> None:
    exported = BASELINE.to(library, n_envs=4)
    assert dict(exported) == expected
    assert exported.exact


def test_pufferlib_takes_whole_horizons_into_a_minibatch() -> None:
    exported = PPO(dt="16ms", batch=64 * 4096, minibatch=8192).to("pufferlib", n_envs=4096)
    assert (exported["train.horizon"], exported["train.minibatch_size"], exported.exact) == (64, 8192, True)
    exported = BASELINE.to("pufferlib", n_envs=10)
    assert (exported["train.horizon"], exported["train.minibatch_size"]) == (200, 200)
    assert "pufferlib cannot express minibatch 50 with 10 environments: the nearest is 200." in exported.notes


@pytest.mark.parametrize("library", ["cleanrl", "purejaxrl", "rejax", "stoix", "brax", "rsl-rl", "skrl"])
@pytest.mark.parametrize(("dt", "factor"), [("4ms", 4), ("8ms", 2), ("32ms", Fraction(1, 2))])
def test_a_library_that_counts_minibatches_changes_only_the_rollout(library: str, dt: str, factor: Fraction) -> None:
    before, after = BASELINE.to(library, n_envs=2), BASELINE.at(dt, rule="constant").to(library, n_envs=2)
    (changed,) = [name for name in before if before[name] != after[name]]
    assert after[changed] == before[changed] * factor
    assert "minibatch" not in changed


def test_the_count_is_kept_where_the_rounded_sizes_would_give_another() -> None:
    carried = BASELINE.at("64ms")  # b 500, m 12: 41.7 mini-batches, and 40 before
    assert carried.to("skrl")["mini_batches"] == 40
    assert PPO(dt="64ms", batch=500, minibatch=12).to("skrl")["mini_batches"] == 42


def test_a_count_survives_a_batch_that_it_does_not_divide() -> None:
    read = PPO.from_("skrl", dt="16ms", n_envs=10, rollouts=10, mini_batches=40, discount_factor=0.9, gae_lambda=0.9)
    assert (read.batch, read.minibatch) == (100, 2)
    assert read.at("8ms").to("skrl", n_envs=10)["mini_batches"] == 40
    assert read.at("8ms").to("skrl", n_envs=10)["rollouts"] == 20


def test_what_a_library_does_with_left_over_samples_is_noted() -> None:
    carried = BASELINE.at("64ms")
    assert "slices of 12: that makes 42, not 40" in carried.to("cleanrl").notes[0]
    assert "40 mini-batches of 12 and drops the last 20 samples" in carried.to("rsl-rl").notes[0]
    assert "rejax cannot express batch 500: the nearest is 480." in carried.to("rejax").notes


def test_brax_keeps_its_trajectories_where_told() -> None:
    playground = {"num_envs": 2048, "unroll_length": 20, "batch_size": 1024, "num_minibatches": 32}
    values = PPO.from_("mujoco-playground", dt="20ms", discounting=0.97, gae_lambda=0.95, **playground)
    assert (values.batch, values.minibatch) == (20 * 1024 * 32, 20 * 1024)
    carried = values.at("10ms").to("mujoco-playground", n_envs=2048, batch_size=1024)
    assert dict(carried) == {**playground, "unroll_length": 40, "discounting": 0.97, "gae_lambda": 0.95}
    with pytest.raises(InputError, match=r"batch_size is 1000: .* must be a multiple of num_envs, 2048"):
        values.to("brax", n_envs=2048, batch_size=1000)


def test_stable_baselines3_refuses_a_minibatch_of_one_so_two_are_exported() -> None:
    exported = PPO(dt="16ms", batch=8, minibatch=1).to("sb3")
    assert exported["batch_size"] == 2
    assert exported.notes == ("stable-baselines3 cannot express minibatch 1: the nearest is 2.",)


def test_an_environment_count_that_does_not_divide_the_batch_is_noted() -> None:
    exported = BASELINE.to("stable-baselines3", n_envs=3)
    assert exported["n_steps"] == 667
    assert exported.notes == ("stable-baselines3 cannot express batch 2000 with 3 environments: the nearest is 2001.",)


@pytest.mark.parametrize("library", PPO_LIBRARIES)
@given(
    n_envs=st.sampled_from([1, 2, 4, 8, 3]),
    minibatch=st.integers(2, 400),
    count=st.integers(1, 64),
    discount=st.floats(0.1, 1),
    trace_decay=st.floats(0, 1),
)
def test_ppo_survives_the_round_trip_through_every_library_that_can_express_it(
    library: str, n_envs: int, minibatch: int, count: int, discount: float, trace_decay: float
) -> None:
    if library == "pufferlib":  # whole horizons only
        minibatch, count = minibatch * ceil(n_envs / count), min(count, n_envs)
        count = next(c for c in range(count, 0, -1) if n_envs % c == 0)
        minibatch = minibatch * n_envs
    ppo = PPO(
        dt="16ms",
        batch=minibatch * count * n_envs,
        minibatch=minibatch * n_envs,
        discount=discount,
        trace_decay=trace_decay,
    )
    exported = ppo.to(library, n_envs=n_envs)
    assert exported.exact, exported.notes
    assert PPO.from_(library, dt="16ms", n_envs=n_envs, **exported) == ppo
    assert PPO.from_(library, dt="16ms", n_envs=n_envs, **exported.nested()) == ppo


@pytest.mark.parametrize("library", PPO_LIBRARIES)
@given(n_envs=st.integers(1, 300), batch=st.integers(1, 20_000), minibatch=st.integers(1, 2_000))
def test_what_a_library_cannot_express_is_always_said(library: str, n_envs: int, batch: int, minibatch: int) -> None:
    ppo = PPO(dt="16ms", batch=batch, minibatch=min(batch, minibatch))
    exported = ppo.to(library, n_envs=n_envs)
    understood = PPO.from_(library, dt="16ms", n_envs=n_envs, **exported)
    assert exported.exact == (understood == ppo)
    for name in ("batch", "minibatch"):
        if getattr(understood, name) != getattr(ppo, name):
            said = f"cannot express {name} {getattr(ppo, name):g}"
            assert any(said in note and note.endswith(f"is {getattr(understood, name):g}.") for note in exported.notes)


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        (
            "stable-baselines3",
            {
                "gamma": 0.97,
                "tau": 0.01,
                "buffer_size": 400_000,
                "batch_size": 128,
                "learning_starts": 8_000,
                "target_entropy": -3.0,
                "gradient_steps": 4,
                "train_freq": 1,
            },
        ),
        (
            "rejax",
            {
                "num_envs": 4,
                "gamma": 0.97,
                "polyak": 0.99**4,  # the targets move once for the four updates of a step
                "buffer_size": 400_000,
                "batch_size": 128,
                "fill_buffer": 8_000,
                "num_epochs": 4,
            },
        ),
        (
            "skrl",
            {
                "discount_factor": 0.97,
                "polyak": 0.01,
                "memory_size": 100_000,
                "batch_size": 128,
                "random_timesteps": 2_000,
                "learning_starts": 2_000,
                "target_entropy": -3.0,
                "gradient_steps": 4,
            },
        ),
        (
            "torchrl",
            {
                "optim.gamma": 0.97,
                "optim.target_update_polyak": 0.99,
                "replay_buffer.size": 400_000,
                "optim.batch_size": 128,
                "collector.init_random_frames": 8_000,
                "optim.utd_ratio": 1.0,
            },
        ),
        (
            "tianshou",
            {
                "gamma": 0.97,
                "tau": 0.01,
                "buffer_size": 400_000,
                "batch_size": 128,
                "start_timesteps": 8_000,
                "target_entropy_coefficient": -1.5,
                "update_step_num_gradient_steps_per_sample": 1.0,
                "collection_step_num_env_steps": 4,
            },
        ),
        (
            "rllib",
            {
                "gamma": 0.97,
                "tau": 0.01,
                "replay_buffer_config.capacity": 400_000,
                "train_batch_size_per_learner": 128,
                "num_steps_sampled_before_learning_starts": 8_000,
                "target_entropy": -3.0,
                "training_intensity": 128.0,
            },
        ),
        (
            "brax",
            {
                "num_envs": 4,
                "discounting": 0.97,
                "tau": 0.01,
                "max_replay_size": 400_000,
                "batch_size": 128,
                "min_replay_size": 8_000,
                "grad_updates_per_step": 4,
            },
        ),
        (
            "cleanrl",
            {
                "num_envs": 4,
                "gamma": 0.97,
                "tau": 0.01,
                "buffer_size": 400_000,
                "batch_size": 128,
                "learning_starts": 2_000,
            },
        ),
        ("authors", {"gamma": 0.97, "tau": 0.01, "batch_size": 128, "update_period": 1.0}),
    ],
)
def test_sac_with_four_environments(library: str, expected: dict[str, float]) -> None:
    exported = FULL_SAC.to(library, n_envs=4)
    assert dict(exported) == expected
    lost = {"cleanrl": 2, "rejax": 1, "brax": 1, "torchrl": 1, "authors": 3}.get(library, 0)
    assert len(exported.notes) == lost
    assert exported.exact == (lost == 0)


def test_polyak_is_tau_in_skrl_and_its_complement_in_rejax_and_torchrl() -> None:
    sac = SAC(dt="16ms", target_smoothing=0.005)
    assert sac.to("skrl")["polyak"] == 0.005
    assert sac.to("rejax")["polyak"] == 0.995
    assert sac.to("torchrl")["optim.target_update_polyak"] == 0.995
    assert isclose(SAC.from_("rejax", dt="16ms", polyak=0.99).target_smoothing or 0, 0.01)
    assert SAC.from_("skrl", dt="16ms", polyak=0.99).target_smoothing == 0.99


@pytest.mark.parametrize(
    ("updates_per_step", "n_envs", "gradient_steps", "train_freq"),
    [(1, 1, 1, 1), (0.25, 1, 1, 4), (4, 1, 4, 1), (1 / 3, 4, 4, 3)],
)
def test_updates_per_transition_in_stable_baselines3(
    updates_per_step: float, n_envs: int, gradient_steps: int, train_freq: int
) -> None:
    exported = SAC(dt="16ms", updates_per_step=updates_per_step).to("sb3", n_envs=n_envs)
    assert (exported["gradient_steps"], exported["train_freq"]) == (gradient_steps, train_freq)


def test_as_many_updates_as_transitions_in_stable_baselines3() -> None:
    assert SAC.from_("sb3", dt="16ms", n_envs=4, gradient_steps=-1, train_freq=8).updates_per_step == 1


@pytest.mark.parametrize(("asked", "n_envs", "made"), [(1.3, 1, 1), (1.3, 4, 1.25), (0.4, 1, 0.5), (0.25, 1, 0.25)])
def test_rllib_makes_whole_rounds_of_updates(asked: float, n_envs: int, made: float) -> None:
    exported = SAC(dt="16ms", updates_per_step=asked, minibatch=256).to("rllib", n_envs=n_envs)
    assert exported["training_intensity"] == made * 256
    assert exported.exact == (asked == made)


def test_a_ratio_that_only_whole_updates_cannot_reach_is_noted() -> None:
    exported = SAC(dt="16ms", updates_per_step=0.25).to("rejax")
    assert exported["num_epochs"] == 1
    assert exported.notes == ("rejax cannot express updates_per_step 0.25: the nearest is 1.",)


@pytest.mark.parametrize("library", SAC_LIBRARIES)
@given(
    discount=st.floats(0.1, 1),
    tau=st.floats(1e-4, 0.5),
    thousands=st.integers(1, 1000),
    n_envs=st.sampled_from([1, 2, 5]),
    updates=st.integers(1, 8),
)
def test_sac_survives_the_round_trip_through_every_library_that_can_express_it(
    library: str, discount: float, tau: float, thousands: int, n_envs: int, updates: int
) -> None:
    sac = SAC(
        dt="16ms",
        discount=discount,
        target_smoothing=tau,
        replay_capacity=thousands * 1000,
        warmup_steps=thousands * 10,
        updates_per_step=updates,
        minibatch=256,
        target_entropy=-2.5,
        action_size=3,
    )
    exported = sac.to(library, n_envs=n_envs)
    understood = SAC.from_(library, dt="16ms", n_envs=n_envs, action_size=3, **exported)
    for name, value in understood.stated().items():
        assert isclose(value, sac.stated()[name], rel_tol=1e-9), name
    lost = sac.stated().keys() - understood.stated().keys()
    assert all(any(f"no setting for {name}" in note for note in exported.notes) for name in lost)
    assert exported.exact == (not lost)


@pytest.mark.parametrize("library", SAC_LIBRARIES)
def test_what_was_not_stated_is_not_exported(library: str) -> None:
    exported = SAC(dt="16ms", discount=0.9).to(library)
    assert [value for name, value in exported.items() if "envs" not in name] == [0.9]


@pytest.mark.parametrize(
    ("library", "batch", "minibatch", "discount", "trace_decay"),
    [
        ("sb3", 2048, 64, 0.99, 0.95),
        ("rejax", 64 * 64, 64 * 64 // 16, 0.99, 0.95),
        ("brax", 32 * 16 * 10, 32 * 10, 0.9, 0.95),
        ("rllib", 4000, 128, 0.99, 1.0),
    ],
)
def test_values_that_are_not_given_are_the_library_s_defaults(
    library: str, batch: int, minibatch: int, discount: float, trace_decay: float
) -> None:
    defaults = PPO(dt="16ms", batch=batch, minibatch=minibatch, discount=discount, trace_decay=trace_decay)
    assert PPO.from_(library, dt="16ms") == defaults


def test_a_value_without_a_default_must_be_given() -> None:
    with pytest.raises(InputError, match="num_steps_per_env was not given, and rsl-rl has no default"):
        PPO.from_("rsl_rl", dt="20ms")


def test_parts_of_sac_that_are_not_given_start_from_the_library_s_defaults() -> None:
    after = SAC.from_("sb3", dt="16ms", gamma=0.9).at("4ms", also=["warm-up"])
    assert after.warmup_steps == 400
    assert after.notes == ("warmup_steps was not given: the library's 100 is used.",)
    assert "buffer_size" not in after.to("sb3"), "what nobody stated is not exported"
    assert SAC.from_("sb3", dt="16ms", learning_starts=7).at("8ms", also="warm-up").warmup_steps == 14
    assert SAC.from_("stoix", dt="16ms", n_envs=8).at("16ms", also="warm-up").warmup_steps == 16 * 8
    assert SAC.from_("stoix", dt="16ms", n_envs=8).at("16ms", also="updates-per-second").updates_per_step == 1 / 8
    assert SAC.from_("skrl", dt="16ms").at("4ms", also="warm-up").warmup_steps == 0
    assert SAC.from_("skrl", dt="16ms", learning_starts=5).at("8ms", also="warm-up").warmup_steps == 10
    rejax = SAC.from_("rejax", dt="16ms", num_epochs=2).at("16ms", also="target-smoothing")
    assert isclose(rejax.target_smoothing or 0, 1 - 0.99**0.5)


@pytest.mark.parametrize("library", SAC_LIBRARIES)
def test_every_default_of_sac_is_understood(library: str) -> None:
    words = LIBRARIES[library].sac
    assert words is not None
    understood = SAC.from_(library, dt="16ms", n_envs=1, **words.defaults)
    unstated = SAC.from_(library, dt="16ms", n_envs=1)
    assert unstated.stated().keys() == {"discount"}
    assert unstated.defaults == understood.stated()


@pytest.mark.parametrize(
    ("library", "wrong"),
    [
        ("sb3", {"train_freq": 0}),
        ("sb3", {"gradient_steps": float("nan")}),
        ("authors", {"update_period": 0}),
        ("rllib", {"training_intensity": 0}),
        ("rllib", {"training_intensity": 1, "train_batch_size_per_learner": -1}),
        ("rejax", {"num_epochs": "x", "polyak": 0.99}),
        ("rejax", {"num_epochs": 0, "polyak": 0.99}),
        ("rejax", {"polyak": -0.5}),
        ("tianshou", {"update_step_num_gradient_steps_per_sample": float("inf")}),
    ],
)
def test_wrong_values_of_sac_are_refused_by_name(library: str, wrong: dict[str, object]) -> None:
    with pytest.raises(InputError) as refusal:
        SAC.from_(library, dt="16ms", **wrong)  # type: ignore[arg-type]
    assert any(f"{name} is {value!r}: " in str(refusal.value) for name, value in wrong.items())


@pytest.mark.parametrize("library", ["rllib", "authors", "sb3", "torchrl", "tianshou", "stoix"])
def test_very_few_updates_are_exported_as_the_fewest_that_can_be_said(library: str) -> None:
    few = SAC(dt="1s", updates_per_step=1).at("0.1ms", also=["updates-per-second"])
    exported = few.to(library)
    assert any("cannot express updates_per_step 0.0001: the nearest is 0.001" in note for note in exported.notes)


@pytest.mark.parametrize("library", ["torchrl", "rl-games"])
def test_the_nearest_changes_the_minibatch_where_the_batch_would_change_more(library: str) -> None:
    understood = PPO.from_(library, dt="16ms", **PPO(dt="16ms", batch=1000, minibatch=25).to(library, n_envs=64))
    assert (understood.batch, understood.minibatch) == (960, 24)


@pytest.mark.parametrize(
    ("batch", "count", "n_envs", "rollout", "nearest_count"),
    [
        (500, 40, 1, 480, 40),
        (1000, 40, 64, 15, 40),
        (1000, 40, 512, 2, 32),
        (1000, 40, 25, 40, 40),
        (2100, 40, 1, 2080, 40),
    ],
)
def test_the_count_changes_only_where_the_batch_would_change_much(
    batch: int, count: int, n_envs: int, rollout: int, nearest_count: int
) -> None:
    ppo = PPO(dt="16ms", batch=batch, minibatch=batch // count, minibatch_count=count)
    exported = ppo.to("rejax", n_envs=n_envs)
    assert (exported["num_steps"], exported["num_minibatches"]) == (rollout, nearest_count)


def test_nested_settings_are_understood() -> None:
    values = PPO.from_("isaac_lab", dt="20ms", n_envs=4096, num_steps_per_env=24, algorithm={"lam": 0.9})
    assert (values.batch, values.minibatch, values.trace_decay) == (24 * 4096, 24 * 1024, 0.9)
    assert values.at("10ms").to("isaac-lab", n_envs=4096).nested() == {
        "num_steps_per_env": 48,
        "algorithm": {"num_mini_batches": 4, "gamma": 0.99, "lam": 0.9},
    }


@pytest.mark.parametrize(
    ("library", "wrong", "says"),
    [
        ("keras", {}, "Unknown library 'keras': choose one of stable-baselines3"),
        ("sb3", {"gama": 0.9}, "gama: no name that depends on the cycle time in stable-baselines3; those are gamma,"),
        ("sb3", {"n_steps": 0}, "stable-baselines3's n_steps is 0: it must be a whole number of at least 1"),
        ("sb3", {"n_steps": 2.5}, "stable-baselines3's n_steps is 2.5"),
        ("sb3", {"gamma": "lin_0.9"}, "stable-baselines3's gamma is 'lin_0.9': only a number can be carried"),
        ("sb3", {"n_envs": 0}, "n_envs is 0: it must be a whole number of at least 1"),
        ("rejax", {"n_envs": 2, "num_envs": 3}, "n_envs is 2 and rejax's num_envs is 3: give one of them"),
        ("skrl", {"mini_batches": 99}, "skrl's mini_batches is 99: it must be at most the batch, 16"),
        ("sb3", {"batch_size": 4096}, "minibatch is 4096: it must be at most the batch, 2048"),
        ("lerobot", {}, "lerobot has no PPO: choose one of stable-baselines3"),
    ],
)
def test_wrong_values_of_a_library_are_refused(library: str, wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        PPO.from_(library, dt="16ms", **wrong)  # type: ignore[arg-type]
    assert says in str(refusal.value)


def test_wrong_exports_are_refused() -> None:
    with pytest.raises(InputError, match="rsl-rl has no SAC"):
        FULL_SAC.to("rsl-rl")
    with pytest.raises(InputError, match="n_envs is -1"):
        BASELINE.to("sb3", n_envs=-1)
    with pytest.raises(InputError, match=r"brax's batch_size is 2.5: it must be a whole number of at least 1"):
        BASELINE.to("brax", batch_size=2.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="horizon cannot be fixed: only brax"):
        BASELINE.to("sb3", horizon=3)
    with pytest.raises(InputError, match="state action_size"):
        SAC(dt="16ms", target_entropy=-2).to("stoix")
    with pytest.raises(InputError, match="give action_size"):
        SAC.from_("tianshou", dt="16ms", target_entropy_coefficient=-1)
    with pytest.raises(InputError, match="random_timesteps 5 and learning_starts 7 differ"):
        SAC.from_("skrl", dt="16ms", random_timesteps=5, learning_starts=7)


def test_exports_are_mappings_that_can_be_passed_on() -> None:
    def constructor(**settings: float) -> dict[str, float]:
        return settings

    exported = BASELINE.to("sb3")
    assert constructor(**exported) == dict(exported) == exported.nested()
    assert len(exported) == 4
    assert exported == dict(exported)
    assert exported != {**exported, "gamma": 0.5}
    assert BASELINE.to("sb3", n_envs=np.int64(4)) == BASELINE.to("sb3", n_envs=4)  # type: ignore[arg-type]
