"""What a configuration means in seconds, for people: a row for each of its times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from cycletime.libraries.carry_configuration import read_as_transfer
from cycletime.libraries.configuration import MJLAB_DEFAULT, Configuration, Setting
from cycletime.libraries.off_policy import OffPolicyTable
from cycletime.libraries.parameters import param_names
from cycletime.libraries.synonyms import our_fields
from cycletime.libraries.time_keys import PHYSICS, SENSOR, SETS, TimeKey
from cycletime.rules.laws import COUNT, POWER, PROPORTIONAL, SMOOTHING
from cycletime.rules.quantities import format_seconds, smoothing_in_seconds
from cycletime.rules.sac import OffPolicy

_WHAT = {"update_period": "sensor period", "curriculum": "curriculum", "history": "history", "delay": "delay"}
_BY_LAW = {SMOOTHING: "filter", POWER: "per step", PROPORTIONAL: "per step"}
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
    if number := c.n_envs or c.default_n_envs:
        yield _row("environments", number, "" if c.n_envs else MJLAB_DEFAULT)
    if c.discount and c.discount_steps is not None:
        yield _row("discount", c.discount, f"horizon {c.discount_steps:.4g} steps{c.seconds(c.discount_steps, ', {}')}")
    if c.trace_decay and c.trace_steps is not None:
        yield _row("trace", c.trace_decay, f"gamma lambda: {c.trace_steps:.3g} steps{c.seconds(c.trace_steps, ', {}')}")
    if c.rollout:
        yield _row("rollout", c.rollout, f"{c.span(c.rollout.value)} in each environment")
    if c.batch:
        yield Row("batch", f"{c.batch} samples", f"{c.span(c.batch)} of experience per update")
    yield from _describe_updates(c)
    if c.episode:
        in_steps = f", {ceil(c.episode[1] / dt - 1e-6)} steps" if dt else ""
        yield _row("episode", c.episode[0], f"{format_seconds(c.episode[1])}{in_steps}")
    if c.training_steps:
        yield _row("training", c.training_steps[0], f"{c.span(c.training_steps[1])} in each environment")
    yield from _describe_values(c)
    yield from _describe_timed(c)


def _describe_updates(c: Configuration) -> Iterator[Row]:
    count = c.minibatch_count.value if c.minibatch_count else None
    if count is None and c.batch and c.minibatch_size:
        count = ceil(c.batch / c.minibatch_size.value)
    if c.rollout and count and c.epochs and c.dt_s:
        per_second = f"{count * c.epochs.value / (c.rollout.value * c.dt_s):.4g} per simulated second"
        yield Row("gradient steps", f"{count} mini-batches x {c.epochs.value:g} epochs", per_second)


def _describe_values(c: Configuration) -> Iterator[Row]:
    """An off-policy algorithm's values besides the discount, as a transfer reads them."""
    values = read_as_transfer(c)
    if not isinstance(values, OffPolicy) or not isinstance(c.table, OffPolicyTable):
        return
    fields, spans = our_fields(c.library or "", values.algorithm), values.seconds()
    fields |= dict.fromkeys(param_names(c.table.updates), "updates_per_step")
    for each in values.quantities[1:]:  # after the discount
        said = [c.canonical[name].text for name, ours in fields.items() if ours == each.field and name in c.canonical]
        if said and (span := spans.get(each.field)):
            steps, number = span / (c.dt_s or 1), c.n_envs.value if c.n_envs else 1
            over_all = f" over all environments, {c.span(steps / number)} in each" if number > 1 else ""
            yield Row(each.span, ", ".join(said), f"{c.span(steps)}{over_all}")


def _describe_timed(c: Configuration) -> Iterator[Row]:
    """Settings beside the algorithm's values, from what a transfer knows of each; those of unknown names at the end."""
    described = [said[0].name for said in (c.episode, c.training_steps) if said]
    for each, key, is_pay in c.timed:
        number = float(any(each.numbers) and key.law == PROPORTIONAL and key.carried) if is_pay else c.positive(each)
        if number and each.name not in described and key.reason != SETS and (meaning := _meaning(c, each, key, number)):
            what = next((what for part, what in _WHAT.items() if part in each.name), _BY_LAW.get(key.law, "steps"))
            yield _row(what, each, meaning)
    for each in c.may_mean_time:
        number, is_rate = c.positive(each), c.environment == "deployment" and _RATE.search(each.name)
        if not _OF_CYCLE.search(each.name):
            steps = f"{c.span(number)} if it counts cycles" if isinstance(each.value, int) and number else "check"
            yield _row("may mean time", each, "a rate: stays" if is_rate else steps)


def _meaning(c: Configuration, each: Setting, key: TimeKey, number: float) -> str:
    """A setting in the seconds of what it counts; empty for one that is in seconds or has no time."""
    head, _, last = each.name.rpartition(".")
    if last == "update_period":
        return format_seconds(number)
    if key.reason in (PHYSICS, SENSOR):
        period = c.physics_dt_s if key.reason == PHYSICS else c.positive(c.settings.get(f"{head}.update_period"))
        return f"{format_seconds(number * period)}: {key.reason}" if period else ""
    if key.law == COUNT:
        updates = c.rollout and "curriculum." in each.name and f", {number / c.rollout.value:.4g} updates"
        cycles = number * (c.rollout.value if c.rollout and key.counts == "batches" else 1)
        return f"{c.span(cycles)}{updates or ''}"
    if key.law == SMOOTHING and c.dt_s and number < 1:
        return f"time constant {format_seconds(smoothing_in_seconds(number, c.dt_s))}"
    return key.reason if key.law in (PROPORTIONAL, POWER) else ""


def _row(what: str, setting: Setting, meaning: str) -> Row:
    return Row(what, setting.text, meaning, setting.place)
