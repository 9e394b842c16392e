"""What is inconsistent in a configuration's times, ranked: each finding one sentence with value, meaning and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from math import exp
from typing import Literal, NamedTuple

from cycletime.errors import InputError
from cycletime.libraries.carry_configuration import read_as_transfer
from cycletime.libraries.configuration import Configuration, Setting
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
        others = " or ".join(f"{1000 * each:.4g} ms" for each in sorted(set(trained))[:4])
        place = next((each.place for name, each in c.env.items() if stated.startswith(f"{name} ")), "")
        says = (
            f"{stated} runs a policy every {1000 * dt_s:.4g} ms, and what is trained here has {others}: run it at the "
            "cycle time that it was trained at."
        )
        yield Finding("warning", "deployed-at-another-rate", says, place)


def _rate_in_words(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    control = 1 / dt_s
    rates = [control, *([1 / c.physics_dt_s] if c.physics_dt_s else [])]
    for name, stated in (*c.env.items(), *c.canonical.items()):
        said = _rates_of(stated.comment) if name in _SETS_RATE else []
        step_s = c.positive(stated)
        own = [1 / step_s] if step_s and step_s < 1 else []
        if said and not any(_is_same(one, rate) for one in said for rate in (*rates, *own)):
            says = (
                f"{stated.text} has the comment '{_short(stated.comment)}', and {stated_as} is {control:.4g} Hz "
                f"({dt_s * 1000:.4g} ms): correct the comment or the value."
            )
            yield Finding("contradiction", "rate-in-words", says, stated.place)
    keys = ("experiment_name", "run_name", "runner.experiment_name")
    for said_name in filter(None, [c.name, *(str(c.canonical[key].value) for key in keys if key in c.canonical)]):
        for match in _RATE_IN_NAME.finditer(said_name):
            if not any(_is_same(float(match.group(1)), rate) for rate in rates):
                says = (
                    f"The name '{said_name}' says {match.group(1)} Hz, and {stated_as} is {control:.4g} Hz: "
                    "rename it, or change the cycle time."
                )
                yield Finding("contradiction", "rate-in-words", says)


def _rates_of(comment: str) -> list[float]:
    rates = [float(number) * (1000 if kilo else 1) for number, kilo in _RATE.findall(comment)]
    return [rate for rate in rates + [float(number) for number in _INVERSE.findall(comment)] if rate > 0]


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * max(one, other)


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
            says = (
                f"{each.text} is a cycle time of {said * 1000:.4g} ms, and {stated_as} one of "
                f"{dt_s * 1000:.4g} ms: make them one."
            )
            yield Finding("contradiction", "two-cycle-times", says, each.place)


def _seconds_in_words(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    for each in filter(None, [c.rollout, c.setting("episode_length", "env.episodeLength"), *c.curricula]):
        said = [float(number) / (1000 if unit == "ms" else 1) for number, unit in _SPANS.findall(each.comment)]
        means = each.value * dt_s
        if said and means > 0 and not any(abs(one - means) <= 0.1 * max(one, means) for one in said):
            says = (
                f"{each.text} has the comment '{_short(each.comment)}', and lasts {format_seconds(means)} at "
                f"{dt_s * 1000:.4g} ms: correct one of them."
            )
            yield Finding("contradiction", "seconds-in-words", says, each.place)


def _discount(c: Configuration) -> Iterator[Finding]:
    steps = c.discount_steps
    if c.discount is None or steps is None:
        return
    if steps < FEW_STEPS:
        says = (
            f"{c.discount.text} looks {steps:.2g} steps ahead{c.seconds(steps)}: nothing later than that is learned; "
            f"{FEW_STEPS} steps need {exp(-1 / FEW_STEPS):.3g}."
        )
        yield Finding("warning", "short-horizon", says, c.discount.place)
    if c.episode and c.dt_s and (looks_s := steps * c.dt_s) > 1.05 * c.episode[1]:
        episode_s = c.episode[1]
        rank: Rank = "warning" if looks_s > 3 * episode_s else "note"
        says = (
            f"{c.discount.text} looks {format_seconds(looks_s)} ahead, and {c.episode[0].text} ends an episode "
            f"after {format_seconds(episode_s)}: within one little is discounted; {exp(-c.dt_s / episode_s):.4g} "
            "would look as far as an episode lasts."
        )
        yield Finding(rank, "horizon-beyond-episode", says, c.discount.place)


def _rollout(c: Configuration) -> Iterator[Finding]:
    if c.rollout is None:
        return
    steps, lasts = c.rollout.value, c.seconds(c.rollout.value)
    if steps < FEW_STEPS:
        says = (
            f"{c.rollout.text}{lasts} is an update every {'step' if steps == 1 else f'{steps} steps'}: advantages are "
            f"almost the value's guess; {FEW_STEPS} steps or more would measure rewards."
        )
        yield Finding("warning", "short-rollout", says, c.rollout.place)
    elif c.trace_steps is not None and steps < 0.8 * c.trace_steps and c.trace_decay and c.trace_decay.value < 1:
        trace = f"{c.trace_steps:.3g} steps{c.seconds(c.trace_steps, ', {}')}"
        rank: Rank = "warning" if steps < 0.5 * c.trace_steps else "note"
        says = (
            f"{c.rollout.text}{lasts} is shorter than the trace of gamma lambda ({trace}): advantages are cut at its "
            f"end; {round(c.trace_steps)} steps would hold it."
        )
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
    says = f"{stated.text} does not divide the batch of {batch} samples: {why}; choose a divisor."
    yield Finding(rank, "minibatches", says, stated.place)


def _is_cut_short(c: Configuration, batch: int, size: int) -> bool:
    # rl_games counts the agents of each environment as well; those of Isaac Lab and Isaac Gym have one.
    agents = range(1, 2 if c.environment or c.library != "rl-games" else _MOST_AGENTS)
    return all(size > batch * number or batch * number % size for number in agents)


def _training_length(c: Configuration) -> Iterator[Finding]:
    if c.training_steps is None:
        return
    stated, steps = c.training_steps
    if c.episode and c.dt_s and steps * c.dt_s < c.episode[1]:
        says = (
            f"{stated.text} trains each environment for {format_seconds(steps * c.dt_s)}, less than an episode of "
            f"{format_seconds(c.episode[1])}: none reaches its time limit; train for several."
        )
        yield Finding("warning", "training-shorter-than-episode", says, stated.place)
    starts = c.setting("learning_starts")
    if starts and "n_timesteps" in c.canonical and starts.value >= c.canonical["n_timesteps"].value:
        says = f"{starts.text} is as long as the training of {c.canonical['n_timesteps'].text}: nothing is learned."
        yield Finding("contradiction", "no-learning", says, starts.place)
    for each in c.curricula:
        if each.value > steps:
            says = (
                f"{each.text} counts steps of an environment, of which the training has {round(steps)} "
                f"({stated.text}): it never takes effect; end it before the training does."
            )
            yield Finding("warning", "curriculum-after-training", says, each.place)


def _curricula(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    if several := c.curricula:
        first = several[0]
        more = f", and {len(several) - 1} more like it" if len(several) > 1 else ""
        says = (
            f"{first.text} is {format_seconds(first.value * dt_s)}{more}: it counts steps, so that at another cycle "
            "time it comes earlier or later; multiply it by the old cycle time over the new."
        )
        yield Finding("note", "curriculum-in-steps", says, first.place)


def _rewards(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    """Rewards under a manager that multiplies all of them by the cycle time, as if each were a rate."""
    paid = [(each, key) for each, key, pays in c.timed if pays and key.carried and key.law not in (KEPT, PROPORTIONAL)]
    changed = [("event" in key.reason, each) for each, key in paid if each.value and each.numbers == [each.value]]
    for is_event, each in sorted(changed, key=lambda weight: not weight[0]):
        says = (
            f"{each.text} weighs a difference between steps that is not divided by {dt_s * 1000:.4g} ms: at half the "
            "cycle time the same motion costs less per second (a quarter, if squared), noise as much as before; choose "
            "the weight anew there."
        )
        if is_event:
            says = (
                f"{each.text} is paid per event and multiplied by the cycle time: {each.value * dt_s:.4g} each at "
                f"{dt_s * 1000:.4g} ms; at another cycle time divide the weight by the ratio to pay the same."
            )
        yield Finding("note", "event-times-dt" if is_event else "squared-difference", says, each.place)


def _events_after_episode(c: Configuration) -> Iterator[Finding]:
    """Isaac Lab and mjlab start an interval's clock anew at each reset."""
    if c.episode is None or c.environment not in ("isaac-lab", "mjlab"):
        return
    for name, each in c.env.items():
        beginning = name.removesuffix("interval_range_s")
        first_s = each.numbers[0] if beginning != name and name.startswith("events.") and each.numbers else 0
        on_global_time = c.env.get(f"{beginning}is_global_time")
        if first_s >= c.episode[1] and not (on_global_time and on_global_time.value):
            says = (
                f"{each.text} comes {format_seconds(first_s)} after a reset at the earliest, and {c.episode[0].text} "
                "resets before: it never happens; shorten the interval."
            )
            yield Finding("warning", "event-after-episode", says, each.place)


def _sensors(c: Configuration, dt_s: float, stated_as: str) -> Iterator[Finding]:
    for name, each in c.env.items():
        period = c.positive(each)
        if name.endswith(".update_period") and period and period > 1.01 * dt_s:
            ratio = period / dt_s
            says = (
                f"{each.text} renews the sensor every {format_seconds(period)}, {ratio:.3g} cycles of "
                f"{dt_s * 1000:.4g} ms: it gives the same values between; {dt_s:.4g} would renew it every cycle."
            )
            yield Finding("note", "slow-sensor", says, each.place)


def _normalisation(c: Configuration) -> Iterator[Finding]:
    for name, each in c.agent.items():
        number = c.positive(each)
        if _NORMALISED.search(name) and c.discount and number and abs(number - c.discount.value) > 1e-9:
            says = (
                f"{each.text} normalises rewards with another discount than {c.discount.text}: returns get another "
                "scale than the agent's; use one value."
            )
            yield Finding("warning", "normalisation-gamma", says, each.place)
    memory, rollouts = c.setting("memory.memory_size"), c.setting("rollouts")
    if memory and rollouts and c.library == "skrl" and c.algorithm == "ppo" and memory.value != rollouts.value:
        says = (
            f"{memory.text} is not {rollouts.text}: skrl learns from the whole memory, old or empty rows included; set "
            "it to -1."
        )
        yield Finding("contradiction", "memory-size", says, memory.place)


_CHECKS: tuple[Callable[[Configuration], Iterator[Finding]], ...] = (
    *(_minibatches, _normalisation, _discount, _rollout, _training_length, _events_after_episode),
)
_TIMED_CHECKS: tuple[Callable[[Configuration, float, str], Iterator[Finding]], ...] = (
    *(_rate_in_words, _second_cycle_time, _seconds_in_words, _sensors, _rewards, _curricula),
)
"""Those that need the cycle time, in seconds, and how it is said."""
