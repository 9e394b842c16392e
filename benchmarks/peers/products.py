"""How fast this core multiplies float32 matrices, by JAX and by NumPy: python -m benchmarks.peers.products."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import numpy as np

from benchmarks.peers.worker import Cases, serve

SHAPES = ((50, 64), (256, 256), (512, 512))
"""Rows of the left matrix, and size of the square right one: a hidden layer of PPO, one of SAC, and a large one."""
OPERATIONS = 2e9
"""How many floating-point operations a repetition takes, about."""


def by_jax(rows: int, size: int) -> Callable[[], float]:
    """Seconds of one product, many in one compiled loop, each with the result of the one before."""
    count = round(OPERATIONS / (2 * rows * size * size))
    # An orthogonal factor: the numbers neither grow nor vanish, as denormal ones would slow the core down.
    factor = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0].astype(np.float32)
    product = jax.jit(lambda x, y: jax.lax.fori_loop(0, count, lambda _, x: x @ y, x))
    start = np.random.default_rng(1).normal(size=(rows, size)).astype(np.float32)

    def run() -> float:
        began = time.perf_counter()
        product(start, factor).block_until_ready()
        return (time.perf_counter() - began) / count

    run()
    return run


def by_numpy(rows: int, size: int) -> Callable[[], float]:
    """Seconds of one product of NumPy's library."""
    count = round(OPERATIONS / (2 * rows * size * size))
    left, right = (np.random.default_rng(0).normal(size=(n, size)).astype(np.float32) for n in (rows, size))
    result = np.empty((rows, size), np.float32)

    def run() -> float:
        began = time.perf_counter()
        for _ in range(count):
            np.matmul(left, right, out=result)
        return (time.perf_counter() - began) / count

    run()
    return run


def prepare() -> tuple[Cases, dict[str, object]]:
    """One case for each shape and library."""
    cases: dict[str, Callable[[], float]] = {}
    for rows, size in SHAPES:
        cases |= {f"JAX {rows} {size}": by_jax(rows, size), f"NumPy {rows} {size}": by_numpy(rows, size)}
    return cases, {"cases": list(cases)}


if __name__ == "__main__":
    serve(prepare)
