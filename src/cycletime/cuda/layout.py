"""What host and kernel agree on; kernel/layout.cuh and the kernel's launch in kernel/train.cu say the same in C++."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

OBSERVATION, ACTIONS, INPUTS, HIDDEN = 9, 2, 16, 64
"""Sizes that the kernel was made for; a task with one action leaves the second alone."""
ASIDE, RECORD_WORDS, REPORT_WORDS = 4, 3, 8
ENDED, TERMINAL = 1 << 30, 1 << 29
"""Flags beside the number of a row's successor."""

RUN = np.dtype(
    [
        *((name, np.int32) for name in ("task", "cycle_steps", "limit_steps", "env_steps", "actions", "batch")),
        *((name, np.int32) for name in ("slice", "epochs", "until_episode_end", "limit_is_terminal")),
        *((name, np.int32) for name in ("ends_with_episode", "metrics_every", "most_episodes")),
        ("seed", np.uint32),
        *((name, np.float32) for name in ("discount", "trace_decay", "learning_rate", "clip", "env_dt_s")),
        ("unused", np.int32, 13),
    ]
)
"""A run as the host describes it."""

POSITION = np.dtype(
    [
        *((name, np.int32) for name in ("status", "period", "agent_steps", "ended_env_steps", "episode")),
        ("episode_steps", np.int32),
        ("episode_return", np.float32),
        ("world_steps", np.int32),
        ("world", np.float32, 12),
        ("mean_decay", np.float64),
        ("square_decay", np.float64),
        ("records", np.int32),
        ("reports", np.int32),
        ("updates", np.int32),
        ("temperature", np.float32, 3),
        ("unused", np.int32, 34),
    ]
)
"""Where a run is between two learnings."""

NETWORK = {
    "first": (OBSERVATION + 1, HIDDEN),
    "second": (HIDDEN, HIDDEN),
    "second_bias": (HIDDEN,),
    "last": (HIDDEN, ACTIONS),
    "last_bias": (ACTIONS,),
    "log_std": (ACTIONS,),
}
"""The numbers of one network, in the order in which they are kept; the first layer's last row is its bias."""
NUMBERS = sum(int(np.prod(shape)) for shape in NETWORK.values())
POSITION_WORDS = POSITION.itemsize // 4
STATE_WORDS = POSITION_WORDS + 6 * NUMBERS
"""A run's state: its position, then weights, means and squares, each of the policy and of the value."""

RECORD = np.dtype([("episode_return", np.float32), ("env_steps", np.int32), ("agent_steps", np.int32)])
REPORT = np.dtype(
    [
        ("agent_steps", np.int32),
        *((name, np.float32) for name in ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")),
        ("log_std", np.float32, ACTIONS),
    ]
)
ROW = np.dtype(
    [
        ("observation", np.float32, OBSERVATION),
        ("one", np.float32),
        ("action", np.float32, ACTIONS),
        ("advantage", np.float32),
        ("old_log_probability", np.float32),
        ("lambda_return", np.float32),
        ("next", np.int32),
    ]
)
"""A row of the batch."""
BESIDE = np.dtype([("value", np.float32), ("reward", np.float32), ("old_mean", np.float32, ACTIONS)])
"""What else is kept of it."""

LAUNCH = np.dtype(
    [
        ("runs", np.uint64),
        ("queue", np.uint64),
        ("queued", np.int32),
        ("tickets", np.uint64),
        ("states", np.uint64),
        ("records", np.uint64),
        ("most_records", np.int32),
        ("reports", np.uint64),
        ("most_reports", np.int32),
        ("scratch", np.uint64),
        ("most_rows", np.int32),
        ("time_ns", np.int64),
        ("most_periods", np.int32),
    ],
    align=True,
)
"""The kernel's argument; addresses are of the device's memory."""


class Status(IntEnum):
    """How far a run is."""

    FRESH = 0
    GOING = 1
    FINISHED = 2


def scratch_words(most_rows: int) -> int:
    """The words of a block's own memory: rows, what is beside them, two orders, and the second layers' moments."""
    return most_rows * (INPUTS + ASIDE + 2) + 4 * HIDDEN * HIDDEN


def rows_for(batch: int, most_episodes: int) -> int:
    """The rows of a batch, its successor's, and those of last observations."""
    return batch + 1 + most_episodes


def position_of(state: NDArray[np.float32]) -> Any:  # noqa: ANN401 - one record, whose fields can be set
    """The position in a run's state, a view."""
    return state[:POSITION_WORDS].view(POSITION)[0]


def networks_of(state: NDArray[np.float32], kept: int = 0) -> tuple[dict[str, NDArray[np.float32]], ...]:
    """Policy and value in a run's state by name, views; their weights, means (kept = 1) or squares (2)."""
    return tuple(_network(state, POSITION_WORDS + (2 * kept + index) * NUMBERS) for index in range(2))


def _network(state: NDArray[np.float32], begin: int) -> dict[str, NDArray[np.float32]]:
    found = {}
    for name, shape in NETWORK.items():
        size = int(np.prod(shape))
        found[name] = state[begin : begin + size].reshape(shape)
        begin += size
    return found
