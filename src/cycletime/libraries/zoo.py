"""What RL Baselines3 Zoo files have beside Stable-Baselines3's settings: wrappers, and what it saves of a training."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from cycletime.duration import Duration, typed_duration
from cycletime.errors import InputError
from cycletime.libraries.plain_yaml import is_saved_ordered_dict, load_yaml
from cycletime.libraries.time_keys import WRAPPER_NAME

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


NOISE = "noise_std"
"""The Zoo's own setting, of which it makes Stable-Baselines3's action_noise."""


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
            f"No env_wrapper was written, since {to_dt} is not a whole multiple of the environment's step, {step}: the "
            f"environment itself must step every {to_dt} (cycletime.tasks.retime makes MuJoCo's and Pendulum do so)."
        )
    wrapper, steps = {WRAPPER_NAME: {"dt": str(to_dt), "env_dt": str(step)}}, "step" if held == 1 else "steps"
    return [*wrappers, wrapper], (
        f"The env_wrapper holds each action for {held} {steps} of {step}: take it out if the environment itself steps "
        f"every {to_dt}."
    )
