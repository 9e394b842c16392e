import numpy as np

from cycletime.loops import Episodes


def make_episodes(ends: list[int], returns: list[float]) -> Episodes:
    steps = np.array(ends, np.int64)
    return Episodes(steps, steps, np.array(returns, float), np.diff(steps, prepend=0))


def test_a_bin_is_the_mean_of_its_episodes_and_an_empty_one_repeats_the_last() -> None:
    episodes = make_episodes([5, 10, 11, 35, 40], [1, 3, 10, 20, 30])
    # Bins (0, 10], (10, 20], (20, 30], (30, 40]: the third is empty.
    np.testing.assert_array_equal(episodes.binned(40, bins=4), [2, 10, 10, 25])


def test_bins_before_the_first_episode_take_its_value() -> None:
    np.testing.assert_array_equal(make_episodes([25], [7]).binned(40, bins=4), [7, 7, 7, 7])


def test_short_episodes_do_not_outweigh_long_ones() -> None:
    many_short = make_episodes([*range(1, 101), 200], [0.0] * 100 + [100.0])
    assert many_short.binned(200, bins=2).mean() == 50
    assert many_short.returns.mean() < 1


def test_no_episodes_have_no_performance() -> None:
    assert np.isnan(Episodes.none().binned(10)).all()
    assert len(Episodes.joined([])) == 0


def test_joining_and_cutting() -> None:
    both = Episodes.joined([make_episodes([5, 9], [1, 2]), make_episodes([15, 21], [3, 4])])
    assert both.returns.tolist() == [1, 2, 3, 4]
    assert both.up_to(15).env_steps.tolist() == [5, 9, 15]
    assert both.where(both.returns > 2).returns.tolist() == [3, 4]
