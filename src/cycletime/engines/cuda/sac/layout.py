"""What host and kernel agree on; kernel/sac/layout.cuh, and the launch in kernel/sac.cu, say the same in C++."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.engines.cuda.layout import ACTIONS, INPUTS, OBSERVATION, POSITION_WORDS

UNITS, SAMPLES, WARPS, OUTPUTS = 256, 256, 8, 4
"""Sizes that the kernel was made for."""
ONE, ACTION = 9, 10
"""Where the inputs of a network that are no observation lie: the one of the biases, and the actions."""
POLICY, CRITIC, TARGET, NETWORKS = 0, 1, 3, 5
"""Networks of a run; the second critic and target follow the first."""

RUN = np.dtype(
    [
        *((name, np.int32) for name in ("task", "cycle_steps", "limit_steps", "env_steps", "actions", "capacity")),
        *((name, np.int32) for name in ("period", "gradient_steps", "warmup_steps", "learns_from")),
        *((name, np.int32) for name in ("limit_is_terminal", "metrics_every", "most_episodes")),
        ("seed", np.uint32),
        *((name, np.float32) for name in ("discount", "learning_rate", "target_smoothing", "critic_weight")),
        *((name, np.float32) for name in ("target_entropy", "env_dt_s")),
        ("state", np.uint64),
        ("replay", np.uint64),
        ("unused", np.int32, 8),
    ]
)
"""A run as the host describes it; addresses are of the device's memory."""

ROW = np.dtype(
    [
        ("observation", np.float32, OBSERVATION),
        ("one", np.float32),
        ("action", np.float32, ACTIONS),
        ("next_observation", np.float32, OBSERVATION),
        ("reward", np.float32),
        ("goes_on", np.float32),
        ("unused", np.float32),
    ]
)
"""A row of the replay."""

REPORT = np.dtype(
    [
        ("agent_steps", np.int32),
        *((name, np.float32) for name in ("critics_loss", "policy_loss", "entropy", "alpha", "action_value")),
        ("unused", np.float32, 2),
    ]
)
METRICS = ("critics_loss", "policy_loss", "entropy", "alpha", "action_value")

_SIZES = {
    "second": UNITS * UNITS,
    "first": INPUTS * UNITS,
    "second_bias": UNITS,
    "last": UNITS * OUTPUTS,
    "last_bias": OUTPUTS,
}
"""The numbers of one network, in the order in which they are kept."""
NUMBERS = sum(_SIZES.values())
STATE_WORDS = POSITION_WORDS + 11 * NUMBERS
"""A run's state: its position, weights of all networks, then means and squares of the three that learn."""

LAUNCH = np.dtype(
    [
        ("runs", np.uint64),
        ("queued", np.int32),
        ("tickets", np.uint64),
        ("records", np.uint64),
        ("most_records", np.int32),
        ("reports", np.uint64),
        ("most_reports", np.int32),
        ("scratch", np.uint64),
        ("time_ns", np.int64),
        ("most_periods", np.int32),
    ],
    align=True,
)
"""The kernel's argument."""

_MATRIX, _FIRST_MATRIX = UNITS * UNITS // 2, INPUTS * UNITS // 2
SCRATCH_WORDS = NETWORKS * (_MATRIX + _FIRST_MATRIX) + 3 * _MATRIX + 2 * 4 * 32 * WARPS + (1 + OUTPUTS) * WARPS * UNITS
"""A block's own memory."""


def network_of(state: NDArray[np.float32], network: int, kept: int = 0) -> dict[str, NDArray[np.float32]]:
    """A copy of a network's numbers in a run's state, matrices by row; weights, means (kept = 1) or squares (2)."""
    found, begin = {}, _begin(network, kept)
    for name, size in _SIZES.items():
        found[name] = state[begin : begin + size]
        begin += size
    rows, columns = _second_order()
    second = np.empty((UNITS, UNITS), np.float32)
    second[rows, columns] = found["second"]
    rows, columns = _first_order()
    first = np.empty((INPUTS, UNITS), np.float32)
    first[rows, columns] = found["first"]
    return {**found, "second": second, "first": first, "last": found["last"].reshape(UNITS, OUTPUTS)}


def set_network(state: NDArray[np.float32], network: int, numbers: dict[str, NDArray[Any]], kept: int = 0) -> None:
    """Write a network's numbers into a run's state."""
    ordered = {**numbers, "second": numbers["second"][_second_order()], "first": numbers["first"][_first_order()]}
    begin = _begin(network, kept)
    for name, size in _SIZES.items():
        state[begin : begin + size] = np.reshape(ordered[name], size)
        begin += size


def _begin(network: int, kept: int) -> int:
    """Where a network's numbers begin."""
    place = network if kept == 0 else NETWORKS + 3 * (kept - 1) + network
    return POSITION_WORDS + place * NUMBERS


@cache
def _second_order() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of each kept number of the second layer's matrix; kernel/sac/memory.cuh's SecondPlace."""
    half, warp, down, beside, lane, i = np.indices((2, WARPS, 4, 8, 32, 4)).reshape(6, -1)
    rows = warp % 4 * 64 + down * 16 + lane // 4 + i // 2 * 8
    return rows, half * 128 + warp // 4 * 64 + beside * 8 + lane % 4 * 2 + i % 2


@cache
def _first_order() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same of the first layer's; FirstPlace."""
    quarter, warp, lane, i = np.indices((4, WARPS, 32, 4)).reshape(4, -1)
    return lane // 4 + i // 2 * 8, quarter * 64 + warp * 8 + lane % 4 * 2 + i % 2
