"""Carry one environment of a Zoo file to another cycle time: read it as Stable-Baselines3, carry it, write it back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cycletime.duration import DurationLike
from cycletime.errors import InputError
from cycletime.rules.hyperparameters import Hyperparameters, part_names
from cycletime.rules.libraries import LIBRARIES
from cycletime.rules.ppo import PPO
from cycletime.rules.quantities import whole_number
from cycletime.rules.sac import SAC
from cycletime.rules.zoo.rewriting import read_entry, rewrite_entry

_LIBRARY = "stable-baselines3"
ALGORITHMS: Mapping[str, type[Hyperparameters]] = {"ppo": PPO, "sac": SAC}
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "ppo": ("n_steps", "batch_size", "gamma", "gae_lambda"),
    "sac": ("gamma",),
    "replay-capacity": ("buffer_size",),
    "warm-up": ("learning_starts",),
    "target-smoothing": ("tau",),
    "updates-per-second": ("train_freq", "gradient_steps"),
    "target-entropy": ("target_entropy",),
}
"""The settings behind each algorithm and part."""
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
    also: str | Collection[str] = (),
    action_size: int | None = None,
) -> ZooTransfer:
    """Carry the entry of one environment from the cycle time it was tuned at to another."""
    also = part_names(also)
    if "exploration-noise" in also:
        raise InputError("exploration-noise is no single number in a Zoo file: leave it out and set the noise by hand.")
    entry = read_entry(text, env_id)
    n_envs = _n_envs(entry, env_id)
    said = _settings(entry, algorithm, also)
    extra = {"action_size": action_size} if algorithm == "sac" else {}
    before = ALGORITHMS[algorithm].from_(_LIBRARY, dt=from_dt, n_envs=n_envs, **said, **extra)
    after = before.at(to_dt, rule, also)
    exported = after.to(_LIBRARY, n_envs)
    changed = {} if after == before else _changes(said, dict(exported), before.to(_LIBRARY, n_envs))
    new_text, notes = rewrite_entry(text, env_id, changed)
    if after.dt != before.dt:
        notes += _left_alone(entry, changed)
    return ZooTransfer(new_text, after, changed, (*exported.notes, *notes))


def _settings(entry: Mapping[str, object], algorithm: str, also: Collection[str]) -> dict[str, Any]:
    """What the entry says of the settings that matter here, or Stable-Baselines3's default."""
    said: dict[str, Any] = {}
    sac = LIBRARIES[_LIBRARY].sac
    defaults = sac.defaults if sac and algorithm == "sac" else {}  # reading fills in PPO's
    for group in (algorithm, *also):
        for key in _SETTINGS.get(group, ()):
            said[key] = defaults.get(key) if entry.get(key) is None else entry[key]
    if said.get("target_entropy") == "auto":
        said["target_entropy"] = None
    return said


def _changes(said: Mapping[str, Any], new: dict[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """The settings to write: those that were carried, and differ from what the entry says."""
    carried = {key for key in new if new[key] != old.get(key)}
    if carried & {"train_freq", "gradient_steps"}:
        carried |= {"train_freq", "gradient_steps"}
        new |= _updates_in_the_same_rhythm(said["train_freq"], new)
    return {key: new[key] for key in new if key in carried and new[key] != said.get(key)}


def _updates_in_the_same_rhythm(period: int, new: Mapping[str, Any]) -> dict[str, int]:
    """Keep the entry's train_freq where a whole number of updates fits: after 64 steps 32 updates, not after 2 one."""
    updates = Fraction(new["gradient_steps"], new["train_freq"]) * Fraction(period)
    return {"train_freq": period, "gradient_steps": updates.numerator} if updates.denominator == 1 else {}


def _left_alone(entry: Mapping[str, object], changed: Collection[str]) -> tuple[str, ...]:
    counts = {key: entry[key] for key in _COUNTED_IN_STEPS if key in entry and key not in changed}
    listed = [f"{key} {value:.12g}" for key, value in counts.items() if isinstance(value, int | float)]
    return (f"Counted in agent steps, but left alone: {', '.join(listed)}.",) if listed else ()


def _n_envs(entry: Mapping[str, object], env_id: str) -> int:
    said = entry.get("n_envs", 1)
    # configuration files write counts as 1e1 at times
    return whole_number(f"{env_id}: n_envs", int(said) if isinstance(said, float) and said.is_integer() else said)
