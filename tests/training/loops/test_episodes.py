import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cycletime.errors import InputError
from cycletime.training.learning_curve import EpisodeBins, Episodes


def make(ends: list[int], returns: list[float]) -> Episodes:
    env_steps = np.array(ends, np.int64)
    return Episodes(env_steps, -(-env_steps // 3), np.array(returns, np.float64), np.diff(env_steps, prepend=0))


def plainly_binned(episodes: Episodes, budget: int, bins: int) -> NDArray[np.float64]:
    """The measure in its own words: bin i has the ends in (i w, (i + 1) w]."""
    found: list[float] = []
    for index in range(bins):
        pairs = zip(episodes.env_steps.tolist(), episodes.returns, strict=True)
        inside = [each for end, each in pairs if index * budget < end * bins <= (index + 1) * budget]
        found.append(float(np.mean(inside)) if inside else (found[-1] if found else np.nan))
    first = next(each for each in found if not np.isnan(each))
    return np.array([first if np.isnan(each) else each for each in found])


curves = st.lists(st.tuples(st.integers(1, 60), st.floats(-100, 100, width=32)), min_size=1, max_size=30).map(
    lambda rows: make(np.cumsum([length for length, _ in rows]).tolist(), [each for _, each in rows])
)


@settings(max_examples=40)
@given(curves, st.lists(st.integers(0, 30), max_size=4), st.integers(0, 7))
def test_parts_of_a_curve_give_the_same_bits_as_the_whole(curve: Episodes, cuts: list[int], beyond: int) -> None:
    budget = int(curve.env_steps[-1]) + beyond
    whole, parts, at = EpisodeBins.none(budget).plus(curve), EpisodeBins.none(budget), 0
    for cut in [*sorted(min(cut, len(curve)) for cut in cuts), len(curve)]:
        parts, at = parts.plus(curve.where(np.arange(at, max(at, cut)))), max(at, cut)
    for name in ("counts", "sums", "env_steps", "agent_steps"):
        assert getattr(parts, name).tobytes() == getattr(whole, name).tobytes()
    assert len(parts) == len(curve)
    np.testing.assert_allclose(parts.means(), plainly_binned(curve, budget, 100), rtol=1e-12)
    assert parts.mean_return == pytest.approx(curve.mean_return)


def test_the_end_of_the_last_episode_in_a_bin_is_kept() -> None:
    bins = EpisodeBins.none(100, 4).plus(make([10, 20, 60, 75], [1, 2, 3, 6]))
    assert bins.counts.tolist() == [2, 0, 2, 0]
    assert bins.env_steps.tolist() == [20, 0, 75, 0]
    assert bins.agent_steps.tolist() == [7, 0, 25, 0]
    assert bins.means().tolist() == [1.5, 1.5, 4.5, 4.5]
    assert bins.mean_return == 3


def test_bins_can_be_put_together_and_not_taken_apart() -> None:
    curve = make([10, 20, 60, 75, 90], [1, 2, 3, 6, 5])
    bins = EpisodeBins.none(100).plus(curve)
    for count in (1, 4, 50, 100):
        np.testing.assert_array_equal(bins.binned(100, count), curve.binned(100, count))
    for env_steps, count in ((100, 3), (100, 200), (99, 100), (100, 0)):
        with pytest.raises(
            InputError, match=rf"^The curve is kept in 100 bins of 100 .* not in {count} of {env_steps}"
        ):
            bins.binned(env_steps, count)


def test_without_episodes_there_is_no_mean() -> None:
    assert np.isnan(EpisodeBins.none(100).means()).all()
    assert len(EpisodeBins.none(100)) == 0


def test_a_bin_is_the_mean_of_its_episodes_and_an_empty_one_repeats_the_last() -> None:
    episodes = make([5, 10, 11, 35, 40], [1, 3, 10, 20, 30])
    # Bins (0, 10], (10, 20], (20, 30], (30, 40]: the third is empty.
    np.testing.assert_array_equal(episodes.binned(40, bins=4), [2, 10, 10, 25])


def test_bins_before_the_first_episode_take_its_value() -> None:
    np.testing.assert_array_equal(make([25], [7]).binned(40, bins=4), [7, 7, 7, 7])


def test_short_episodes_do_not_outweigh_long_ones() -> None:
    many_short = make([*range(1, 101), 200], [0.0] * 100 + [100.0])
    assert many_short.binned(200, bins=2).mean() == 50
    assert many_short.returns.mean() < 1


def test_no_episodes_have_no_performance() -> None:
    assert np.isnan(Episodes.none().binned(10)).all()
    assert len(Episodes.joined([])) == 0


def test_joining_and_cutting() -> None:
    both = Episodes.joined([make([5, 9], [1, 2]), make([15, 21], [3, 4])])
    assert both.returns.tolist() == [1, 2, 3, 4]
    assert both.up_to(15).env_steps.tolist() == [5, 9, 15]
    assert both.where(both.returns > 2).returns.tolist() == [3, 4]
