"""What RL Baselines3 Zoo files have beside Stable-Baselines3's settings: wrappers, and what it saves of a training."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import yaml

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.libraries.plain_yaml import is_saved_ordered_dict, load_yaml
from cycletime.libraries.time_keys import WRAPPER_NAME, WRAPPER_NAMES

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


_MUJOCO = "Reacher|Pusher|Inverted(Double)?Pendulum|HalfCheetah|Hopper|Walker2d|Swimmer|Ant|Humanoid(Standup)?"
RETIMED = re.compile(f"({_MUJOCO})-v5|Pendulum-v1")
"""The ids that `cycletime.tasks.retime` knows, as its tests hold."""


def with_cycle_time_wrapper(said: object, env_id: str | None, from_dt: Duration, to_dt: Duration) -> tuple[Any, str]:
    """An entry's wrappers with actions held for ``to_dt``, or None where none can; and a note.

    A `CycleTime` that is there gets another dt. Else what the entry describes takes ``from_dt`` per step, other
    wrappers included, and one is put around them.
    """
    wrappers: list[Any] = list(said) if isinstance(said, list) else [] if said is None else [said]
    keys = [(at, key) for at, each in enumerate(wrappers) if isinstance(each, dict) for key in each]
    ours = [(at, key) for at, key in keys if WRAPPER_NAMES.fullmatch(key) and wrappers[at][key]]
    at, name = ours[-1] if ours else (len(wrappers), WRAPPER_NAME)
    keywords: dict[str, Any] = wrappers[at][name] if ours else {"dt": None, "env_dt": str(from_dt)}
    step = Duration(keywords["env_dt"]) if "env_dt" in keywords else None
    held = to_dt / (step or from_dt)
    if step and held.denominator != 1:
        cannot = f"{to_dt} is not a whole multiple of the environment's step, {step}"
        knows = (
            "makes it do so"
            if RETIMED.fullmatch(env_id or "")
            else "can, once register_retiming describes it: docs/retime.md"
        )
        common = step * Fraction(1, held.denominator)  # of which the new cycle and the episode are whole multiples
        hold = f", and CycleTime hold each action for {to_dt}" if common != to_dt else ""
        must = f"the environment itself must step every {common} (cycletime.tasks.retime {knows}){hold}"
        if ours:
            raise InputError(f"{cannot}: take CycleTime out of env_wrapper and give --from {from_dt}; {must}.")
        return None, f"No env_wrapper was written, since {cannot}: {must}; rename the entry to its id."
    span = f"{held} {'step' if held == 1 else 'steps'} of {step}"
    span = span if step else f"{to_dt}, which must be a whole multiple of the environment's step"
    new = {**(wrappers[at] if ours else {}), name: {**keywords, "dt": str(to_dt)}}
    note = f"The env_wrapper holds each action for {span}: take it out if the environment itself steps every {to_dt}."
    return [*wrappers[:at], new, *wrappers[at + 1 :]] if not ours or isinstance(said, list) else new, note
