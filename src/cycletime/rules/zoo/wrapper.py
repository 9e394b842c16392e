"""The ``env_wrapper`` of a Zoo entry: `CycleTime`, which makes an environment take longer cycles than its step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cycletime.duration import Duration, typed_duration

CYCLE_TIME = "cycletime.tasks.CycleTime"


def wrapped(entry: Mapping[str, object], from_dt: Duration, to_dt: Duration) -> tuple[list[Any] | None, str]:
    """The entry's wrappers with one around them that holds actions for ``to_dt``, or None where none can; and a note.

    What the entry describes takes ``from_dt`` per step, other wrappers included, unless a `CycleTime` is there already.
    """
    said = entry.get("env_wrapper")
    wrappers: list[Any] = list(said) if isinstance(said, list) else [] if said is None else [said]
    step = from_dt
    if wrappers and isinstance(wrappers[-1], dict) and isinstance(wrappers[-1].get(CYCLE_TIME), dict):
        step = typed_duration(wrappers.pop()[CYCLE_TIME].get("env_dt", from_dt))
    held = to_dt / step
    if held.denominator != 1:
        return None, (
            f"No env_wrapper was written, since {to_dt} is not a whole multiple of the environment's step, {step}: "
            f"the environment itself must step every {to_dt}."
        )
    wrapper = {CYCLE_TIME: {"dt": str(to_dt), "env_dt": str(step)}}
    return [*wrappers, wrapper], (
        f"The env_wrapper holds each action for {held} steps of {step}: take it out if the environment itself steps "
        f"every {to_dt}."
    )
