"""SAC's rules: the paper's gamma_1 and gamma_2, and the further parts that keep their meaning in seconds."""

import pickle
from copy import deepcopy
from fractions import Fraction
from math import isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.rules import SAC

FULL = SAC(
    dt="16ms",
    discount=0.851,
    minibatch=256,
    replay_capacity=1_000_000,
    warmup_steps=10_000,
    target_smoothing=0.005,
    updates_per_step=1,
    noise_std=0.1,
    learning_rate=2e-4,
    target_entropy=-2,
    action_size=2,
)
dts = st.integers(1, 500).map(lambda ms: Duration(Fraction(ms, 1000)))


def test_horizons_has_a_floor_as_the_papers_tuned_discounts_have() -> None:
    """.961 .923 .851 at 4, 8 and 16 ms, and .851 at 32 and 64 ms."""
    dts, tuned = ("4ms", "8ms", "16ms", "32ms", "64ms"), (0.961, 0.923, 0.851, 0.851, 0.851)
    for dt, discount in zip(dts[:3], tuned[:3], strict=True):
        carried = [SAC(dt=dt, discount=discount).at(other, rule="horizons").discount for other in dts]
        assert carried == pytest.approx(tuned, abs=6e-3)


@pytest.mark.parametrize("scaling", ["scaled", "tuned-scaled"])
@pytest.mark.parametrize("keeping", ["baseline", "tuned"])
def test_gamma_1_scales_and_gamma_2_keeps(scaling: str, keeping: str) -> None:
    tuned = SAC(dt="16ms", discount=0.851)
    assert isclose(tuned.at("64ms", rule=scaling).discount, 0.851**4)
    assert isclose(tuned.at("4ms", rule=scaling).discount, 0.851**0.25)
    assert tuned.at("64ms", rule=keeping).discount == 0.851


def test_the_robot_s_gamma_of_the_paper() -> None:
    assert round(SAC(dt="40ms", discount=0.9227).at("120ms", rule="tuned-scaled").discount, 3) == 0.786


def test_every_part_is_off_unless_named() -> None:
    assert FULL.at("64ms").stated() == FULL.stated()
    after = FULL.at("64ms", "horizons")
    assert {name for name in FULL.stated() if getattr(after, name) != getattr(FULL, name)} == {
        "discount",
        "updates_per_step",
    }


def test_horizons_makes_more_updates_at_longer_cycles_and_says_nothing_of_them_at_shorter_ones() -> None:
    tuned = SAC(dt="16ms", discount=0.97)
    assert tuned.at("64ms", "horizons").updates_per_step == 4
    assert tuned.at("64ms", "horizons").notes == (
        "updates_per_step was not given: the paper's 1 is used.",
        "4 times as many updates per step cost 4 times the learning.",
    )
    assert tuned.at("4ms", "horizons").updates_per_step is None
    assert tuned.at("4ms", "horizons").notes == ()
    assert SAC(dt="16ms", updates_per_step=2).at("4ms", "horizons").updates_per_step == 2


PARTS = [
    ("replay-capacity", "replay_capacity", 250_000),
    ("warm-up", "warmup_steps", 2_500),
    ("target-smoothing", "target_smoothing", 1 - 0.995**4),
    ("updates-per-second", "updates_per_step", 4),
    ("exploration-noise", "noise_std", 0.05),
    ("learning-rate", "learning_rate", 1e-4),
    ("target-entropy", "target_entropy", -2 - log(4)),
]


@pytest.mark.parametrize(("part", "field", "value"), PARTS)
def test_each_part_changes_its_own_field_and_no_other(part: str, field: str, value: float) -> None:
    after = FULL.at("64ms", rule="baseline", also=[part])
    assert isclose(getattr(after, field), value)
    assert {name for name in FULL.stated() if getattr(after, name) != getattr(FULL, name)} == {field}


def test_every_part_has_a_test_above() -> None:
    assert set(SAC.parts) == {part for part, _, _ in PARTS}


def test_carried_values_pickle_and_copy_with_every_part() -> None:
    also = [*SAC.parts]
    for rule in SAC.rules:
        carried = FULL.at("4ms", rule, also)
        for copy in (pickle.loads(pickle.dumps(carried)), deepcopy(carried)):
            assert copy == carried
            assert copy.explain() == carried.explain()
            assert copy.at("8ms", rule, also) == carried.at("8ms", rule, also)


def test_one_part_may_be_a_string_and_a_part_named_twice_counts_once() -> None:
    bare = SAC(dt="16ms", discount=0.9)
    once = bare.at("64ms", also=["warm-up"])
    assert bare.at("64ms", also="warm-up") == once
    assert bare.at("64ms", also=["warm-up", "warm-up"]).notes == once.notes
    assert len(once.notes) == 1


@given(dts)
def test_parts_keep_their_meaning_in_seconds(dt: Duration) -> None:
    parts = ["replay-capacity", "warm-up", "target-smoothing"]
    before, after = FULL.seconds(), FULL.at(dt, "tuned-scaled", parts).seconds()
    assert isclose(after["discount"], before["discount"], rel_tol=1e-9)
    assert isclose(after["target_smoothing"], before["target_smoothing"], rel_tol=1e-9)
    assert isclose(after["replay_capacity"], before["replay_capacity"], rel_tol=1e-3)
    assert isclose(after["warmup_steps"], before["warmup_steps"], rel_tol=1e-2)


@given(dts)
def test_targets_keep_their_time_constant_beside_more_updates(dt: Duration) -> None:
    after = FULL.at(dt, "horizons", "target-smoothing")
    assert isclose(after.seconds()["target_smoothing"], FULL.seconds()["target_smoothing"], rel_tol=1e-9)


def test_smoothing_is_not_corrected_twice_where_updates_per_second_are_kept() -> None:
    after = FULL.at("64ms", also=["target-smoothing", "updates-per-second"])
    assert after.target_smoothing == FULL.target_smoothing
    assert isclose(after.seconds()["target_smoothing"], FULL.seconds()["target_smoothing"])
    assert isclose(after.seconds()["updates_per_step"], 0.016)


def test_a_part_that_was_not_stated_starts_from_the_paper_s_value_and_says_so() -> None:
    after = SAC(dt="16ms", discount=0.9).at("32ms", "tuned", also=["replay-capacity", "target-smoothing"])
    assert after.replay_capacity == 500_000
    assert after.notes == (
        "replay_capacity was not given: the paper's 1000000 is used.",
        "target_smoothing was not given: the paper's 0.005 is used.",
    )


def test_a_part_without_a_value_is_refused() -> None:
    with pytest.raises(InputError, match="noise_std was not given, and the paper has no value for it"):
        SAC(dt="16ms").at("32ms", also=["exploration-noise"])
    with pytest.raises(InputError, match="needs action_size"):
        SAC(dt="16ms").at("32ms", also=["target-entropy"])
    assert SAC(dt="16ms", action_size=6).at("16ms", also=["target-entropy"]).target_entropy == -6


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"discount": 0.0}, "(0, 1]"),
        ({"target_smoothing": 0.0}, "(0, 1]"),
        ({"target_smoothing": 1.5}, "(0, 1]"),
        ({"replay_capacity": 0}, "a whole number of at least 1"),
        ({"warmup_steps": -1}, "a whole number of at least 0"),
        ({"updates_per_step": 0}, "a number greater than 0"),
        ({"target_entropy": float("inf")}, "a finite number"),
        ({"action_size": 0}, "a whole number of at least 1"),
    ],
)
def test_values_out_of_range_are_refused_with_the_range(wrong: dict[str, float], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        SAC(**{"dt": "16ms", **wrong})  # type: ignore[arg-type]
    ((name, value),) = wrong.items()
    assert f"{name} is {value}: it must be" in str(refusal.value)
    assert says in str(refusal.value)


def test_no_warm_up_stays_no_warm_up() -> None:
    assert SAC(dt="16ms", warmup_steps=0).at("4ms", also=["warm-up"]).warmup_steps == 0


@given(dts, st.floats(0.5, 0.999999) | st.just(1.0))
def test_there_and_back_is_the_identity(dt: Duration, discount: float) -> None:
    sac = SAC(dt="16ms", discount=discount, updates_per_step=2, noise_std=0.3, target_smoothing=0.01)
    also = ["target-smoothing", "exploration-noise", "updates-per-second"]
    back = sac.at(dt, "tuned-scaled", also).at("16ms", "tuned-scaled", also)
    assert all(isclose(back.stated()[name], value, rel_tol=1e-9) for name, value in sac.stated().items())
