"""How long one step of an environment lasts, and that all its wrappers mean the same step.

A layer is the environment itself or a wrapper. One that has an attribute ``dt`` publishes how long one of its own steps
lasts: `CycleTime`, ``Retime`` and the delays do, many environments do, and a frame-skipping wrapper of one's own can.
The metadata's ``render_fps`` is never asked: it says how videos are played and is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor
from typing import Any, TypeAlias

import gymnasium as gym

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError

AnyEnv: TypeAlias = "gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]"
_Wrapper: TypeAlias = "gym.Wrapper[Any, Any, Any, Any]"


def step_duration(env: AnyEnv, env_dt: DurationLike | None = None) -> Duration:
    """How long one ``env.step`` lasts: what the outermost layer with a ``dt`` says, else ``env_dt``."""
    published = _published_step(env)
    if env_dt is not None:
        given = Duration(env_dt)
        if published is None or given == published:
            return given
        remedy = "leave env_dt out; for another step see retime"
        raise InputError(f"env_dt is {given}, but a step of {_id_of(env)} lasts {published}: {remedy}.")
    if published is None:
        wrong = getattr(env.unwrapped, "dt", None)
        said = "no time step (env.unwrapped.dt)" if wrong is None else f"dt = {wrong!r}, no time step"
        raise InputError(
            f"{_id_of(env)} publishes {said}: give it, for example env_dt='20ms' (--env-dt on the command line)."
        )
    return published


def wrapper_layers(env: AnyEnv) -> Iterator[_Wrapper]:
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def whole_steps(name: str, span_s: Fraction, step: Duration, least: int) -> int:
    """How many steps are in a span that must be a whole multiple of them; the message names the span."""
    steps = span_s / step.exact_s
    if steps.denominator == 1 and steps >= least:
        return steps.numerator
    below = max(least, floor(steps))
    nearest = [str(step * count) if count else "0s" for count in (below, below + 1)]
    why = f"is not a whole multiple of the environment's step {step}: the nearest are {nearest[0]} and {nearest[1]}"
    raise InputError(f"The {name} {Duration(span_s) if span_s else '0s'} {why}.")


def refuse_unreachable_limit(env: gym.Env[Any, Any], time_limit: Duration, step: Duration) -> None:
    """Refuse a time limit that is never reached, since a ``TimeLimit`` inside ends episodes before."""
    for layer in wrapper_layers(env):
        if isinstance(layer, gym.wrappers.TimeLimit):
            inner = step * layer._max_episode_steps
            if inner < time_limit:
                why = f"since {env} ends episodes after {inner} already: make it with max_episode_steps=-1"
                raise InputError(f"The time limit {time_limit} is never reached, {why}.")
        step = _published_step(layer.env) or step * Fraction(1, _repeats(layer))


def clock_info(env_steps: Any, agent_steps: Any, env_dt: Duration, lasted: Any) -> dict[str, Any]:  # noqa: ANN401
    """What ``info`` tells of an episode's time, in numbers or arrays of many copies; the last cycle took `lasted`."""
    elapsed_s = env_steps * env_dt.exact_s.numerator / env_dt.exact_s.denominator
    return {"env_steps": env_steps, "agent_steps": agent_steps, "elapsed_s": elapsed_s, "cycle_steps": lasted}


def duration_text(span: DurationLike | None) -> str | None:
    return None if span is None else str(Duration(span))


def _published_step(env: AnyEnv) -> Duration | None:
    """The step of the outermost layer with a ``dt``, times the repeats of wrappers outside of it."""
    own = _own_dt(env)
    if not isinstance(env, gym.Wrapper):
        return own
    inside = _published_step(env.env)
    if own is None or inside is None:
        return own or (inside * _repeats(env) if inside else None)
    if (own / inside).denominator != 1:
        raise InputError(
            f"{env} publishes dt = {own}, but a step of what it wraps lasts {inside}: it must be a whole multiple."
        )
    return own


def _own_dt(env: AnyEnv) -> Duration | None:
    published = getattr(env if isinstance(env, gym.Wrapper) else env.unwrapped, "dt", None)
    try:
        return None if published is None else Duration.of_seconds(published)
    except InputError:
        return None


def _id_of(env: AnyEnv) -> str:
    """Its id where it has one: the names of all its wrappers would hide it."""
    return str(env if env.spec is None else env.spec.id)


def _repeats(layer: _Wrapper) -> int:
    if isinstance(layer, gym.wrappers.RepeatAction):
        return int(layer.num_repeats)
    if isinstance(layer, gym.wrappers.MaxAndSkipObservation):
        return int(layer._skip)
    return int(getattr(layer, "hold_steps", 1))
