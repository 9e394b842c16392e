"""PPO in other libraries' words: written-out expectations, counts and sizes, round trips, the nearest values."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.libraries import LIBRARIES
from cycletime.rules import PPO

PPO_LIBRARIES = [name for name, library in LIBRARIES.items() if "ppo" in library]
BASELINE = PPO(dt="16ms")


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


def test_brax_keeps_its_trajectories() -> None:
    playground = {"num_envs": 2048, "unroll_length": 20, "batch_size": 1024, "num_minibatches": 32}
    values = PPO.from_("mujoco-playground", dt="20ms", discounting=0.97, gae_lambda=0.95, **playground)
    assert (values.batch, values.minibatch) == (20 * 1024 * 32, 20 * 1024)
    carried = values.at("10ms", "dt-aware").to("mujoco-playground", n_envs=2048)
    assert dict(carried) == {**playground, "unroll_length": 40, "discounting": 0.97, "gae_lambda": 0.95}


def test_sizes_with_which_brax_stops_at_the_start_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"multiple of num_envs 8000: brax stops at the start; batch_size 250 would fit\."
    ):
        PPO.from_("brax", dt="20ms", unroll_length=20, batch_size=256, num_minibatches=32, num_envs=8000)
    fits = PPO.from_("brax", dt="20ms", unroll_length=20, batch_size=250, num_minibatches=32, num_envs=8000)
    assert fits.batch == 250 * 32 * 20


def test_stable_baselines3_refuses_a_minibatch_of_one_so_two_are_exported() -> None:
    exported = PPO(dt="16ms", batch=8, minibatch=1).to("sb3")
    assert exported["batch_size"] == 2
    assert exported.notes == ("stable-baselines3 cannot express minibatch 1: the nearest is 2.",)


def test_an_environment_count_that_does_not_divide_the_batch_is_noted() -> None:
    exported = BASELINE.to("stable-baselines3", n_envs=3)
    assert exported["n_steps"] == 667
    assert exported.notes == (
        "stable-baselines3 cannot express batch 2000 with 3 environments: the nearest is 2001.",
        "stable-baselines3's last mini-batch of each epoch has 1 samples instead of 50; n_steps 650 would divide.",
    )


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
