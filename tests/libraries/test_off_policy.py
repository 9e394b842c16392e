"""SAC in other libraries' words: written-out expectations, the traps, round trips, the libraries' own defaults."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.libraries import LIBRARIES
from cycletime.libraries.off_policy import OffPolicyTable
from cycletime.rules import SAC

SAC_LIBRARIES = [name for name, library in LIBRARIES.items() if "sac" in library]
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


def test_parts_of_sac_that_are_not_given_start_from_the_library_s_defaults() -> None:
    after = SAC.from_("sb3", dt="16ms", gamma=0.9).at("32ms", also=["warm-up"])
    assert after.warmup_steps == 50
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
    words = LIBRARIES[library]["sac"]
    assert isinstance(words, OffPolicyTable)
    understood = SAC.from_(library, dt="16ms", n_envs=1, **words.defaults)
    unstated = SAC.from_(library, dt="16ms", n_envs=1)
    assert unstated.stated().keys() == {"discount"}
    rates = {"learning_rate"}  # which have a table and tests of their own
    assert {name: value for name, value in unstated.defaults.items() if name not in rates} == understood.stated()


@pytest.mark.parametrize(
    ("library", "wrong"),
    [
        ("sb3", {"train_freq": 0}),
        ("sb3", {"train_freq": (1, "episodes")}),
        ("sb3", {"gradient_steps": float("nan")}),
        ("authors", {"update_period": 0}),
        ("rllib", {"training_intensity": 0}),
        ("rllib", {"training_intensity": 1, "train_batch_size_per_learner": -1}),
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
def test_very_few_updates_are_exported_as_they_are(library: str) -> None:
    few = SAC(dt="1s", updates_per_step=1).at("0.1ms", also=["updates-per-second"])
    exported = few.to(library)
    assert not any("cannot express" in note for note in exported.notes)
    assert SAC.from_(library, dt="0.1ms", **exported).updates_per_step == pytest.approx(1e-4)
