"""RL Baselines3 Zoo files: one environment's entry carried to another cycle time, every other byte as it was.

The entry is read as Stable-Baselines3 would take it, carried, and written back. A ``config.yml`` that the Zoo saves
beside a trained agent is read as well: a dump of one OrderedDict with tags that name Python's classes. Those of plain
data are read as plain data; nothing is imported or called, and every other tag is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from typing import Any

import yaml

from cycletime.duration import Duration, DurationLike, typed_duration
from cycletime.errors import InputError, did_you_mean
from cycletime.libraries import LIBRARIES, read_settings
from cycletime.libraries.plain_yaml import is_saved_ordered_dict, load_yaml
from cycletime.libraries.yaml_edit import read_entry, rewrite_entry
from cycletime.rules import ALGORITHMS, Rule
from cycletime.rules.hyperparameters import Hyperparameters, part_names
from cycletime.rules.laws import nearest_whole
from cycletime.rules.quantities import check_count
from cycletime.rules.sac import SAC, OffPolicy

_NOT_PLAIN = re.compile(r"!!python/(?!tuple\b|object/apply:collections\.OrderedDict\b)\S*")


def as_zoo_file(text: str, env_id: str) -> tuple[str, tuple[str, ...]]:
    """The text, or if it is a saved configuration a Zoo file with that as the environment's entry; and a note then."""
    if not is_saved_ordered_dict(text):
        return text, ()
    if tag := _NOT_PLAIN.search(text):
        # It would be text in the file that is written.
        raise InputError(f"The saved configuration cannot be read: {tag.group()} is refused, nothing is executed.")
    note = f"A saved configuration has no environment's name: it is written as the entry {env_id} of a Zoo file."
    return yaml.safe_dump({env_id: load_yaml(text)}, sort_keys=False, allow_unicode=True), (note,)


WRAPPER_NAME = "cycletime.tasks.CycleTime"


def with_cycle_time_wrapper(
    entry: Mapping[str, object], from_dt: Duration, to_dt: Duration
) -> tuple[list[Any] | None, str]:
    """The entry's wrappers with one around them that holds actions for ``to_dt``, or None where none can; and a note.

    What the entry describes takes ``from_dt`` per step, other wrappers included, unless a `CycleTime` is there already.
    """
    said = entry.get("env_wrapper")
    wrappers: list[Any] = list(said) if isinstance(said, list) else [] if said is None else [said]
    step = from_dt
    if wrappers and isinstance(wrappers[-1], dict) and isinstance(wrappers[-1].get(WRAPPER_NAME), dict):
        step = typed_duration(wrappers.pop()[WRAPPER_NAME].get("env_dt", from_dt))
    held = to_dt / step
    if held.denominator != 1:
        return None, (
            f"No env_wrapper was written, since {to_dt} is not a whole multiple of the environment's step, {step}: "
            f"the environment itself must step every {to_dt}."
        )
    wrapper = {WRAPPER_NAME: {"dt": str(to_dt), "env_dt": str(step)}}
    return [*wrappers, wrapper], (
        f"The env_wrapper holds each action for {held} steps of {step}: take it out if the environment itself steps "
        f"every {to_dt}."
    )


_LIBRARY = "stable-baselines3"
_NOISE = "noise_std"
"""The Zoo's own setting, of which it makes Stable-Baselines3's action_noise."""


@dataclass(frozen=True)
class ZooTransfer:
    """A Zoo file in which one environment was carried to another cycle time."""

    text: str
    """The whole file, every byte but the changed values as it was."""
    values: Hyperparameters
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
    """Carry the entry of one environment from the cycle time it was tuned at to another."""
    if algorithm not in ALGORITHMS:
        known = f"{', '.join(ALGORITHMS)}{did_you_mean(algorithm, ALGORITHMS)}"
        raise InputError(f"{algorithm!r} is not an algorithm with a rule: choose one of {known}")
    text, notes = as_zoo_file(text, env_id)
    entry = read_entry(text, env_id)
    before = _read_entry_values(entry, env_id, ALGORITHMS[algorithm], Duration(from_dt), part_names(also), action_size)
    after = before.at(to_dt, rule, also)
    if after.dt == before.dt:
        return ZooTransfer(text, after, {}, notes)
    exported = _without_noise(after).to(_LIBRARY)
    changed = _changes(before, after, exported)
    if "n_timesteps" in entry:
        changed["n_timesteps"] = _scale_timesteps(entry["n_timesteps"], env_id, after.dt / before.dt)
    wrappers, note = with_cycle_time_wrapper(entry, before.dt, after.dt)
    if wrappers:
        changed["env_wrapper"] = wrappers
    new_text, notes_on_text = rewrite_entry(text, env_id, changed)
    return ZooTransfer(new_text, after, changed, (*exported.notes, *notes, *notes_on_text, note))


def _read_entry_values(
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
    values = read_settings(kind, _LIBRARY, dt, _n_envs(entry, env_id), settings)
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


def _scale_timesteps(value: object, env_id: str, rho: Fraction) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 1:
        raise InputError(f"{env_id}: n_timesteps is {value!r}: it must be a number of at least 1.")
    return nearest_whole(Fraction(value) / rho)


def _n_envs(entry: Mapping[Any, object], env_id: str) -> int:
    said = entry.get("n_envs", 1)
    # configuration files write counts as 1e1 at times
    return check_count(f"{env_id}: n_envs", int(said) if isinstance(said, float) and said.is_integer() else said)
