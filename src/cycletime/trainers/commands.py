"""Commands of trainers: placeholders such as {discount} are replaced by a run's values."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from importlib.metadata import Distribution
from itertools import combinations
from math import ceil
from pathlib import Path
from typing import Any

from cycletime.errors import InputError, did_you_mean
from cycletime.extras import install_command
from cycletime.rules import ALGORITHMS
from cycletime.trainers.stable_baselines3 import check_settings
from cycletime.trainers.trainer_run import TrainerRun
from cycletime.training.external import BUILT_IN, ExternalAgent, TrainerSpec

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
_CYCLES = ("dt_s", "dt_ms", "cycle_steps")
_FACTS = (*_CYCLES, "seed", "folder", "simulated_s", "agent_steps", "num_envs", "env", "algorithm", "device")
"""Placeholders for what is no hyper-parameter; besides there is {updates}, agent steps over the batch."""


def check_command(agent: ExternalAgent, given: Sequence[str]) -> None:
    """Refuse placeholders that stand for nothing, and given values that the trainer does not take."""
    if agent.trainer.name == "stable-baselines3":
        check_settings(agent.algorithm, agent.settings)
    if not agent.trainer.command:
        return
    used = set(_PLACEHOLDER.findall(" ".join((*agent.trainer.command, *agent.trainer.resume))))
    known = {"updates", *_FACTS, *agent.settings}
    if unknown := sorted(used - known):
        is_value = unknown[0] in (each.field for each in ALGORITHMS[agent.algorithm].quantities)
        near = "; give this one a value in [tuned]." if is_value else did_you_mean(unknown[0], known)
        raise InputError(f"The command has {{{unknown[0]}}}: it may have {', '.join(sorted(known))}{near}")
    if "updates" in used and not (agent.trainer.words or "batch" in used):
        raise InputError("{updates} counts batches, and the command does not take the batch: add {batch}.")
    for name in [*given, *_changed_settings(agent)]:
        if name not in used and name in agent.settings:
            is_given = "is given" if name in given else f"would be {agent.settings[name]}"
            raise InputError(f"{name} {is_given}, and the command does not take it: add {{{name}}}, or leave it out.")


def check_installed(trainer: TrainerSpec) -> None:
    name = trainer.name
    if missing := [each for each in BUILT_IN.get(name, ()) if not any(Distribution.discover(name=each))]:
        raise InputError(f"{name} needs {missing[0]!r}, which is not installed: {install_command(name)}.")


def check_rules(agents: Mapping[tuple[str, Any], Sequence[ExternalAgent]]) -> None:
    """Refuse rules that change nothing of what is given; those of an algorithm have agents in the same order."""
    for ((algorithm, rule), ours), ((same, other), theirs) in combinations(agents.items(), 2):
        if algorithm == same and (name := _only_left_out(ours, theirs)):
            only = f"differ in {name}, and in nothing that the study gives"
            raise InputError(f"The rules {rule} and {other} {only}: give {name} in [tuned], or leave one of them out.")
    for (_, rule), ours in agents.items():
        if rule is not None and (name := _only_left_out(ours, [ours[0]] * len(ours))):
            only = f"changes {name}, and nothing that the study gives"
            raise InputError(f"The rule {rule} {only}: give {name} in [tuned], or take the rule baseline.")


def _only_left_out(ours: Sequence[ExternalAgent], theirs: Sequence[ExternalAgent]) -> str | None:
    """The first value that the study does not give in which agents differ, if they differ in none that it gives."""
    if any(x.settings != y.settings for x, y in zip(ours, theirs, strict=True)):
        return None
    pairs = [(x.left_out, y.left_out) for x, y in zip(ours, theirs, strict=True)]
    return next((name for x, y in pairs for name in {**x, **y} if x.get(name) != y.get(name)), None)


def _changed_settings(agent: ExternalAgent) -> list[str]:
    """Settings in a library's words that are not what the library takes where nothing is said."""
    words, num_envs = agent.trainer.words, agent.trainer.num_envs
    if not words:
        return []
    usual: dict[str, object] = {}
    with suppress(InputError):  # where it has no default for something
        usual |= ALGORITHMS[agent.algorithm].from_(words, dt="1s", n_envs=num_envs).to(words, num_envs)
    return [name for name, value in agent.settings.items() if usual.get(name) != value]


def check_varied(trainer: TrainerSpec, dts: Sized, seeds: Sized) -> None:
    """Refuse a command that is not told what differs between the runs of a study, which would be the same ones."""
    for what, several, names in (("cycle times", dts, _CYCLES), ("seeds", seeds, ("seed",))):
        if len(several) > 1 and not any(map(trainer.takes, names)):
            words = " or ".join(f"{{{name}}}" for name in names)
            raise InputError(f"The runs have {len(several)} {what}, which the command does not take: add {words}.")


def command_words(agent: ExternalAgent, run: TrainerRun) -> list[str]:
    facts = {name: getattr(run, name) for name in _FACTS}
    values = {**facts, "updates": ceil(run.agent_steps / agent.period), **agent.settings}
    words = [*agent.trainer.command, *(agent.trainer.resume if run.resumes else ())]
    filled = [_PLACEHOLDER.sub(lambda found: _text(values[found[1]]), word) for word in words]
    home = Path(agent.trainer.home or ".")
    there = [str((home / word).absolute()) if word and (home / word).is_file() else word for word in filled]
    return [sys.executable, *there[1:]] if there[0] in ("python", "python3") else there


def _text(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
