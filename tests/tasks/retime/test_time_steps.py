from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime import Duration, InputError
from cycletime.tasks.retime import TimeStep, choose_time_step

HOPPER = TimeStep(Duration("2ms"), 4)


def chosen(env_dt: str, physics_dt: str | None = None) -> tuple[str, int]:
    step = choose_time_step(HOPPER, env_dt, physics_dt, skips_frames=True)
    return str(step.physics_dt), step.frame_skip


@pytest.mark.parametrize(("env_dt", "frame_skip"), [("2ms", 1), ("4ms", 2), ("8ms", 4), ("16ms", 8), ("1s", 500)])
def test_the_own_physics_step_is_kept_where_it_divides_the_time_step(env_dt: str, frame_skip: int) -> None:
    assert chosen(env_dt) == ("2ms", frame_skip)


@pytest.mark.parametrize(
    ("env_dt", "physics_dt", "frame_skip"),
    [("1ms", "1ms", 1), ("3ms", "1.5ms", 2), ("5ms", "600Hz", 3), ("9ms", "1.8ms", 5), ("60Hz", "540Hz", 9)],
)
def test_else_it_is_the_longest_that_is_no_longer_than_the_own(env_dt: str, physics_dt: str, frame_skip: int) -> None:
    assert chosen(env_dt) == (physics_dt, frame_skip)


def test_the_physics_step_can_be_chosen() -> None:
    assert chosen("8ms", "0.5ms") == ("500us", 16)
    assert chosen("8ms", "2ms") == ("2ms", 4)


@given(st.fractions(min_value=Fraction(1, 10**5), max_value=2, max_denominator=10**6))
def test_physics_steps_add_up_to_the_time_step_exactly(env_dt: Fraction) -> None:
    step = choose_time_step(HOPPER, env_dt, None, skips_frames=True)
    assert step.physics_dt.exact_s * step.frame_skip == env_dt
    assert step.physics_dt <= HOPPER.physics_dt
    # One frame fewer would need a longer physics step than the own one.
    assert step.frame_skip == 1 or env_dt / (step.frame_skip - 1) > HOPPER.physics_dt.exact_s


@pytest.mark.parametrize(
    ("env_dt", "physics_dt", "complaint"),
    [
        (
            "2ms",
            "1.5ms",
            r"2ms is not a whole multiple of physics_dt 1.5ms: .* 2ms \(1 per step\) and 1ms \(2 per step\)",
        ),
        ("16ms", "4ms", "physics_dt 4ms is longer than this environment's own 2ms"),
        ("1ms", "2ms", "env_dt 1ms is not a whole multiple of physics_dt 2ms"),
        ("0ms", None, "'0ms' is not a time span"),
        ("2ms", "fast", "'fast' is not a time span"),
    ],
)
def test_other_physics_steps_are_refused(env_dt: str, physics_dt: str | None, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        chosen(env_dt, physics_dt)


def test_an_environment_that_integrates_once_per_step_takes_one_physics_step() -> None:
    own = TimeStep(Duration("50ms"), 1)
    assert choose_time_step(own, "4ms", None, skips_frames=False) == TimeStep(Duration("4ms"), 1)
    assert choose_time_step(own, "4ms", "4ms", skips_frames=False) == TimeStep(Duration("4ms"), 1)
    with pytest.raises(InputError, match=r"step 100ms is longer than the 50ms .* give at most 50ms"):
        choose_time_step(own, "0.1s", None, skips_frames=False)
    with pytest.raises(InputError, match="physics_dt 2ms differs from env_dt 4ms"):
        choose_time_step(own, "4ms", "2ms", skips_frames=False)
