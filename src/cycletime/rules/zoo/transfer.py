"""Carry one environment of a Zoo file to another cycle time: read it as Stable-Baselines3, carry it, write it back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cycletime.duration import DurationLike
from cycletime.errors import InputError
from cycletime.rules.hyperparameters import Hyperparameters
from cycletime.rules.ppo import PPO
from cycletime.rules.sac import SAC
from cycletime.rules.zoo.rewriting import read_entry, rewrite_entry

_LIBRARY = "stable-baselines3"
ALGORITHMS: Mapping[str, type[Hyperparameters]] = {"ppo": PPO, "sac": SAC}
SB3_DEFAULTS_OF_PARTS: Mapping[str, Mapping[str, int | float]] = {
    "replay-capacity": {"buffer_size": 1_000_000},
    "warm-up": {"learning_starts": 100},
    "target-smoothing": {"tau": 0.005},
    "updates-per-second": {"train_freq": 1, "gradient_steps": 1},
}
"""The settings behind SAC's parts, with what Stable-Baselines3 takes where the file says nothing."""
_COUNTED_IN_STEPS = ("n_timesteps", "sde_sample_freq", "frame_stack", "buffer_size", "learning_starts", "train_freq")
"""Further settings whose meaning in seconds changes with the cycle time."""


@dataclass(frozen=True)
class ZooTransfer:
    """A Zoo file in which one environment was carried to another cycle time."""

    text: str
    """The whole file, every byte but the changed values as it was."""
    values: Hyperparameters
    """The carried hyper-parameters."""
    changed: Mapping[str, int | float]
    """The Zoo's keys that changed, with their new values."""
    notes: tuple[str, ...]
    """What the reader should know beside the notes of the values."""


def transfer_entry(
    text: str,
    env_id: str,
    algorithm: str,
    from_dt: DurationLike,
    to_dt: DurationLike,
    rule: str | None = None,
    also: Collection[str] = (),
    action_size: int | None = None,
) -> ZooTransfer:
    """Carry the entry of one environment from the cycle time it was tuned at to another."""
    entry = read_entry(text, env_id)
    n_envs = _whole(entry.get("n_envs", 1), f"{env_id}: n_envs")
    before = _read(entry, algorithm, from_dt, n_envs, also, action_size)
    after = before.at(to_dt, rule, also)
    old, new = before.to(_LIBRARY, n_envs), after.to(_LIBRARY, n_envs)
    changed = {key: value for key, value in new.items() if value != old.get(key)}
    new_text, notes = rewrite_entry(text, env_id, changed)
    left_alone = [key for key in _COUNTED_IN_STEPS if key in entry and key not in changed and to_dt != from_dt]
    if left_alone:
        notes += (f"Counted in agent steps, but left alone: {', '.join(f'{key} {entry[key]}' for key in left_alone)}.",)
    return ZooTransfer(new_text, after, changed, (*new.notes, *notes))


def _read(
    entry: Mapping[str, object],
    algorithm: str,
    dt: DurationLike,
    n_envs: int,
    also: Collection[str],
    action_size: int | None,
) -> Hyperparameters:
    if algorithm == "ppo":
        keys: dict[str, Any] = dict.fromkeys(("n_steps", "batch_size", "gamma", "gae_lambda"))
    else:
        keys = {"gamma": None, "action_size": action_size}
        for part in also:
            keys |= SB3_DEFAULTS_OF_PARTS.get(part, {})
    given = {key: entry.get(key, default) for key, default in keys.items()}
    return ALGORITHMS[algorithm].from_(_LIBRARY, dt=dt, n_envs=n_envs, **given)


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise InputError(f"{name} is {value!r}: it must be a whole number.")
    return int(value)
