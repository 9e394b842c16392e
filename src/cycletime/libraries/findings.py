"""What is inconsistent in a configuration's times, ranked: each finding one sentence with value, meaning and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from math import exp
from typing import Literal, NamedTuple

from cycletime.errors import InputError
from cycletime.libraries.carry_configuration import read_as_transfer
from cycletime.libraries.configuration import MANAGED, Configuration, Setting
from cycletime.libraries.on_policy import FEW_STEPS, Counted, Sized
from cycletime.libraries.parameters import NotANumberError
from cycletime.rules.laws import KEPT, PROPORTIONAL
from cycletime.rules.quantities import format_seconds

Rank = Literal["contradiction", "warning", "note"]
RANKS: tuple[Rank, ...] = ("contradiction", "warning", "note")
"""By how much they matter: two statements that exclude each other, what likely costs learning, what is good to know."""

_SAME = 0.03
"""Rates within this fraction are one: 0.0166 s is 60 Hz."""
_MOST_AGENTS = 33
_RATE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(k?)Hz\b", re.IGNORECASE)
_INVERSE = re.compile(r"(?<![\w.])1\.?0?\s*/\s*(\d+(?:\.\d+)?)")
_RATE_IN_NAME = re.compile(r"(?<![A-Za-z\d])(\d{1,4})[ _-]?Hz(?![a-z])", re.IGNORECASE)
_SETS_RATE = (
    *("decimation", "sim.dt", "ctrl_dt", "sim_dt", "control.decimation", "sim.mujoco.timestep", "fps", "env.fps"),
    *("env.controlFrequencyInv", "env.control.decimation", "action_repeat", "control.control_decimation"),
)
_SPANS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(ms|s|sec|secs|seconds?)\b(?!\s*/)")
_STATES_DT = re.compile(r"(^|\.)(control_dt|policy_dt|step_dt|agent_dt)$")
_STATES_RATE = re.compile(r"(^|\.)(control|policy)_(freq|frequency|rate)(_hz)?$")
_NORMALISED = re.compile(r"norm\w*\.(?:\w+\.)?(gamma|discount)$|norm\w*_gamma$", re.IGNORECASE)


class Finding(NamedTuple):
    rank: Rank
    kind: str
    sentence: str
    place: str = ""


def _finding(rank: Rank, kind: str, about: Setting, meaning: str, remedy: str) -> Finding:
    return Finding(rank, kind, f"{about.text} {meaning}: {remedy}.", about.place)


def find_inconsistencies(configuration: Configuration, trained: Collection[float] = ()) -> list[Finding]:
    """All findings, the most important first; `trained` are cycle times of the trainings beside it, in seconds."""
    found = [Finding("contradiction", *problem) for problem in configuration.problems()]
    found += [finding for check in _CHECKS for finding in check(configuration)]
    found += _refused(configuration, [each.sentence for each in found if each.rank == "contradiction"])
    if configuration.cycle_time:
        dt_s, stated_as = float(configuration.cycle_time[0]), configuration.cycle_time[1]
        found += [finding for check in _TIMED_CHECKS for finding in check(configuration, dt_s, stated_as)]
        found += _deployment(configuration, dt_s, stated_as, trained)
    return sorted(found, key=lambda each: RANKS.index(each.rank))


def _refused(c: Configuration, said: Collection[str]) -> Iterator[Finding]:
    """What a transfer of it to its own cycle time is refused for, unless it is said of the same setting already."""
    error = read_as_transfer(c)
    if not isinstance(error, InputError) or isinstance(error, NotANumberError):  # which a transfer would ask for
        return
    names = {rf"\b{re.escape(each.name)}\b": each for each in c.settings.values()}
    named = {at.start(): each for name, each in names.items() if (at := re.search(name, str(error)))}
    about = named[min(named)] if named else Setting("", None)
    if not any(about.name and about.name in each for each in said):
        yield Finding("contradiction", "refused", str(error), about.place)


def _deployment(c: Configuration, dt_s: float, stated: str, trained: Collection[float]) -> Iterator[Finding]:
    if c.environment == "deployment" and trained and not any(_is_same(dt_s, each) for each in trained):
        others = " or ".join(map(_ms, sorted(set(trained))[:4]))
        place = next((each.place for name, each in c.env.items() if stated.startswith(f"{name} ")), "")
        runs = f"{stated} runs a policy every {_ms(dt_s)}, and what is trained here has {others}"
        says = f"{runs}: run it at the cycle time that it was trained at."
        yield Finding("warning", "deployed-at-another-rate", says, place)


def _rate_in_words(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    control = 1 / dt_s
    rates = [control, *([1 / c.physics_dt_s] if c.physics_dt_s else [])]
    for name, stated in (*c.env.items(), *c.canonical.items()):
        words = stated.comment if name in _SETS_RATE else ""
        said = [float(number) * (1000 if kilo else 1) for number, kilo in _RATE.findall(words)]
        said = [rate for rate in (*said, *map(float, _INVERSE.findall(words))) if rate > 0]
        step_s = c.positive(stated)
        own = [1 / step_s] if step_s and step_s < 1 else []
        if said and not any(_is_same(one, rate) for one in said for rate in (*rates, *own)):
            is_said = f"has the comment '{_short(stated.comment)}', and {stated_as} is {control:.4g} Hz ({_ms(dt_s)})"
            yield _finding("contradiction", "rate-in-words", stated, is_said, "correct the comment or the value")
    keys = ("experiment_name", "run_name", "runner.experiment_name")
    for said_name in filter(None, [c.name, *(str(c.canonical[key].value) for key in keys if key in c.canonical)]):
        for match in _RATE_IN_NAME.finditer(said_name):
            if not any(_is_same(float(match.group(1)), rate) for rate in rates):
                is_said = f"says {match.group(1)} Hz, and {stated_as} is {control:.4g} Hz"
                says = f"The name '{said_name}' {is_said}: rename it, or change the cycle time."
                yield Finding("contradiction", "rate-in-words", says)


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * max(one, other)


def _ms(span_s: float) -> str:
    return f"{span_s * 1000:.4g} ms"


def _short(comment: str) -> str:
    return comment if len(comment) <= 60 else f"{comment[:57]}..."


def _second_cycle_time(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    names = {name.rpartition(".")[2] for name in (*c.env, *c.canonical)}
    for name, each in (*c.env.items(), *c.canonical.items()):
        number = c.positive(each)
        if number is None or (name.endswith("control_dt") and "policy_dt" in names):  # that of the motors
            continue
        said = number if _STATES_DT.search(name) else 1 / number if _STATES_RATE.search(name) else None
        if said is not None and not _is_same(said, dt_s) and each.name not in stated_as:
            is_said = f"is a cycle time of {_ms(said)}, and {stated_as} one of {_ms(dt_s)}"
            yield _finding("contradiction", "two-cycle-times", each, is_said, "make them one")


def _seconds_in_words(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    for each in filter(None, [c.rollout, c.setting("episode_length", "env.episodeLength"), *c.curricula]):
        said = [float(number) / (1000 if unit == "ms" else 1) for number, unit in _SPANS.findall(each.comment)]
        means = each.value * dt_s
        if said and means > 0 and not any(abs(one - means) <= 0.1 * max(one, means) for one in said):
            lasts = f"has the comment '{_short(each.comment)}', and lasts {format_seconds(means)} at {_ms(dt_s)}"
            yield _finding("contradiction", "seconds-in-words", each, lasts, "correct one of them")


def _discount(c: Configuration) -> Iterator[Finding]:
    steps = c.discount_steps
    if c.discount is None or steps is None:
        return
    if steps < FEW_STEPS:
        looks = f"looks {steps:.2g} steps ahead{c.seconds(steps)}"
        learns = f"nothing later than that is learned; {FEW_STEPS} steps need {exp(-1 / FEW_STEPS):.3g}"
        yield _finding("warning", "short-horizon", c.discount, looks, learns)
    if c.episode and c.dt_s and (looks_s := steps * c.dt_s) > 1.05 * c.episode[1]:
        episode_s = c.episode[1]
        rank: Rank = "warning" if looks_s > 3 * episode_s else "note"
        ends = f"{c.episode[0].text} ends an episode after {format_seconds(episode_s)}"
        instead = f"{exp(-c.dt_s / episode_s):.4g} would look as far as an episode lasts"
        looks = f"looks {format_seconds(looks_s)} ahead, and {ends}"
        yield _finding(rank, "horizon-beyond-episode", c.discount, looks, f"within one little is discounted; {instead}")


def _rollout(c: Configuration) -> Iterator[Finding]:
    if c.rollout is None:
        return
    steps, lasts = c.rollout.value, c.seconds(c.rollout.value)
    if steps < FEW_STEPS:
        updates = f"{c.rollout.text}{lasts} is an update every {'step' if steps == 1 else f'{steps} steps'}"
        learns = f"advantages are almost the value's guess; {FEW_STEPS} steps or more would measure rewards"
        yield Finding("warning", "short-rollout", f"{updates}: {learns}.", c.rollout.place)
    elif c.trace_steps is not None and steps < 0.8 * c.trace_steps and c.trace_decay and c.trace_decay.value < 1:
        trace = f"{c.trace_steps:.3g} steps{c.seconds(c.trace_steps, ', {}')}"
        rank: Rank = "warning" if steps < 0.5 * c.trace_steps else "note"
        shorter = f"{c.rollout.text}{lasts} is shorter than the trace of gamma lambda ({trace})"
        says = f"{shorter}: advantages are cut at its end; {round(c.trace_steps)} steps would hold it."
        yield Finding(rank, "rollout-cuts-trace", says, c.rollout.place)


def _minibatches(c: Configuration) -> Iterator[Finding]:
    words, batch = c.table, c.batch
    if batch is None:
        return
    stated = c.minibatch_count if isinstance(words, Counted) else c.minibatch_size
    fails = getattr(words, "only_whole_minibatches", False)
    rank: Rank = "contradiction" if fails else "note"
    if isinstance(words, Counted) and stated and (left := batch % stated.value):
        what = "" if fails else " and dropped or make a short one"
        why = f"{left} {'is' if left == 1 else 'are'} left over{what}"
    elif isinstance(words, Sized) and stated and _is_cut_short(c, batch, stated.value):
        rank = "warning" if batch < 4 * stated.value and not fails else rank
        why = f"{batch % stated.value} samples are left over for a short mini-batch"
        why = why if stated.value <= batch else "it is larger, and all of the batch is one mini-batch"
        why += ", which the library refuses" if fails else ""
    else:
        return
    divides = f"does not divide the batch of {batch} samples"
    yield _finding(rank, "minibatches", stated, divides, f"{why}; choose a divisor")


def _is_cut_short(c: Configuration, batch: int, size: int) -> bool:
    # rl_games counts the agents of each environment as well; those of Isaac Lab and Isaac Gym have one.
    agents = range(1, 2 if c.environment or c.library != "rl-games" else _MOST_AGENTS)
    return all(size > batch * number or batch * number % size for number in agents)


def _training_length(c: Configuration) -> Iterator[Finding]:
    if c.training_steps is None:
        return
    stated, steps = c.training_steps
    if c.episode and c.dt_s and steps * c.dt_s < c.episode[1]:
        lasts, episode = format_seconds(steps * c.dt_s), format_seconds(c.episode[1])
        trains = f"trains each environment for {lasts}, less than an episode of {episode}"
        remedy = "none reaches its time limit; train for several"
        yield _finding("warning", "training-shorter-than-episode", stated, trains, remedy)
    starts = c.setting("learning_starts")
    if starts and (length := c.canonical.get("n_timesteps")) and starts.value >= length.value:
        as_long = f"is as long as the training of {length.text}"
        yield _finding("contradiction", "no-learning", starts, as_long, "nothing is learned")
    for each in c.curricula:
        if each.value > steps:
            counts = f"counts steps of an environment, of which the training has {round(steps)} ({stated.text})"
            remedy = "it never takes effect; end it before the training does"
            yield _finding("warning", "curriculum-after-training", each, counts, remedy)


def _curricula(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    if several := c.curricula:
        first = several[0]
        more = f", and {len(several) - 1} more like it" if len(several) > 1 else ""
        counts = "it counts steps, so that at another cycle time it comes earlier or later"
        remedy = f"{counts}; multiply it by the old cycle time over the new"
        yield _finding("note", "curriculum-in-steps", first, f"is {format_seconds(first.value * dt_s)}{more}", remedy)


def _rewards(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    """Rewards under a manager that multiplies all of them by the cycle time, as if each were a rate."""
    paid = [(each, key) for each, key, pays in c.timed if pays and key.carried and key.law not in (KEPT, PROPORTIONAL)]
    changed = [("event" in key.reason, each) for each, key in paid if each.value and each.numbers == [each.value]]
    for is_event, each in sorted(changed, key=lambda weight: not weight[0]):
        if is_event:
            pays = "is paid per event and multiplied by the cycle time"
            remedy = "at another cycle time divide the weight by the ratio to pay the same"
            remedy = f"{each.value * dt_s:.4g} each at {_ms(dt_s)}; {remedy}"
        else:
            pays = f"weighs a difference between steps that is not divided by {_ms(dt_s)}"
            remedy = "the same motion costs less per second (a quarter, if squared), noise as much as before"
            remedy = f"at half the cycle time {remedy}; choose the weight anew there"
        yield _finding("note", "event-times-dt" if is_event else "squared-difference", each, pays, remedy)


def _events_after_episode(c: Configuration) -> Iterator[Finding]:
    """Isaac Lab and mjlab start an interval's clock anew at each reset."""
    if c.episode is None or c.environment not in MANAGED:
        return
    for name, each in c.env.items():
        beginning = name.removesuffix("interval_range_s")
        first_s = each.numbers[0] if beginning != name and name.startswith("events.") and each.numbers else 0
        on_global_time = c.env.get(f"{beginning}is_global_time")
        if first_s >= c.episode[1] and not (on_global_time and on_global_time.value):
            comes = f"comes {format_seconds(first_s)} after a reset at the earliest"
            before = f"{comes}, and {c.episode[0].text} resets before"
            yield _finding("warning", "event-after-episode", each, before, "it never happens; shorten the interval")


def _sensors(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    for name, each in c.env.items():
        period = c.positive(each)
        if name.endswith(".update_period") and period and period > 1.01 * dt_s:
            renews = f"renews the sensor every {format_seconds(period)}, {period / dt_s:.3g} cycles of {_ms(dt_s)}"
            remedy = f"it gives the same values between; {dt_s:.4g} would renew it every cycle"
            yield _finding("note", "slow-sensor", each, renews, remedy)


def _normalisation(c: Configuration) -> Iterator[Finding]:
    for name, each in c.agent.items():
        number = c.positive(each)
        if _NORMALISED.search(name) and c.discount and number and abs(number - c.discount.value) > 1e-9:
            other = f"normalises rewards with another discount than {c.discount.text}"
            remedy = "returns get another scale than the agent's; use one value"
            yield _finding("warning", "normalisation-gamma", each, other, remedy)
    memory, rollouts = c.setting("memory.memory_size"), c.setting("rollouts")
    if memory and rollouts and c.library == "skrl" and c.algorithm == "ppo" and memory.value != rollouts.value:
        learns = "skrl learns from the whole memory, old or empty rows included; set it to -1"
        yield _finding("contradiction", "memory-size", memory, f"is not {rollouts.text}", learns)


_CHECKS: tuple[Callable[[Configuration], Iterator[Finding]], ...] = (
    *(_minibatches, _normalisation, _discount, _rollout, _training_length, _events_after_episode),
)
_TIMED_CHECKS: tuple[Callable[[Configuration, float, str], Iterator[Finding]], ...] = (
    *(_rate_in_words, _second_cycle_time, _seconds_in_words, _sensors, _rewards, _curricula),
)
"""Those that need the cycle time, in seconds, and how it is said."""
