"""What a configuration means in seconds, for people: a row for each of its times."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from cycletime.libraries.configuration import Configuration
from cycletime.rules.quantities import decay_in_seconds, format_seconds, smoothing_in_seconds


class Row(NamedTuple):
    """One line of the description."""

    what: str
    value: str
    meaning: str
    place: str = ""


def describe(c: Configuration) -> Iterator[Row]:
    """What its settings mean."""
    dt = c.dt_s
    if c.cycle_time:
        rate = f"{1 / float(c.cycle_time[0]):.4g} Hz"
        yield Row("cycle time", f"{_milliseconds(float(c.cycle_time[0]))} ({rate})", c.cycle_time[1])
    if c.n_envs:
        yield Row("environments", c.n_envs.text, "", c.n_envs.place)
    if c.discount:
        yield Row("discount", c.discount.text, _horizon(c.discount.value, dt), c.discount.place)
    if c.trace_decay and c.trace_steps is not None:
        span = f", {format_seconds(c.trace_steps * dt)}" if dt else ""
        yield Row("trace", c.trace_decay.text, f"gamma lambda: {c.trace_steps:.3g} steps{span}", c.trace_decay.place)
    if c.rollout:
        span = _span(c.rollout.value, dt)
        yield Row("rollout", c.rollout.text, f"{span} in each environment".removeprefix(" "), c.rollout.place)
    if c.batch:
        yield Row("batch", f"{c.batch} samples", f"{_span(c.batch, dt)} of experience per update".removeprefix(" "))
    yield from _describe_updates(c, dt)
    if c.episode:
        steps = f"{ceil(c.episode[1] / dt - 1e-6)} steps" if dt else ""
        yield Row(
            "episode",
            c.episode[0].text,
            ", ".join(filter(None, [format_seconds(c.episode[1]), steps])),
            c.episode[0].place,
        )
    if c.training_steps:
        stated, steps_each = c.training_steps
        yield Row(
            "training", stated.text, f"{_span(steps_each, dt)} in each environment".removeprefix(" "), stated.place
        )
    yield from _describe_environment(c, dt)


def _describe_updates(c: Configuration, dt: float | None) -> Iterator[Row]:
    count = c.minibatch_count.value if c.minibatch_count else None
    if count is None and c.batch and c.minibatch_size:
        count = ceil(c.batch / c.minibatch_size.value)
    if c.rollout and count and c.epochs and dt:
        updates = count * c.epochs.value / (c.rollout.value * dt)
        yield Row(
            "gradient steps", f"{count} mini-batches x {c.epochs.value:g} epochs", f"{updates:.4g} per simulated second"
        )


def _describe_environment(c: Configuration, dt: float | None) -> Iterator[Row]:
    for name, each in c.env.items():
        last = name.rpartition(".")[2]
        number = c.positive(each)
        if last in ("history_length", "history_len", "frame_stack", "c_frame_stack", "include_history_steps"):
            if number and number > 1 and dt and not name.startswith("scene."):  # sensors count physics steps
                yield Row("history", each.text, _span(number, dt), each.place)
        elif last in ("min_delay", "max_delay") and number and c.physics_dt_s:
            yield Row(
                "delay", each.text, f"{format_seconds(number * c.physics_dt_s)}, counted in physics steps", each.place
            )
        elif last == "alpha" and name.startswith("actions.") and number and number < 1 and dt:
            yield Row(
                "filter", each.text, f"time constant {format_seconds(smoothing_in_seconds(number, dt))}", each.place
            )
        elif last == "update_period" and number:
            yield Row("sensor period", each.text, format_seconds(number), each.place)
    for each in c.curricula():
        updates = f", {each.value / c.rollout.value:.4g} updates" if c.rollout else ""
        yield Row("curriculum", each.text, f"{_span(each.value, dt)}{updates}", each.place)


def _milliseconds(dt_s: float) -> str:
    return f"{dt_s * 1000:.4g} ms"


def _span(steps: float, dt_s: float | None) -> str:
    return format_seconds(steps * dt_s) if dt_s else f"{steps:.6g} steps"


def _horizon(factor: float, dt_s: float | None) -> str:
    steps = decay_in_seconds(factor, 1.0)
    return f"horizon {steps:.4g} steps{f', {format_seconds(steps * dt_s)}' if dt_s else ''}"
