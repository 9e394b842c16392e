"""Settings that mean time beside what rules carry: by library, what happens to each at another cycle time, and why.

Names may have dots and `*`. What is carried keeps its seconds; what a user must decide is named with the value that
would last as long; what is in seconds already is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, NamedTuple

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.libraries.off_policy import OffPolicyTable
from cycletime.libraries.on_policy import OnPolicyTable
from cycletime.libraries.parameters import LogInside, OneRate, ParamName, RateTable
from cycletime.rules.laws import COUNT, KEPT, PROPORTIONAL, SMOOTHING, Law, nearest_whole


class TimeKey(NamedTuple):
    """One setting, or several of one kind."""

    pattern: str
    law: Law
    reason: str
    carried: bool = True
    """Whether it is changed; else the user is told what it would be."""


def _keys(law: Law, reason: str, *patterns: str, carried: bool = True) -> tuple[TimeKey, ...]:
    return tuple(TimeKey(pattern, law, reason, carried) for pattern in patterns)


_LENGTH = "as long in seconds"
_STEPS = "it counts agent steps"
_BATCHES = "it counts batches, which last as long"
_RSL_RL = _keys(KEPT, _BATCHES, "max_iterations", "save_interval")
_MANAGED = (  # environments of Isaac Lab and mjlab, whose managers multiply rewards by the cycle time
    *_keys(PROPORTIONAL, "it sets the cycle time", "decimation"),
    *_keys(KEPT, "in seconds", "sim.dt", "*_s", "*resampling_time_range", "sim.mujoco.timestep"),
    *_keys(KEPT, "it counts steps of the physics", "*.min_delay", "*.max_delay"),
    *_keys(COUNT, "a curriculum counts environment steps", "curriculum.*num_steps"),
    *_keys(COUNT, "it counts steps, and the network's input changes with it", "*history_length", carried=False),
    *_keys(SMOOTHING, "a filter per step", "actions.*.alpha", carried=False),
    *_keys(PROPORTIONAL, "if actions are increments", "actions.*.scale", carried=False),
    *_keys(
        COUNT,
        "an event is paid once, times the cycle time",
        *(f"rewards.*{event}*.weight" for event in ("terminat", "is_alive_end", "landing", "success", "goal_reached")),
        carried=False,
    ),
    *_keys(
        COUNT,
        "a squared difference: between the old weight, which keeps what noise pays, and 1/rho^2 of it, for smoothness",
        *(f"rewards.*{name}*.weight" for name in ("action_rate", "action_acc", "smooth")),
        carried=False,
    ),
    *_keys(KEPT, "a rate per second, since the manager multiplies by the cycle time", "rewards.*.weight"),
)
_BRAX = (
    *_keys(COUNT, _LENGTH, "num_timesteps", "episode_length"),
    *_keys(PROPORTIONAL, "it sets the cycle time", "ctrl_dt"),
    *_keys(KEPT, "in seconds", "sim_dt"),
    *_keys(KEPT, "cycles of ctrl_dt in one of the agent's", "action_repeat"),
    *_keys(PROPORTIONAL, "where rewards are paid per step, as in dm_control's tasks", "reward_scaling", carried=False),
    *_keys(PROPORTIONAL, "if actions are increments", "action_scale", carried=False),
    *_keys(COUNT, _STEPS, "history_len", "*delay*", carried=False),
)
_SB3 = (
    *_keys(COUNT, _LENGTH, "total_timesteps"),
    *_keys(
        COUNT,
        _STEPS,
        *("sde_sample_freq", "n_steps", "frame_stack", "buffer_size", "learning_starts", "train_freq"),
        *("target_update_interval", "frame_skip"),
        carried=False,
    ),
)
TIME_KEYS: Mapping[str, tuple[TimeKey, ...]] = {
    "stable-baselines3": _SB3,
    "sbx": _SB3,
    "cleanrl": _keys(COUNT, _LENGTH, "total_timesteps"),
    "purejaxrl": _keys(COUNT, _LENGTH, "TOTAL_TIMESTEPS"),
    "rejax": _keys(COUNT, _LENGTH, "total_timesteps", "eval_freq"),
    "stoix": _keys(COUNT, _LENGTH, "arch.total_timesteps"),
    "brax": _BRAX,
    "mujoco-playground": _BRAX,
    "rsl-rl": _RSL_RL,
    "isaac-lab": (*_RSL_RL, *_MANAGED),
    "rl-games": (
        *_keys(KEPT, _BATCHES, "max_epochs", "save_frequency"),
        *_keys(COUNT, _STEPS, "seq_length", "bptt_length", carried=False),
    ),
    "skrl": (
        *_keys(COUNT, _LENGTH, "timesteps", "trainer.timesteps"),
        *_keys(COUNT, _STEPS, "random_timesteps", "learning_starts", carried=False),
    ),
    "torchrl": _keys(COUNT, _LENGTH, "collector.total_frames"),
    "pufferlib": _keys(COUNT, _LENGTH, "train.total_timesteps"),
    "lerobot": (
        *_keys(COUNT, "it sets the cycle time", "env.fps", "fps"),
        *_keys(COUNT, _LENGTH, "online_steps", "policy.online_steps"),
        *_keys(KEPT, "in seconds", "*_s"),
        *_keys(COUNT, _STEPS, "env.episode_length", "policy.online_buffer_capacity", carried=False),
    ),
}
ENVIRONMENT_KEYS: Mapping[str, tuple[TimeKey, ...]] = {
    "isaac-lab": _MANAGED,
    "mjlab": _MANAGED,
    "mujoco-playground": _BRAX,
}
"""The same of the environments' own settings, by the library that has them."""
PREFIXES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "isaac-lab": (("agent.", ""), ("env.", "")),
    "rsl-rl": (("agent.", ""), ("runner.", "")),
    "rl-games": (("agent.params.config.", ""), ("params.config.", ""), ("config.", "")),
    "skrl": (("agent.agent.", ""), ("agent.", "")),
    "lerobot": (("policy.", "algorithm."), ("train.", "")),
    "mujoco-playground": (("ppo.", ""), ("env.", ""), ("config.", "")),
}
"""By library, how files and command lines of it begin names, and how the tables begin the same; the first that fits."""
_CYCLE_TIMES: Mapping[str, tuple[str, str, Fraction | None]] = {
    "isaac-lab": ("sim.dt", "decimation", None),
    "mjlab": ("sim.mujoco.timestep", "decimation", None),
    "mujoco-playground": ("ctrl_dt", "action_repeat", Fraction(1)),
    "legged-gym": ("sim.dt", "control.decimation", None),
    "isaac-gym": ("sim.dt", "env.controlFrequencyInv", Fraction(1)),
    "policy_dt": ("policy_dt", "", Fraction(1)),
    "step_dt": ("step_dt", "", Fraction(1)),
    "simulation_dt": ("simulation_dt", "control_decimation", None),
    "control_dt": ("control_dt", "", Fraction(1)),
}
"""By library, the two settings whose product is the cycle time, and what the second is where nothing is said."""
DEPLOYED_BY = ("policy_dt", "step_dt", "simulation_dt", "control_dt")
"""What deployments of policies call their cycle time, the surest first: control_dt may be that of the motors."""


def table_names(words: OnPolicyTable | OffPolicyTable, rates: RateTable) -> set[str]:
    """All names that a library's tables have for one algorithm."""
    found: list[object] = [getattr(words, each.name) for each in fields(words) if each.name not in _NO_NAMES]  # type: ignore[arg-type]  # all tables are dataclasses
    found += [rates.learning_rate, rates.clip, rates.noise_std]
    names = {"action_size"}
    while found:
        each = found.pop()
        if isinstance(each, ParamName):
            names.add(each.name)
        elif isinstance(each, str):
            names.add(each)
        elif isinstance(each, OneRate | tuple):
            found += each.words if isinstance(each, OneRate) else each
        elif isinstance(each, LogInside):
            names.add(f"{each.mapping}.{each.name}")
        elif is_dataclass(each) and not isinstance(each, type):  # the words of updates
            found += [getattr(each, one.name) for one in fields(each)]
    return names


_NO_NAMES = ("tail", "remark", "remarks", "defaults", "per_vector_step")
"""Fields of tables that are no setting's name."""


def means_time(library: str, name: str) -> TimeKey | None:
    """What is known of a setting beside the tables, if anything."""
    return next(
        (key for key in TIME_KEYS.get(library, ENVIRONMENT_KEYS.get(library, ())) if fnmatchcase(name, key.pattern)),
        None,
    )


def canonical_names(library: str, names: Collection[str], known: Collection[str]) -> dict[str, str]:
    """By name as it was given, the name that the tables have; two that are one thing are refused."""
    found: dict[str, str] = {}
    for name in names:
        canonical = name
        if name not in known:
            for prefix, instead in PREFIXES.get(library, ()):
                stripped = instead + name.removeprefix(prefix)
                if name.startswith(prefix) and (stripped in known or means_time(library, stripped)):
                    canonical = stripped
                    break
        if canonical in found.values():
            other = next(given for given, each in found.items() if each == canonical)
            raise InputError(f"{library}'s {other} and {name} are the same setting: give one of them.")
        found[name] = canonical
    return found


def stated_cycle_time(library: str, settings: Mapping[str, object]) -> tuple[Duration, str] | None:
    """The cycle time that settings say, and how they say it."""
    for name in ("env.fps", "fps"):
        if library == "lerobot" and (rate := _fraction(settings.get(name))):
            return Duration(1 / rate), f"{name} {settings[name]}"
    if library not in _CYCLE_TIMES:
        return None
    step, repeat, usual = _CYCLE_TIMES[library]
    step_s, repeats = _fraction(settings.get(step)), _fraction(settings.get(repeat)) or usual
    if not step_s or not repeats:
        return None
    times = f" x {repeat} {settings.get(repeat, usual)}" if repeat else ""
    return Duration(step_s * repeats), f"{step} {settings[step]}{times}"


def _fraction(value: object) -> Fraction | None:
    """A positive number as it is written."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return Fraction(str(value))


class TimeChanges(NamedTuple):
    """What becomes of settings that mean time."""

    carried: dict[str, Any]
    notes: list[str]


def carry_time_keys(library: str, settings: Mapping[str, object], rho: Fraction, left: Collection[str]) -> TimeChanges:
    """New values of settings, and what is to be said of all that mean time; `left` are those that rules left alone."""
    carried: dict[str, Any] = {}
    told: dict[str, list[str]] = {"Carried as well": [], "Kept": [], "NOT carried, set it yourself": []}
    for name in left:
        value = settings[name]
        key = means_time(library, name)
        if key is None or isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) > 0:
            if key is not None and key.law == KEPT:
                told["Kept"].append(f"{name} ({key.reason})")
            continue
        if key.law == KEPT:
            told["Kept"].append(f"{name} {value:.12g} ({key.reason})")
            continue
        exact = Fraction(key.law(abs(value), rho)) * (1 if value > 0 else -1)
        new = nearest_whole(exact) if isinstance(value, int) and value > 0 else float(exact)
        is_exact = new == exact or not isinstance(new, int)
        if key.carried and (is_exact or "cycle time" not in key.reason):
            carried[name] = new
            told["Carried as well"].append(f"{name} {value:.12g} -> {new:.12g} ({key.reason})")
        else:
            shown = f"{new:.6g}" if is_exact else f"{float(exact):.4g}"
            told["NOT carried, set it yourself"].append(f"{name} {value:.12g} (would be {shown}: {key.reason})")
    return TimeChanges(carried, [f"{what}: {'; '.join(each)}." for what, each in told.items() if each])
