"""What a loop must keep for a policy: delays and histories that it was trained with, and the order of observations.

Layers say it themselves by `observation_names` and `contract_timing`; Gymnasium's own are known here. Of others what
is shown has indices instead of names, since they may have changed the order. Closed forms have no layers: theirs is
written in `training/engine.py`, so that they load no Gymnasium.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import gymnasium as gym
from gymnasium import spaces, wrappers

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.tasks.cycle_time import CycleTime
from cycletime.tasks.env_errors import EnvErrorWrapper
from cycletime.tasks.retime import Retime
from cycletime.tasks.time_step import step_duration, wrapper_layers

Timing: TypeAlias = dict[str, Any]
"""A delay or a history: its kind, and its least and greatest length in steps, with their duration, and in seconds."""
TimingKind: TypeAlias = Literal["action delay", "observation delay", "action history", "observation history"]
_NEUTRAL: tuple[type[Any], ...] = (
    *(CycleTime, Retime, EnvErrorWrapper, gym.RewardWrapper, wrappers.NormalizeReward),
    *(wrappers.OrderEnforcing, wrappers.PassiveEnvChecker, wrappers.TimeLimit, wrappers.Autoreset),
    *(wrappers.RecordEpisodeStatistics, wrappers.RecordVideo, wrappers.RenderCollection, wrappers.HumanRendering),
    *(wrappers.FlattenObservation, wrappers.RepeatAction),
)
"""Wrappers that leave the meaning, order and age of actions and observations as they are, within a cycle."""


def timing(kind: TimingKind, steps: tuple[int, int], step: Duration, **more: str) -> Timing:
    return {
        "kind": kind,
        "steps": list(steps),
        "step_s": float(step),
        "seconds": [float(step.exact_s * count) for count in steps],
        **more,
    }


def past_names(names: Sequence[str], steps: int, newest: int = 1) -> list[str]:
    """Names of what was seen or done in each of the last steps, oldest first; at 0 it is the present."""
    ages = range(newest + steps - 1, newest - 1, -1)
    return [f"{name} {age} step{'s' * (age > 1)} ago" if age else name for age in ages for name in names]


def space_names(space: spaces.Space[Any], name: str) -> list[str]:
    if isinstance(space, spaces.Dict):
        return [each for key, part in space.items() for each in space_names(part, str(key))]
    if isinstance(space, spaces.Tuple):
        return [each for index, part in enumerate(space) for each in space_names(part, f"{name}[{index}]")]
    return [f"{name}[{index}]" for index in range(spaces.flatdim(space))]


def observation_names(env: gym.Env[Any, Any]) -> list[str]:
    names = _published_names(env)
    return names if len(names) == spaces.flatdim(env.observation_space) else _by_index(env)


def _published_names(env: gym.Env[Any, Any]) -> list[str]:
    own = getattr(env, "observation_names", None)
    if isinstance(own, list | tuple) and all(isinstance(name, str) for name in own):
        return list(own)
    if not isinstance(env, gym.Wrapper):
        parts = getattr(env, "observation_structure", None)  # of Gymnasium's environments in MuJoCo
        if not isinstance(parts, dict):
            return _by_index(env)
        shown = {name: size for name, size in parts.items() if not name.startswith("skipped_")}
        return [f"{name}[{index}]" for name, size in shown.items() for index in range(size)]
    if isinstance(env, wrappers.FrameStackObservation):
        return past_names(observation_names(env.env), env.stack_size, newest=0)
    keeps_order = isinstance(env, (*_NEUTRAL, gym.ActionWrapper, wrappers.DelayObservation)) or hasattr(
        env, "contract_timing"
    )
    return observation_names(env.env) if keeps_order else _by_index(env)


def _by_index(env: gym.Env[Any, Any]) -> list[str]:
    return space_names(env.observation_space, "observation")


def timing_contract(env: gym.Env[Any, Any], env_dt: Duration) -> dict[str, Any]:
    """What a policy's files say of the loop that it was trained in; steps last `env_dt` where no layer says else."""
    found: list[Timing] = []
    unknown: list[str] = []
    for layer in (*wrapper_layers(env), env.unwrapped):
        inner = layer.env if isinstance(layer, gym.Wrapper) else layer
        step = env_dt
        with suppress(InputError):
            step = step_duration(inner)
        if callable(own := getattr(layer, "contract_timing", None)):
            found.extend(own(step))
        elif isinstance(layer, wrappers.DelayObservation):
            found.append(timing("observation delay", (layer.delay, layer.delay), step))
        elif isinstance(layer, wrappers.FrameStackObservation):
            found.append(timing("observation history", (layer.stack_size, layer.stack_size), step))
        elif isinstance(layer, gym.Wrapper) and not isinstance(layer, _NEUTRAL):
            unknown.append(type(layer).__name__)
    return {"timing": found, "observation": observation_names(env), "unknown_wrappers": unknown}
