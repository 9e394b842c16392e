"""What a configuration means in seconds, for people: a row for each of its times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from cycletime.libraries.configuration import Configuration, Setting
from cycletime.libraries.time_keys import looks_like_time
from cycletime.rules.quantities import format_seconds, smoothing_in_seconds

_OF_CYCLE, _RATE = re.compile(r"dt$|decimation$"), re.compile(r"freq|_hz$")


class Row(NamedTuple):
    what: str
    value: str
    meaning: str
    place: str = ""


def describe(c: Configuration) -> Iterator[Row]:
    dt = c.dt_s
    if dt and c.cycle_time:
        yield Row("cycle time", f"{dt * 1000:.4g} ms ({1 / dt:.4g} Hz)", c.cycle_time[1])
    if c.n_envs:
        yield _row("environments", c.n_envs, "")
    if c.discount and c.discount_steps is not None:
        yield _row("discount", c.discount, f"horizon {c.discount_steps:.4g} steps{_seconds(c.discount_steps, dt)}")
    if c.trace_decay and c.trace_steps is not None:
        yield _row("trace", c.trace_decay, f"gamma lambda: {c.trace_steps:.3g} steps{_seconds(c.trace_steps, dt)}")
    if c.rollout:
        yield _row("rollout", c.rollout, f"{_span(c.rollout.value, dt)} in each environment")
    if c.batch:
        yield Row("batch", f"{c.batch} samples", f"{_span(c.batch, dt)} of experience per update")
    yield from _describe_updates(c, dt)
    if c.episode:
        steps = f", {ceil(c.episode[1] / dt - 1e-6)} steps" if dt else ""
        yield _row("episode", c.episode[0], f"{format_seconds(c.episode[1])}{steps}")
    if c.training_steps:
        yield _row("training", c.training_steps[0], f"{_span(c.training_steps[1], dt)} in each environment")
    yield from _describe_environment(c, dt)


def _describe_updates(c: Configuration, dt: float | None) -> Iterator[Row]:
    count = c.minibatch_count.value if c.minibatch_count else None
    if count is None and c.batch and c.minibatch_size:
        count = ceil(c.batch / c.minibatch_size.value)
    if c.rollout and count and c.epochs and dt:
        per_second = f"{count * c.epochs.value / (c.rollout.value * dt):.4g} per simulated second"
        yield Row("gradient steps", f"{count} mini-batches x {c.epochs.value:g} epochs", per_second)


def _describe_environment(c: Configuration, dt: float | None) -> Iterator[Row]:
    for name, each in c.env.items():
        last = name.rpartition(".")[2]
        number = c.positive(each)
        if last in ("history_length", "history_len", "frame_stack", "c_frame_stack", "include_history_steps"):
            if number and number > 1 and dt and not name.startswith("scene."):  # sensors count physics steps
                yield _row("history", each, _span(number, dt))
        elif last in ("min_delay", "max_delay") and number and c.physics_dt_s and not name.startswith("actions."):
            yield _row("delay", each, f"{format_seconds(number * c.physics_dt_s)}, counted in physics steps")
        elif last == "alpha" and name.startswith("actions.") and number and number < 1 and dt:
            yield _row("filter", each, f"time constant {format_seconds(smoothing_in_seconds(number, dt))}")
        elif last == "update_period" and number:
            yield _row("sensor period", each, format_seconds(number))
        elif c.environment == "deployment" and number and looks_like_time(last) and not _OF_CYCLE.search(last):
            steps = f"{_span(number, dt)} if it counts cycles" if isinstance(each.value, int) else "check"
            yield _row("may mean time", each, "a rate: stays" if _RATE.search(last) else steps)
    for each in c.curricula():
        updates = f", {each.value / c.rollout.value:.4g} updates" if c.rollout else ""
        yield _row("curriculum", each, f"{_span(each.value, dt)}{updates}")


def _row(what: str, setting: Setting, meaning: str) -> Row:
    return Row(what, setting.text, meaning, setting.place)


def _span(steps: float, dt_s: float | None) -> str:
    return format_seconds(steps * dt_s) if dt_s else f"{round(steps)} steps"


def _seconds(steps: float, dt_s: float | None) -> str:
    return f", {format_seconds(steps * dt_s)}" if dt_s else ""
