"""Settings as words of a command line: Isaac Lab's, mjlab's, MuJoCo Playground's flags, or NAME=VALUE of any other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from shlex import quote
from typing import Any, TypeAlias

from cycletime.libraries.names import LIBRARIES, PREFIXES, table_names
from cycletime.libraries.on_policy import MANY_ENVIRONMENTS
from cycletime.libraries.parameters import flatten_settings
from cycletime.libraries.time_keys import ENVIRONMENT_KEYS, canonical_names, means_time

Words: TypeAlias = tuple[list[str], tuple[str, ...]]
"""Words of a command line, and notes on what has none there."""
PLAYGROUNDS = ("brax", "mujoco-playground")
_PLAYGROUND_FLAGS = (
    *("num_timesteps", "reward_scaling", "episode_length", "unroll_length", "num_minibatches", "discounting", "seed"),
    *("learning_rate", "num_envs", "batch_size", "clipping_epsilon", "action_repeat", "entropy_cost", "max_grad_norm"),
    *("num_updates_per_batch", "num_evals"),
)
"""The trainer's settings that the command line of MuJoCo Playground takes."""


def full_names(library: str, algorithm: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names of Isaac Lab's command line, in its libraries' words; what is not known there as it is."""
    if library not in MANY_ENVIRONMENTS:
        return dict(values)
    table = table_names(LIBRARIES[library][algorithm])
    canonical = canonical_names(library, values, table)
    return {_full_name(library, name, canonical[name], table): value for name, value in values.items()}


def _full_name(library: str, given: str, name: str, table: set[str]) -> str:
    local = name if given.endswith(name) else given.rpartition(".")[2]  # skrl's lambda stays what it is called
    if name in ("scene.num_envs", "num_envs"):
        return "env.scene.num_envs"
    of_side = given.startswith("env.") or (given.startswith("agent.") and PREFIXES[library][0][0] == "agent.")
    if of_side or (name not in table and not means_time(library, name)):
        return given
    if library == "isaac-lab" and name not in table:
        of_env = any(fnmatchcase(name, key.pattern) for key in ENVIRONMENT_KEYS[library])
        return f"env.{local}" if of_env else f"agent.{local}"
    if library == "skrl" and name.startswith(("memory.", "trainer.", "timesteps")):
        return f"agent.{local}" if "." in local else f"agent.trainer.{local}"
    return PREFIXES[library][0][0] + local


def override_words(library: str, algorithm: str, values: Mapping[str, Any]) -> Words:
    """Settings in a library's words for its command line."""
    if library not in PLAYGROUNDS:
        return as_words(library, full_names(library, algorithm, flatten_settings(values))), ()
    agent, environment = dict[str, Any](), dict[str, Any]()
    for name, value in values.items():
        bare = name.removeprefix("env.").removeprefix("config.")
        of_env = bare != name or "_config." in name or (means_time(library, name) and name not in _PLAYGROUND_FLAGS)
        (environment if of_env else agent)[bare.removeprefix("ppo.")] = value
    return playground_words(agent, environment)


def as_words(library: str, values: Mapping[str, Any], is_flags: bool = False) -> list[str]:
    """Words of settings by their names on the command line, which takes flags or NAME=VALUE."""
    dashes = "--" if is_flags or library in ("cleanrl", "lerobot") else ""
    words = []
    for name, value in values.items():
        text = quote(value) if isinstance(value, str) else "null" if value is None else str(value).replace(" ", "")
        words.append(f"{dashes}{name.replace('_', '-') if library == 'cleanrl' else name}={text}")
    return words


def playground_words(agent: Mapping[str, Any], environment: Mapping[str, Any]) -> Words:
    flags = {name: value for name, value in agent.items() if name in _PLAYGROUND_FLAGS}
    left = [f"{name} {value}" for name, value in agent.items() if name not in flags]
    if environment:
        flags["playground_config_overrides"] = quote(json.dumps(environment, separators=(",", ":")))
    note = f"Playground's trainers have no flag for {', '.join(left)}: set it in the trainer's configuration."
    return [f"--{name}={value}" for name, value in flags.items()], (note,) if left else ()
