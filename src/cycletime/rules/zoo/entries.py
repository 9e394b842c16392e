"""Carry one environment of a Zoo file to another cycle time: read it as Stable-Baselines3, carry it, write it back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from typing import Any

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError, did_you_mean
from cycletime.rules import ALGORITHMS, Rule
from cycletime.rules.hyperparameters import Hyperparameters, part_names
from cycletime.rules.laws import nearest_whole
from cycletime.rules.libraries import LIBRARIES, read
from cycletime.rules.off_policy import OffPolicy
from cycletime.rules.quantities import whole_number
from cycletime.rules.sac import SAC
from cycletime.rules.zoo.rewriting import read_entry, rewrite_entry
from cycletime.rules.zoo.saved import as_zoo_file
from cycletime.rules.zoo.wrapper import wrapped

_LIBRARY = "stable-baselines3"
_NOISE = "noise_std"
"""The Zoo's own setting, of which it makes Stable-Baselines3's action_noise."""


@dataclass(frozen=True)
class ZooTransfer:
    """A Zoo file in which one environment was carried to another cycle time."""

    text: str
    """The whole file, every byte but the changed values as it was."""
    values: Hyperparameters
    """The carried hyper-parameters."""
    changed: Mapping[str, Any]
    """The Zoo's keys that changed, with their new values."""
    notes: tuple[str, ...]
    """What the reader should know beside the notes of the values."""


def transfer_entry(
    text: str,
    env_id: str,
    algorithm: str,
    from_dt: DurationLike,
    to_dt: DurationLike,
    rule: str | Rule | None = None,
    also: str | Collection[str] = (),
    action_size: int | None = None,
) -> ZooTransfer:
    """Carry the entry of one environment from the cycle time it was tuned at to another.

    Raises:
        InputError: if the text, the entry or a value of it cannot be carried or rewritten.
    """
    if algorithm not in ALGORITHMS:
        known = f"{', '.join(ALGORITHMS)}{did_you_mean(algorithm, ALGORITHMS)}"
        raise InputError(f"{algorithm!r} is not an algorithm with a rule: choose one of {known}")
    text, notes = as_zoo_file(text, env_id)
    entry = read_entry(text, env_id)
    before = _read(entry, env_id, ALGORITHMS[algorithm], Duration(from_dt), part_names(also), action_size)
    after = before.at(to_dt, rule, also)
    if after.dt == before.dt:
        return ZooTransfer(text, after, {}, notes)
    exported = _without_noise(after).to(_LIBRARY)
    changed = _changes(before, after, exported)
    if "n_timesteps" in entry:
        changed["n_timesteps"] = _carried_timesteps(entry["n_timesteps"], env_id, after.dt / before.dt)
    wrappers, note = wrapped(entry, before.dt, after.dt)
    if wrappers:
        changed["env_wrapper"] = wrappers
    new_text, notes_on_text = rewrite_entry(text, env_id, changed)
    return ZooTransfer(new_text, after, changed, (*exported.notes, *notes, *notes_on_text, note))


def _read(
    entry: Mapping[Any, object],
    env_id: str,
    kind: type[Hyperparameters],
    dt: Duration,
    also: Collection[str],
    action_size: int | None,
) -> Hyperparameters:
    """The entry's values as Stable-Baselines3 would take them."""
    settings = {key: value for key, value in entry.items() if isinstance(key, str) and key != "n_envs"}
    if action_size is not None and issubclass(kind, SAC):
        settings["action_size"] = action_size
    values = read(kind, _LIBRARY, dt, _n_envs(entry, env_id), settings)
    if "exploration-noise" not in also:
        return values
    if not isinstance(values, OffPolicy) or not isinstance(entry.get(_NOISE), int | float):
        raise InputError(
            f"exploration-noise is not a single number in this entry, as a {_NOISE} of sac, tqc, td3 or ddpg would be: "
            "leave it out and set the noise by hand."
        )
    return replace(values, noise_std=entry[_NOISE])  # type: ignore[arg-type]  # checked by the class


def _changes(before: Hyperparameters, after: Hyperparameters, exported: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are others now; what an entry does not say is Stable-Baselines3's default."""
    said = {key: value for key, value in _without_noise(before).to(_LIBRARY).items() if value is not None}
    old = {**getattr(LIBRARIES[_LIBRARY].of(after.algorithm), "defaults", {}), **said}
    # By identity first, since a value that is not a number differs from itself.
    changed = {key: value for key, value in exported.items() if value is not old.get(key) and value != old.get(key)}
    if before.stated().get(_NOISE) != after.stated().get(_NOISE):
        changed[_NOISE] = after.stated()[_NOISE]
    return changed


def _without_noise(values: Hyperparameters) -> Hyperparameters:
    """The values that Stable-Baselines3 has words for."""
    return replace(values, noise_std=None) if isinstance(values, OffPolicy) else values


def _carried_timesteps(value: object, env_id: str, rho: Fraction) -> int:
    """As many agent steps as last for the same time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 1:
        raise InputError(f"{env_id}: n_timesteps is {value!r}: it must be a number of at least 1.")
    return nearest_whole(Fraction(value) / rho)


def _n_envs(entry: Mapping[Any, object], env_id: str) -> int:
    said = entry.get("n_envs", 1)
    # configuration files write counts as 1e1 at times
    return whole_number(f"{env_id}: n_envs", int(said) if isinstance(said, float) and said.is_integer() else said)
