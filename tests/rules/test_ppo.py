"""PPO's rules: the paper's numbers, its ablations, rounding that is reported, refusals."""

import pickle
from copy import deepcopy
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from math import exp, isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.rules import PPO

dts = st.integers(1, 500).map(lambda ms: Duration(Fraction(ms, 1000)))
ppos = st.builds(
    lambda dt, minibatch, ratio, rest, discount, trace_decay: PPO(
        dt=dt,
        batch=minibatch * ratio + rest % minibatch,
        minibatch=minibatch,
        discount=discount,
        trace_decay=trace_decay,
    ),
    dts,
    st.integers(1, 5000),
    st.integers(1, 64),
    st.integers(0, 5000),
    st.floats(0.5, 0.999999) | st.just(1.0),
    st.floats(0.3, 0.999999) | st.just(1.0),  # 0.3^500 is the least that a float holds
)


@pytest.mark.parametrize(
    ("dt", "batch", "minibatch", "discount", "trace_decay"),
    [
        ("4ms", 8000, 200, 0.99, 0.95),
        ("8ms", 4000, 100, 0.99, 0.95),
        ("16ms", 2000, 50, 0.99, 0.95),
        ("32ms", 1000, 25, 0.99**2, 0.95**2),
        ("64ms", 500, 12, 0.99**4, 0.95**4),
    ],
)
def test_dt_aware_values_of_the_paper(dt: str, batch: int, minibatch: int, discount: float, trace_decay: float) -> None:
    values = PPO(dt="16ms").at(dt)
    assert (values.dt, values.batch, values.minibatch) == (Duration(dt), batch, minibatch)
    assert isclose(values.discount, discount)
    assert isclose(values.trace_decay, trace_decay)


def test_the_robot_s_values_of_the_paper() -> None:
    values = PPO(dt="40ms", batch=400, minibatch=10).at("10ms")
    assert (values.batch, values.minibatch) == (1600, 40)
    assert (values.discount, values.trace_decay) == (0.99, 0.95)


@pytest.mark.parametrize(
    ("rule", "dt", "batch", "minibatch", "exponent"),
    [
        ("baseline", "4ms", 2000, 50, 1),
        ("baseline", "64ms", 2000, 50, 1),
        ("scaled", "4ms", 8000, 200, 1 / 4),
        ("scaled", "64ms", 500, 12, 4),
        ("constant", "4ms", 8000, 200, 1),
        ("constant", "64ms", 500, 12, 1),
    ],
)
def test_baseline_and_ablations(rule: str, dt: str, batch: int, minibatch: int, exponent: float) -> None:
    values = PPO(dt="16ms").at(dt, rule=rule)
    assert (values.batch, values.minibatch) == (batch, minibatch)
    assert isclose(values.discount, 0.99**exponent)
    assert isclose(values.trace_decay, 0.95**exponent)


def test_rounding_and_a_changed_number_of_minibatches_are_reported() -> None:
    values = PPO(dt="16ms").at("64ms")
    assert (PPO(dt="16ms").minibatches, values.minibatches) == (40, 42)
    assert any("minibatch 12.5 was rounded to 12 (-4.0%)" in note for note in values.notes)
    assert any("40 became 42" in note and "from 40 to 41.67 (+4.2%)" in note for note in values.notes)


def test_a_ratio_that_moved_is_reported_though_the_number_of_minibatches_did_not() -> None:
    values = PPO(dt="16ms", batch=31, minibatch=20).at("32ms")
    assert (values.batch, values.minibatch, values.minibatches) == (15, 10, 2)
    assert "Rounding batch / minibatch moved from 1.55 to 1.5 (-3.2%)." in values.notes


def test_exact_transfers_have_nothing_to_report() -> None:
    assert PPO(dt="16ms", discount=0.98).at("4ms", "scaled").notes == ()


@pytest.mark.parametrize(
    ("dt", "discount", "trace_decay"),
    [
        ("4ms", 0.99 ** (1 / 4), 0.95 ** (1 / 4)),  # 400 and 78 steps: per second
        ("64ms", 0.99**4, exp(-1 / 6)),  # 25 and 4.9 steps, of which the floor is 6
        ("320ms", exp(-1 / 6), exp(-1 / 6)),  # 5 and 1
    ],
)
def test_horizons_are_kept_in_seconds_and_have_at_least_six_steps(dt: str, discount: float, trace_decay: float) -> None:
    after = PPO(dt="16ms").at(dt, rule="horizons")
    assert [after.discount, after.trace_decay] == pytest.approx([discount, trace_decay])
    sizes = PPO(dt="16ms").at(dt, rule="dt-aware")
    assert (after.batch, after.minibatch, after.learning_rate) == (sizes.batch, sizes.minibatch, None)


def test_the_floor_raises_no_horizon_that_was_tuned_below_it() -> None:
    short = PPO(dt="16ms", discount=exp(-1 / 4), trace_decay=exp(-1 / 7))
    after = short.at("64ms", rule="horizons")
    assert [after.discount, after.trace_decay] == pytest.approx([short.discount, exp(-1 / 6)])


@given(ppos, dts, st.sampled_from(["baseline", "dt-aware", "scaled", "constant", "horizons"]))
def test_what_holds_for_every_rule(ppo: PPO, dt: Duration, rule: str) -> None:
    after = ppo.at(dt, rule=rule)
    exact_batch: Fraction = Fraction(ppo.batch) if rule == "baseline" else ppo.batch * (ppo.dt / dt)
    assert after.batch == 1 or abs(after.batch - exact_batch) <= Fraction(1, 2)
    assert 1 <= after.minibatch <= after.batch
    assert 0 < after.discount <= 1
    assert (after.minibatches == ppo.minibatches) or after.notes
    shift = abs(Fraction(after.batch, after.minibatch) / Fraction(ppo.batch, ppo.minibatch) - 1)
    assert shift <= Fraction(1, 100) + Fraction(1, 10**9) or after.notes
    assert after.tuned_ratio == Fraction(ppo.batch, ppo.minibatch)


@given(ppos, dts)
def test_dt_aware_never_raises_gamma_or_lambda_and_keeps_the_horizon_going_up(ppo: PPO, dt: Duration) -> None:
    after = ppo.at(dt, "dt-aware")
    assert after.discount <= ppo.discount
    assert after.trace_decay <= ppo.trace_decay
    if dt >= ppo.dt:
        assert isclose(after.seconds()["discount"], ppo.seconds()["discount"], rel_tol=1e-6)


@given(ppos, dts, st.sampled_from(["baseline", "scaled", "constant"]))
def test_there_and_back_is_the_identity_up_to_the_reported_rounding(ppo: PPO, dt: Duration, rule: str) -> None:
    there = ppo.at(dt, rule=rule)
    back = there.at(ppo.dt, rule=rule)
    assert isclose(back.discount, ppo.discount, rel_tol=1e-9)
    assert isclose(back.trace_decay, ppo.trace_decay, rel_tol=1e-9)
    half_a_step_there = Fraction(1, 2) if rule == "baseline" else (dt / ppo.dt) / 2 + Fraction(1, 2)
    for name in ("batch", "minibatch"):
        lowest_clamped = getattr(there, name) == 1
        assert lowest_clamped or abs(getattr(back, name) - getattr(ppo, name)) <= half_a_step_there
    if not there.notes and (ppo.dt / dt).denominator == 1:
        assert (back.batch, back.minibatch) == (ppo.batch, ppo.minibatch)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"discount": 0}, "discount is 0: it must be a number in (0, 1]"),
        ({"discount": 1.01}, "discount is 1.01: it must be a number in (0, 1]"),
        ({"discount": float("nan")}, "discount is nan: it must be a number in (0, 1]"),
        ({"discount": "0.9"}, "discount is '0.9': it must be a number in (0, 1]"),
        ({"trace_decay": -0.1}, "trace_decay is -0.1: it must be a number in [0, 1]"),
        ({"batch": 0}, "batch is 0: it must be a whole number of at least 1"),
        ({"batch": 2000.5}, "batch is 2000.5: it must be a whole number of at least 1"),
        ({"batch": True}, "batch is True: it must be a whole number of at least 1"),
        ({"minibatch": -5}, "minibatch is -5: it must be a whole number of at least 1"),
        ({"batch": 40}, "minibatch is 50: it must be at most the batch, 40"),
        ({"dt": "-1ms"}, "'-1ms' is not a time span"),
        ({"dt": float("nan")}, "nan is not a time span"),
        ({"minibatch_count": 0}, "minibatch_count is 0: it must be a whole number of at least 1"),
        ({"minibatch_count": 2.5}, "minibatch_count is 2.5: it must be a whole number of at least 1"),
        ({"noise_std": 0}, "noise_std is 0: it must be a number greater than 0"),
        ({"learning_rate": -1e-3}, "learning_rate is -0.001: it must be a number greater than 0"),
        ({"clip": 0}, "clip is 0: it must be a number greater than 0"),
    ],
)
def test_values_out_of_range_are_refused_with_the_range(wrong: dict[str, float], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        PPO(**{"dt": "16ms", **wrong})  # type: ignore[arg-type]
    assert says in str(refusal.value)


def test_an_unknown_rule_or_part_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"Unknown rule 'linear' for ppo: choose one of baseline, dt-aware, scaled, cons"
    ):
        PPO(dt="16ms").at("4ms", rule="linear")
    with pytest.raises(InputError, match="Unknown rule '' for ppo"):
        PPO(dt="16ms").at("4ms", rule="")
    with pytest.raises(InputError, match="Unknown part 'replay-capacity' for ppo: choose one of exploration-n"):
        PPO(dt="16ms").at("4ms", also=["replay-capacity"])


def test_a_power_that_a_float_cannot_hold_is_refused() -> None:
    with pytest.raises(InputError, match=r"cannot be carried from 1ms to 1000s: it would be 0.0"):
        PPO(dt="1ms", discount=0.5).at("1000s", rule="scaled")
    with pytest.raises(InputError, match=r"cannot be carried from 1000s to 1us: it would be 1.0"):
        PPO(dt="1000s", discount=1 - 1e-15).at("1us", rule="scaled")


def test_the_ends_of_the_ranges_stay_where_they_are() -> None:
    values = PPO(dt="16ms", discount=1, trace_decay=0).at("64ms", rule="scaled")
    assert (values.discount, values.trace_decay) == (1, 0)


def test_exploration_noise_is_off_unless_named() -> None:
    assert PPO(dt="16ms").at("4ms").noise_std is None
    assert PPO(dt="16ms", noise_std=0.5).at("4ms").noise_std == 0.5
    values = PPO(dt="16ms", discount=0.98).at("4ms", "scaled", also=["exploration-noise"])
    assert values.noise_std == 2.0
    assert values.notes == ("noise_std was not given: the released code's 1.0 is used.",)


def test_learning_rate_and_clip_are_carried_only_where_a_part_says_so() -> None:
    stated = PPO(dt="16ms", discount=0.98, learning_rate=1e-3, clip=0.1)
    assert (PPO(dt="16ms").at("4ms").learning_rate, PPO(dt="16ms").at("4ms").clip) == (None, None)
    assert (stated.at("4ms").learning_rate, stated.at("4ms").clip) == (1e-3, 0.1)
    both = stated.at("4ms", "scaled", also=["learning-rate", "clip"])
    assert (both.learning_rate, both.clip, both.notes) == (2e-3, 0.05, ())
    unstated = PPO(dt="16ms").at("64ms", "scaled", also=["clip", "learning-rate"])
    assert (unstated.learning_rate, unstated.clip) == (1.5e-4, 0.4)
    assert unstated.notes[:2] == (
        "clip was not given: the paper's 0.2 is used.",
        "learning_rate was not given: the paper's 0.0003 is used.",
    )


def test_horizons_in_seconds() -> None:
    seconds = PPO(dt="16ms").seconds()
    assert isclose(seconds["batch"], 32)
    assert isclose(seconds["discount"], -0.016 / log(0.99))
    assert round(seconds["discount"], 2) == 1.59
    assert PPO(dt="16ms", trace_decay=0).seconds()["trace_decay"] == 0


def test_values_are_frozen_and_equal_by_value() -> None:
    carried = PPO(dt="16ms").at("4ms")
    assert carried == PPO(dt="4ms", batch=8000, minibatch=200)
    with pytest.raises(FrozenInstanceError):
        carried.batch = 1  # type: ignore[misc]


@pytest.mark.parametrize("rule", PPO.rules)
def test_carried_values_pickle_and_copy(rule: str) -> None:
    carried = PPO(dt="16ms").at("64ms", rule, also=["exploration-noise"])
    for copy in (pickle.loads(pickle.dumps(carried)), deepcopy(carried)):
        assert copy == carried
        assert (copy.explain(), copy.tuned_ratio) == (carried.explain(), carried.tuned_ratio)


def test_replaced_values_do_not_come_from_the_transfer() -> None:
    carried = PPO(dt="16ms").at("64ms")
    for replaced in (replace(carried, batch=600), replace(carried, dt="32ms"), replace(carried, noise_std=1.0)):
        assert (replaced.origin, replaced.notes) == (None, ())
        assert replaced.tuned_ratio == Fraction(replaced.batch, replaced.minibatch)
    assert replace(carried, batch=carried.batch).origin == carried.origin


def test_a_count_that_does_not_belong_to_the_sizes_is_forgotten() -> None:
    assert PPO(dt="16ms", minibatch_count=7).minibatch_count is None
    counted = PPO(dt="16ms", batch=100, minibatch=2, minibatch_count=40)
    assert counted.tuned_ratio == 40
    assert replace(counted, batch=200).tuned_ratio == 100
    assert replace(counted, minibatch=10).tuned_ratio == 10


def test_a_minibatch_that_was_counted_is_carried_from_the_batch_and_the_count() -> None:
    counted = PPO(dt="16ms", batch=100, minibatch=2, discount=0.98, minibatch_count=40)  # 2.5, rounded down
    assert (counted.at("4ms").minibatch, counted.at("4ms", "scaled").notes) == (10, ())
    assert counted.at("8ms").minibatch == 5
    assert counted.at("16ms").minibatch == counted.at("4ms", "baseline").minibatch == 2
    assert counted.at("32ms").minibatch == 1
    assert counted.at("32ms").notes == ("minibatch 1.25 was rounded to 1 (-20.0%).",)
    assert counted.at("640ms").minibatch == 1


@given(st.integers(1, 5000), st.integers(1, 64), dts)
def test_a_count_survives_every_transfer(batch: int, count: int, dt: Duration) -> None:
    count = min(batch, count)
    counted = PPO(dt="16ms", batch=batch, minibatch=batch // count, minibatch_count=count)
    assert counted.at(dt).minibatch_count == count
    assert counted.at(dt).at("16ms").minibatch_count == count


def test_a_changed_number_of_minibatches_is_reported_too_where_a_library_counted_them() -> None:
    counted = PPO.from_("cleanrl", dt="16ms", num_steps=2000, num_minibatches=40)
    assert any("40 became 42" in note for note in counted.at("64ms").notes)
    said = {"rollouts": 10, "mini_batches": 40, "discount_factor": 0.98}  # 2.5 samples each, read as 2
    uneven = PPO.from_("skrl", dt="16ms", n_envs=10, **said)
    assert uneven.at("16ms").notes == ()
    assert uneven.at("8ms", "scaled").notes == ()
