"""The kernel's random numbers: Philox as published, and orders that are fair permutations."""

import numpy as np
import pytest

from tests.cuda.device_checks.philox import (
    PhiloxStream,
    normals,
    philox,
    philox_words,
    shuffled_order,
    symmetric_uniform,
)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF, 0xFFFFFFFF), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers(
    counter: tuple[int, ...], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    """Those of Random123, the authors' own code."""
    words = philox_words([np.asarray(each, np.uint64) for each in counter], key)
    assert tuple(int(word) for word in words) == expected


def test_seeds_purposes_counts_and_parts_have_words_of_their_own() -> None:
    base = philox(1, PhiloxStream.NOISE, 2, 3)
    others = [
        philox(2, PhiloxStream.NOISE, 2, 3),
        philox(1, PhiloxStream.STARTS, 2, 3),
        philox(1, PhiloxStream.NOISE, 3, 3),
    ]
    for other in (*others, philox(1, PhiloxStream.NOISE, 2, 4)):
        assert not np.array_equal(base, other)
    np.testing.assert_array_equal(philox(1, PhiloxStream.NOISE, np.arange(5), 3)[2], base)


def test_uniform_numbers_stay_inside_and_normal_ones_are_normal() -> None:
    ends = symmetric_uniform(np.array([0, 2**32 - 1], np.uint32))
    assert -1 < ends[0] < -0.9999998
    assert 0.9999998 < ends[1] < 1
    drawn = normals(philox(7, PhiloxStream.NOISE, np.arange(50_000))).ravel()
    assert abs(drawn.mean()) < 4 / np.sqrt(1e5)
    assert drawn.var() == pytest.approx(1, abs=4 * np.sqrt(2 / 1e5))
    assert (np.abs(drawn) > 1.959964).mean() == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 1e5))


@pytest.mark.parametrize("length", [1, 2, 3, 37, 64, 65, 1700])
def test_an_order_is_a_permutation(length: int) -> None:
    for epoch in range(3):
        assert sorted(shuffled_order(5, 1, epoch, length)) == list(range(length))


@pytest.mark.parametrize("length", [5, 8])
def test_every_sample_comes_to_every_place_equally_often(length: int) -> None:
    """And every pair of samples stands at the first two places equally often: a chi-squared test of each."""
    tried = 2000
    orders = np.array([shuffled_order(9, period, 0, length) for period in range(tried)])
    places = np.array([np.bincount(orders[:, place], minlength=length) for place in range(length)])
    expected = tried / length
    assert ((places - expected) ** 2 / expected).sum() < 1.75 * (length - 1) ** 2 + 20
    pairs = np.bincount(orders[:, 0] * length + orders[:, 1], minlength=length**2)
    pairs = pairs[pairs > 0]
    assert len(pairs) == length * (length - 1)
    assert ((pairs - tried / len(pairs)) ** 2 / (tried / len(pairs))).sum() < 1.75 * len(pairs) + 20
