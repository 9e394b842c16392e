"""The kernels' random numbers in NumPy: functions of the seed, a purpose and a count (kernel/random.cuh)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class PhiloxStream(IntEnum):
    """What random numbers are for. The numbers are part of every run's identity: never change them."""

    NOISE = 1
    STARTS = 2
    LEARNING = 3


def philox(
    seed: int, purpose: PhiloxStream, count: NDArray[np.int64] | int, part: NDArray[np.int64] | int = 0
) -> NDArray[np.uint32]:
    """Four words for each count and part, [..., 4]."""
    first, second = np.broadcast_arrays(np.asarray(count, np.uint64), np.asarray(part, np.uint64))
    counter = [first, second, np.full_like(first, purpose), np.zeros_like(first)]
    return philox_words(counter, (seed, 0x6379636C))


def philox_words(counter: Sequence[NDArray[np.uint64]], key: tuple[int, int]) -> NDArray[np.uint32]:
    """Philox 4x32-10 (Salmon et al. 2011): four words for each counter of four."""
    low, words, keys = np.uint64(0xFFFFFFFF), list(counter), list(key)
    for _ in range(10):
        first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [
            (second >> np.uint64(32)) ^ words[1] ^ np.uint64(keys[0]),
            second & low,
            (first >> np.uint64(32)) ^ words[3] ^ np.uint64(keys[1]),
            first & low,
        ]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return np.stack(words, axis=-1).astype(np.uint32)


def symmetric_uniform(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Uniform between -1 and 1, without its ends."""
    halves = ((words >> np.uint32(9)).astype(np.float32) + np.float32(0.5)) * np.float32(2 / 2**23)
    return np.asarray(halves - np.float32(1), np.float32)


def normals(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Two normal numbers for each four words (Box & Muller 1958), [..., 2]."""
    uniform = ((words[..., 0] >> np.uint32(8)).astype(np.float64) + 0.5) / 2**24
    radius, angle = np.sqrt(-2 * np.log(uniform)), np.pi * symmetric_uniform(words[..., 1]).astype(np.float64)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def shuffled_order(seed: int, period: int, epoch: int, length: int) -> NDArray[np.int64]:
    """The order of the samples in an epoch: a keyed bijection on the next power of two, applied until below."""
    bits = max(0, (length - 1).bit_length())
    low_bits, keys = bits // 2, philox(seed, PhiloxStream.LEARNING, period, epoch)
    low_mask, high_mask = 2**low_bits - 1, 2 ** (bits - low_bits) - 1

    def moved(place: NDArray[np.int64]) -> NDArray[np.int64]:
        low, high = place & low_mask, place >> low_bits
        for key in keys:
            high = (high ^ _hashed(low, int(key))) & high_mask
            low = (low ^ _hashed(high, int(key) ^ 0x5BD1E995)) & low_mask
        joined: NDArray[np.int64] = (high << low_bits) | low
        return joined

    places: NDArray[np.int64] = moved(np.arange(length))
    while (beyond := places >= length).any():
        places[beyond] = moved(places[beyond])
    return places


def _hashed(part: NDArray[np.int64], key: int) -> NDArray[np.int64]:
    word = np.uint32(key) + part.astype(np.uint32)
    word = word * np.uint32(0x9E3779B1)
    word = (word ^ (word >> np.uint32(15))) * np.uint32(0x85EBCA77)
    word = (word ^ (word >> np.uint32(13))) * np.uint32(0xC2B2AE3D)
    return (word ^ (word >> np.uint32(16))).astype(np.int64)
