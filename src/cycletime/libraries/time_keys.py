"""Settings that mean time beside what rules carry: by library, what happens to each at another cycle time, and why."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from math import inf, isfinite
from typing import Any, Literal, NamedTuple, TypeAlias

from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError
from cycletime.libraries.names import FORMER_NAMES, OTHER_NAMES, PREFIXES
from cycletime.libraries.parameters import LONG_NAME, POSITIVE, SECONDS, WHOLE, one_slip_apart
from cycletime.rules.laws import COUNT, KEPT, POWER, PROPORTIONAL, SMOOTHING, Law, nearest_whole, rho_power


class TimeKey(NamedTuple):
    """One setting, or several of one kind."""

    pattern: str
    """A name, which may have dots and `*`."""
    law: Law
    reason: str
    carried: bool = True
    """Whether it is changed; else the user is told what it would be."""
    equals: str = ""
    """A setting, or 'the cycle time', that it must equal for the law to hold; any other value is kept."""
    beside: str = ""
    """A setting beside it that must be there, and not 0, for the law to hold."""
    counts: Literal["agent steps", "all steps", "batches"] = "agent steps"
    """Of one environment, of all at once (fewer environments need more), or batches (shorter ones need more)."""


def _keys(law: Law, reason: str, *patterns: str, **more: Any) -> tuple[TimeKey, ...]:  # noqa: ANN401 - its fields
    return tuple(TimeKey(pattern, law, reason, **more) for pattern in patterns)


CYCLE_TIME = "the cycle time"
_ITS_PERIOD = "its update_period, and that the cycle time"
_LENGTH = "as long in seconds"
_IN_ALL = "it counts steps of all environments at once: as many seconds in all"
_STEPS = "it counts agent steps"
SETS = "it sets the cycle time"
_BATCHES = "it counts batches, which last as long"
CURRICULUM = "a curriculum counts environment steps"
_HISTORY = "it counts steps, and the network's input changes with it"
_PRESENT = "1 is the present alone"
PHYSICS = "it counts steps of the physics"
SENSOR = "it counts the sensor's updates"
_RATE = "taken as a rate per second: rewards are multiplied by the cycle time"
_PER_STEP = "paid at every step"
_EVENT = "an event is paid once, times the cycle time"
_GUESS = "not known, so taken as a rate per second: check"
_NAMED_EVENT = "by its name an event, paid once, times the cycle time: check"
_DIFFERENCE = "a squared difference: between what keeps the noise's share (x1) and that of smooth motion (/rho^2)"
_SECOND = "a squared second difference: between what keeps the noise's share (x1) and that of smooth motion (/rho^4)"
_SHAPED = "if the environment pays per step; multiplied by the cycle time (step_dt) it stays"
_ONCE = "an event or a difference: if rewards are multiplied by the cycle time (step_dt); paid per step it stays"
_RSL_RL = _keys(COUNT, _BATCHES, "max_iterations", "save_interval", counts="batches")
_EVENTS = ("*terminat*", "*death*", "*landing*", "*success_bonus*", "*goal_reached*")
_NAMED_EVENTS = ("success", "*_success", "*reached_*", "*bonus*", "fall_*", "fallen*", "*first_contact*", "*touchdown*")
_BONUSES_PER_SECOND = ("open_drawer", "upright_posture", "move_to_target")
_DIFFERENCES = ("action_rate*", "*action_smooth*", "*action_diff*")
_TERM = re.compile(r"^rewards\.(\w+)\.weight$|\bscales\.(\w+)$")
_TERM_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        abs acc acceleration action air align aligned alive anchor ang angle angular angvel approach arms around barrier
        base biped body bonus box cart clamped clearance cmd collision command consumption contact contacts cost cube
        desired deviation distance dof drawer early ee eef effector electrical end end2 energy entity entrance error exp
        faa feet ffe fine finger fingers flat floor foot force frame gait gaitreward gear global goal good grained grasp
        gravity gripper gyro hand handle handover heading height hip insertion inv is joint jumps keypoint kfe knee l1
        l2 landing left length lifted lifting limit limits lin linear linvel magnitude motion move multi no obj object
        open ori orientation peg penalty phase pole pos pose position positive posture power progress qpos qvel ratio
        reaching relative reward right robot roll self side slide slip smoothness socket soft splay stage stand stay
        still success survival table tanh target tendon term terminated terminating termination time to toes torques
        torso total track tracking undesired up upright variance vel velocity world xy xyz yaw z zero
        """,
    )
)
"""What the names of reward terms of Isaac Lab, mjlab and Playground are made of."""
_LONG_WORDS = sorted(word for word in _TERM_WORDS if len(word) >= 5)


def _rewards(form: str) -> tuple[TimeKey, ...]:
    """What is known of rewards that are multiplied by the cycle time and no rate, by how their names are made."""
    return (
        *_keys(rho_power(-2), _SECOND, *map(form.format, ("*action_acc*", "*smoothness_2*", "smoothness*"))),
        *_keys(COUNT, _DIFFERENCE, *map(form.format, _DIFFERENCES)),
        *_keys(COUNT, _EVENT, *map(form.format, _EVENTS)),
    )


def _direct_rewards() -> tuple[TimeKey, ...]:
    """Those of direct environments, whose code alone says whether it multiplies by the cycle time."""
    forms = ("rew_{}", "{}_reward_scale", "{}_cost_scale", "{}_weight", "{}_penalty", "{}_penalty_scale")
    kinds = [f"*{kind.strip('*')}*" for kind in (*_EVENTS, *_DIFFERENCES, "feet_air_time")]
    once = [form.format(kind) for form in forms for kind in kinds]
    per_step = [form.format("*") for form in forms]
    return _keys(COUNT, _ONCE, *once, "*_bonus", carried=False) + _keys(PROPORTIONAL, _SHAPED, *per_step, carried=False)


_SENSORS = ("scene.*history_length", "*sensor*.history_length", "*contact*.history_length")
_INCREMENTS = tuple(f"actions.*relative*.{scale}" for scale in ("scale", "position_scale", "orientation_scale"))
_MANAGED = (  # environments of Isaac Lab and mjlab, whose managers multiply rewards by the cycle time
    *_keys(PROPORTIONAL, SETS, "decimation"),
    *_keys(PROPORTIONAL, "once per cycle", "sim.render_interval", equals="decimation"),
    *_keys(PROPORTIONAL, "once per cycle", "*.update_period", equals=CYCLE_TIME),
    *_keys(KEPT, "in seconds", "sim.dt", "*_s", "*resampling_time_range", "sim.mujoco.timestep"),
    *_keys(KEPT, _PRESENT, "observations.*history_length", equals="1"),
    *_keys(COUNT, _HISTORY, "observations.*history_length"),
    *_keys(PROPORTIONAL, "the physics' steps of one cycle", "scene.sensors.*history_length", equals="decimation"),
    *_keys(COUNT, "it counts the sensor's updates, one per cycle", "scene.*history_length", equals=_ITS_PERIOD),
    *_keys(KEPT, SENSOR, *_SENSORS, beside="update_period"),
    *_keys(KEPT, PHYSICS, *_SENSORS),
    *_keys(KEPT, PHYSICS, "scene.*delay*", "*actuators.*.min_delay", "*actuators.*.max_delay"),
    *_keys(COUNT, CURRICULUM, "curriculum.*num_step*", "curriculum.*.step", counts="all steps"),
    *_keys(COUNT, "it counts environment steps", "*min_step_count_between_reset"),
    *_keys(COUNT, _STEPS, "observations.*delay_*lag", "observations.*delay_update_period"),
    *_keys(KEPT, "once in each period", "observations.*delay_hold_prob", beside="delay_update_period"),
    *_keys(POWER, "a chance at each step", "observations.*delay_hold_prob"),
    *_keys(KEPT, _PRESENT, "*history_length", equals="1"),
    *_keys(COUNT, _HISTORY, "*history_length"),
    *_keys(SMOOTHING, "a filter per step", "actions.*.alpha", "actions.*.ema_*", "act_moving_average", "*ema_factor*"),
    *_keys(KEPT, "added at every step of the physics, not once per cycle", "actions.*.relativejointposition*.scale"),
    *_keys(PROPORTIONAL, "an increment per step", *_INCREMENTS, carried=False),
    *_keys(COUNT, "a norm, not squared: smooth motion costs as much", "rewards.spot.action_smooth*.weight"),
    *_rewards("rewards.{}.weight"),
    *_keys(KEPT, _RATE, *(f"rewards.{name}_bonus.weight" for name in _BONUSES_PER_SECOND)),
    *_keys(COUNT, _NAMED_EVENT, *(f"rewards.{name}.weight" for name in _NAMED_EVENTS)),
    *_keys(KEPT, _RATE, "rewards.*.weight"),
    *_keys(KEPT, _GUESS, "curriculum.*weight"),
    *_direct_rewards(),
)
_ISAAC_LAB = (*_keys(COUNT, _EVENT, "rewards.feet_air_time.weight"), *_MANAGED)
_MOTION = "a motion plays one frame per cycle: resample it"
_MJLAB = (*_keys(KEPT, _MOTION, "commands.*.motion_file", carried=False), *_MANAGED)
_BESIDE_AGENT = tuple(key._replace(pattern=f"env.{key.pattern}") for key in _ISAAC_LAB)
"""What Isaac Lab's command line has of the environment, beside the words of a trainer's library."""
_BRAX = (
    *_keys(COUNT, _LENGTH, "num_timesteps", "episode_length"),
    *_keys(PROPORTIONAL, SETS, "ctrl_dt"),
    *_keys(KEPT, "in seconds", "sim_dt"),
    *_keys(KEPT, "how many ctrl_dt an action is held", "action_repeat"),
    *_keys(PROPORTIONAL, "where rewards are paid per step, as in dm_control's tasks", "reward_scaling", carried=False),
    *_keys(PROPORTIONAL, "if actions are increments", "action_scale", carried=False),
    *_keys(KEPT, _PRESENT, "*history_len", "*history_length", "*history_size", equals="1"),
    *_keys(COUNT, _HISTORY, "*history_len*", "*history_size"),
    *_keys(COUNT, _STEPS, "*delay", "*_steps"),
    *_keys(KEPT, "in seconds", "*durations", "*wait_times", "*interval_range", "*settle_time"),
    *_keys(SMOOTHING, "a filter per step", "*ema_alpha"),
)
_NOISE = _keys(KEPT, "noise of a reading", "*noise*scales.*")
_SCALES = (
    *_keys(COUNT, _EVENT, "*scales.feet_air_time"),
    *_rewards("*scales.{}"),
    *_keys(KEPT, _RATE, "*scales.*", "reward_scaling"),
)
_PLAYGROUND_PER_SECOND = (*_keys(COUNT, _EVENT, "*scales.feet_height"), *_SCALES)
_PLAYGROUND_PER_STEP = (
    *_keys(KEPT, "an event, paid once", "*success_reward", "*lifted_reward"),
    *_keys(PROPORTIONAL, _PER_STEP, "*scales.*"),
)
_PLAYGROUND_EITHER = _keys(PROPORTIONAL, _SHAPED.replace("step_dt", "ctrl_dt"), "*scales.*", carried=False)
_PLAYGROUND_INCREMENTS = _keys(PROPORTIONAL, "an increment per step: this task adds it to its targets", "action_scale")
_DM_CONTROL = _keys(PROPORTIONAL, "rewards are paid per step", "reward_scaling")
_SB3 = (
    *_keys(COUNT, _LENGTH, "total_timesteps", "n_timesteps"),
    *_keys(KEPT, "mini-batches follow the batch", "n_minibatches"),
    *_keys(KEPT, "it counts updates", "target_update_interval", "policy_delay"),
    *_keys(KEPT, "a single step", "n_steps", "frame_stack", "frame_skip", equals="1"),
    *_keys(COUNT, _STEPS, "sde_sample_freq", "n_steps", "frame_s*", "*Frame*.n_stack", "*.stack_size", carried=False),
    *_keys(COUNT, _STEPS, "buffer_size", "learning_starts", carried=False),
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
    "rsl-rl": (*_RSL_RL, *_BESIDE_AGENT),
    "isaac-lab": (*_RSL_RL, *_ISAAC_LAB),
    "rl-games": (
        *_keys(COUNT, _BATCHES, "max_epochs", "save_frequency", "save_best_after", counts="batches"),
        *_keys(COUNT, _LENGTH, "max_frames"),
        *_keys(COUNT, f"{_STEPS}, of recurrent networks", "*seq_length", "bptt_length", carried=False),
        *_keys(COUNT, "it counts samples", "central_value_config.minibatch_size", carried=False),
        *_keys(PROPORTIONAL, _SHAPED, "reward_shaper.scale_value", carried=False),
        *_BESIDE_AGENT,
    ),
    "skrl": (
        *_keys(COUNT, _LENGTH, "timesteps", "trainer.timesteps", "experiment.*_interval", counts="all steps"),
        *_keys(COUNT, _STEPS, "random_timesteps", "learning_starts", carried=False, counts="all steps"),
        *_keys(COUNT, "as long as the rollout", "memory.memory_size", equals="rollouts", counts="all steps"),
        *_keys(PROPORTIONAL, _SHAPED, "rewards_shaper_scale", carried=False),
        *_BESIDE_AGENT,
    ),
    "torchrl": _keys(COUNT, _LENGTH, "collector.total_frames"),
    "pufferlib": _keys(COUNT, _LENGTH, "train.total_timesteps"),
    "lerobot": (
        *_keys(COUNT, SETS, "env.fps", "fps"),
        *_keys(COUNT, _LENGTH, "online_steps", "policy.online_steps", "algorithm.online_steps"),
        *_keys(KEPT, "in seconds", "*_s"),
        *_keys(KEPT, "it counts updates", "steps", "*save_freq", "*log_freq", "*eval_freq", "*policy_update_freq"),
        *_keys(KEPT, "in seconds", "*.policy_parameters_push_frequency"),
        *_keys(KEPT, _PRESENT, "*n_obs_steps", equals="1"),
        *_keys(COUNT, _STEPS, "env.episode_length", "*.episode_length"),
        *_keys(PROPORTIONAL, "an increment per step: the arm's speed stays", "*end_effector_step_sizes.*"),
        *_keys(COUNT, _STEPS, "policy.online_buffer_capacity", "*offline_buffer_capacity", carried=False),
        *_keys(COUNT, _STEPS, "policy.n_action_steps", "policy.chunk_size", "*n_obs_steps", carried=False),
        *_keys(COUNT, _STEPS, "*online_step_before_learning", "*terminate_after_n_steps", carried=False),
    ),
}
ENVIRONMENT_KEYS: Mapping[str, tuple[TimeKey, ...]] = {
    "isaac-lab": _ISAAC_LAB,
    "mjlab": _MJLAB,
    "mujoco-playground": _BRAX,
    "legged-gym": (*_SCALES, *_keys(COUNT, _HISTORY, "*history_len*", "*frame_stack", "*include_history_steps")),
}
"""The same of the environments' own settings, by the library that has them; legged_gym's are explained alone."""
_CycleTime: TypeAlias = tuple[str, str, Fraction | None]
"""The two settings whose product is the cycle time, and what the second is where nothing is said."""
_CYCLE_TIMES: Mapping[str, _CycleTime] = {
    "isaac-lab": ("sim.dt", "decimation", None),
    **dict.fromkeys(("rsl-rl", "rl-games", "skrl"), ("env.sim.dt", "env.decimation", None)),
    "mjlab": ("sim.mujoco.timestep", "decimation", None),
    "mujoco-playground": ("ctrl_dt", "action_repeat", Fraction(1)),
    "legged-gym": ("sim.dt", "control.decimation", None),
    "isaac-gym": ("sim.dt", "env.control.decimation or env.controlFrequencyInv", Fraction(1)),
}
"""By library, the two settings whose product is the cycle time ('or': the last has a default), and that default."""
_DEPLOYED_CYCLE_TIMES: tuple[_CycleTime, ...] = (
    ("policy_dt", "", Fraction(1)),
    ("step_dt", "", Fraction(1)),
    ("simulation_dt", "control_decimation", None),
    ("control_dt", "", Fraction(1)),
)
"""Those of deployments of policies, the surest first: control_dt may be that of the motors."""
DEPLOYED_BY = tuple(step for step, _, _ in _DEPLOYED_CYCLE_TIMES)
WRAPPER_NAME = "cycletime.tasks.CycleTime"
"""What holds actions in an RL Zoo file's env_wrapper."""
WRAPPER_NAMES = re.compile(r"cycletime\.(tasks\.(cycle_time\.)?)?CycleTime")
_WRAPPER_DT = re.compile(rf"env_wrapper\.(\d+\.)?{WRAPPER_NAMES.pattern}\.dt")


def means_time(library: str, name: str) -> TimeKey | None:
    return next((key for key in TIME_KEYS.get(library, ()) if fnmatchcase(name, key.pattern)), None)


def _canonical_name(library: str, name: str, known: Collection[str]) -> str:
    if name in known:
        return name
    others = OTHER_NAMES.get(library, {}) | FORMER_NAMES.get(library, {})
    for prefix, instead in (*PREFIXES.get(library, ()), ("", "")):
        stripped = instead + name.removeprefix(prefix)
        stripped = others.get(stripped, stripped)
        if name.startswith(prefix) and (stripped in known or means_time(library, stripped)):
            return stripped
    return name


def canonical_names(library: str, names: Collection[str], known: Collection[str]) -> dict[str, str]:
    """By name as it was given, the name that the tables have; two that are one thing are refused."""
    found: dict[str, str] = {}
    for name in names:
        canonical = _canonical_name(library, name, known)
        if canonical in found.values():
            other = next(given for given, each in found.items() if each == canonical)
            raise InputError(f"{library}'s {other} and {name} are the same setting: give one of them.")
        found[name] = canonical
    return found


def stated_cycle_time(library: str, settings: Mapping[str, object]) -> tuple[Duration, str] | None:
    for name in ("env.fps", "fps"):
        if library == "lerobot" and (rate := _fraction(settings.get(name))):
            return Duration(1 / rate), f"{name} {settings[name]}"
    held = [value for name, value in settings.items() if _WRAPPER_DT.fullmatch(name)]
    if held and library in ("stable-baselines3", "sbx"):
        return Duration(str(held[-1])), f"env_wrapper's dt {held[-1]}"  # of several the outermost
    its_own = (_CYCLE_TIMES[library],) if library in _CYCLE_TIMES else ()
    for step, names, usual in _DEPLOYED_CYCLE_TIMES if library == "deployment" else its_own:
        *others, repeat = names.split(" or ")
        repeat = next((each for each in others if each in settings), repeat)
        step_s, repeats = _fraction(settings.get(step)), _fraction(settings.get(repeat)) or usual
        if step_s and repeats:
            default = "" if repeat in settings else " (default)"
            times = f" x {repeat} {settings.get(repeat, usual)}{default}" if repeat else ""
            return Duration(step_s * repeats), f"{step} {settings[step]}{times}"
    return None


def time_needs(library: str) -> dict[str, str]:
    """By name, what the settings that say a library's cycle time must be."""
    step, repeat, _ = _CYCLE_TIMES.get(library, ("env.fps" if library == "lerobot" else "", "", None))
    needed = {step: SECONDS if library in _CYCLE_TIMES else POSITIVE, **dict.fromkeys(repeat.split(" or "), WHOLE)}
    return {name: needs for name, needs in needed.items() if name}


def cycle_time_names(library: str) -> str:
    """The settings that say a library's cycle time, for sentences; empty where none does."""
    return " and ".join(time_needs(library))


def physics_step_name(library: str) -> str:
    """The setting that is the physics' step; empty where none is known."""
    return "sim_dt" if library == "mujoco-playground" else _CYCLE_TIMES.get(library, ("", "", None))[0]


def check_physics(library: str, settings: Mapping[str, object], from_dt: Duration, to_dt: Duration) -> None:
    """Refuse a cycle time that is no whole number of the physics' steps, as far as settings say these."""
    name, repeat = physics_step_name(library), _CYCLE_TIMES.get(library, ("", "", None))[1]
    step_s, repeats = _fraction(settings.get(name)), _fraction(settings.get(repeat))
    if library == "mujoco-playground":
        step_s = step_s and step_s * (repeats or 1)
    elif repeats:
        step_s = from_dt.exact_s / repeats
    if step_s is None:
        return
    try:
        cycle_steps(to_dt, Duration(step_s))
    except InputError as error:
        stated = f", which is {settings[name]}, first" if name in settings else " as well"
        raise InputError(f"{error} Or change {name}{stated}.") from None


def misspelt_key(library: str, name: str) -> str:
    """The setting that a misspelt name of one that means time stands for; empty where it is none."""
    prefixes = [prefix for prefix, _ in PREFIXES.get(library, ()) if name.startswith(prefix)]
    head, dot, last = name.removeprefix(prefixes[0] if prefixes else "").rpartition(".")
    for key in TIME_KEYS.get(library, ()) if ".params." not in name else ():
        end = key.pattern.rpartition(".")[2]
        meant = len(end) >= LONG_NAME and "*" not in end and last != end and one_slip_apart(last, end)
        if meant and fnmatchcase(f"{head}{dot}{end}", key.pattern):
            return f"{head}{dot}{end}"
    return ""


def _fraction(value: object) -> Fraction | None:
    """A positive number as it is written, and 1/120 of 0.008333333333333333."""
    if not _is_number(value) or not 0 < value < inf:  # type: ignore[operator]
        return None
    written, simple = Fraction(str(value)), Fraction(str(value)).limit_denominator(1_000_000)
    return simple if abs(simple / written - 1) < Fraction(1, 10**15) else written


_SURELY_A_COUNT = 10_000
"""Files write such numbers of steps as 1e6, which is a float and no weight."""
_PER_STEP_TERM = re.compile(r"no_\w+_collision|\w*handover\w*|(peg|socket)_\w+|(left|right)_(reward|target_qpos)")
"""Of Playground's tasks that do not multiply rewards by ctrl_dt, Panda's and Aloha's, each has such a term."""
_OF_BOTH = {"gripper_box", "box_target", "robot_target_qpos"}
_OF_TASKS_WITH_INCREMENTS = {
    *("gripper_box", "peg_insertion_reward"),  # Panda's and Aloha's tasks
    *("hand_pose", "stay_still", "foot_slip"),  # LeapCubeReorient; Go1Handstand and Footstand; H1JoystickGaitTracking
}
WEIGHT = re.compile(
    r"weight$|(^|[._])scales?(_value)?$|(^|[._])scales\.|(^|_)rew(ard)?(s|_|$)|penalty|bonus|reward_scaling$"
)
"""Names of what rewards are multiplied by, which is no count also where it is a whole number."""
_MANAGER = re.compile(r"^(\w+)_manager\.cfg\.")
"""How an address for modify_env_param begins, which modify_term_cfg calls rewards., actions. or alike."""
_LOOKS_LIKE_TIME = re.compile(
    r"(^|_)(steps?|delay|lag|latency|period|interval|freq(uency)?|hz|fps|horizon|history|decay|alpha|dt|duration|"
    r"timeout|time|window|hold|frames?|decimation|timesteps|average|filter|prob(ability)?|iters?|episode_length)"
    r"($|_(s|ms|steps|len|length|min|max|range))|(^|_)(ema|smoothing|every|consecutive|patience)($|_)"
)
_FILTER = re.compile(r"\bmodifiers\.\d+\.[AB]$|\bactions\..*\.beta$")
_NO_TIME = re.compile(
    r"weight_decay|noise_step|height_step|^env_wrapper\.|^models\.|^env\.viewer\.|^_|^(start_time|num_timesteps)$"
)
Treatment: TypeAlias = Literal["carried", "kept", "yours"]
_HEAD: Mapping[Treatment, str] = {"carried": "Carried as well", "kept": "Kept", "yours": "NOT carried, set it yourself"}
TIME_NOTES = tuple(f"{what}: " for what in _HEAD.values())


class TimeChange(NamedTuple):
    name: str
    old: Any
    new: Any
    """The value at the new cycle time; of one that is the user's to set, what it would be."""
    treatment: Treatment
    reason: str

    def as_text(self) -> str:
        old = _written(self.old)
        if self.treatment == "kept":
            return f"{self.name} {old} ({self.reason})" if old else f"{self.name} ({self.reason})"
        arrow = f"-> {_written(self.new)} (" if self.treatment == "carried" else f"(would be {_written(self.new)}: "
        return f"{self.name} {old} {arrow}{self.reason})"


def time_notes(changes: Collection[TimeChange]) -> list[str]:
    texts = {what: [each.as_text() for each in changes if each.treatment == what] for what in _HEAD}
    return [f"{_HEAD[what]}: {'; '.join(each)}." for what, each in texts.items() if each]


def environment_keys(environment: str, settings: Mapping[str, object], trainer: bool) -> tuple[TimeKey, ...]:
    """What is known of an environment's settings, and with `trainer` of those of the trainer that scale rewards."""
    if environment != "mujoco-playground":
        return ENVIRONMENT_KEYS.get(environment, ())
    # Playground's locomotion and hands multiply rewards by ctrl_dt, its arms and dm_control's tasks do not; the latter
    # have no scales at all.
    scales = {name.rpartition(".")[2] for name in settings if "scales." in name and "noise" not in name}
    if not scales:
        return (*_NOISE, *_DM_CONTROL, *_BRAX) if trainer else (*_NOISE, *_BRAX)
    pays = _PLAYGROUND_PER_STEP if any(map(_PER_STEP_TERM.fullmatch, scales)) else _PLAYGROUND_PER_SECOND
    pays = _PLAYGROUND_EITHER if scales <= _OF_BOTH else pays
    # No setting says what an action is, and these terms are in no other of its tasks.
    increments = _PLAYGROUND_INCREMENTS if scales & _OF_TASKS_WITH_INCREMENTS else ()
    return (*_NOISE, *increments, *pays, *_BRAX)


def library_keys(library: str, settings: Mapping[str, object]) -> tuple[TimeKey, ...]:
    """What is known of settings in a library's words, an agent's and its environment's."""
    if library == "mujoco-playground":
        return environment_keys(library, settings, trainer=False)
    return TIME_KEYS.get(library, ())


def applied_keys(
    library: str, settings: Mapping[str, object], names: Collection[str], keys: Collection[TimeKey] | None = None
) -> Iterator[tuple[str, str, TimeKey]]:
    """By name, and by its kind, what is known of each setting that means time; no reason if no number."""
    keys = library_keys(library, settings) if keys is None else keys
    for name in names:
        value, known_as = settings[name], kind_name(name, settings)
        fitting = [key for key in keys if fnmatchcase(known_as, key.pattern)]
        if key := next((each for each in fitting if _applies(each, name, value, settings, library)), None):
            yield name, known_as, _marked_guess(key, known_as, keys)
        elif fitting:
            equal = fitting[0].equals
            follows = f"-1 follows {equal}" if value == -1 else f"not equal to {equal}"
            why = "in seconds" if equal == CYCLE_TIME else follows
            yield name, known_as, TimeKey(known_as, KEPT, why if _is_number(value) else "")


def _marked_guess(key: TimeKey, kind: str, keys: Collection[TimeKey]) -> TimeKey:
    """A reward term's key, whose reason says where it is a guess: by a name with a word that no known term has."""
    found = _TERM.search(kind)
    if found is None or _is_known(term := found[1] or found[2], key):
        return key
    words = term.split("_")
    near = {each: [one for one in _LONG_WORDS if one_slip_apart(each, one)] for each in {*words} - _TERM_WORDS}
    meant = "_".join((near.get(each) or [each])[0] for each in words)
    meant_key = next(each for each in keys if fnmatchcase(kind.replace(term, meant), each.pattern))
    hint = f"; did you mean {meant}?" if meant != term and _is_known(meant, meant_key) else ""
    says = _GUESS if key.reason == _RATE else key.reason
    return key._replace(reason=f"{says}{'' if says.endswith('check') else ': a guess by its name, check'}{hint}")


def _is_known(term: str, key: TimeKey) -> bool:
    return {*_TERM_WORDS, *re.findall(r"[a-z\d]+", key.pattern)}.issuperset(term.lower().split("_"))


def is_no_number(key: TimeKey, weighs: bool, value: object) -> bool:
    """Whether what a number must be to be carried is a text, or a reward's weight nothing; but for the cycle time."""
    items = value if isinstance(value, list) else [value]
    if value == "auto" or "${" in str(value) or not key.carried or key.reason == SETS:
        return False
    return (weighs or key.law != KEPT) and any(isinstance(each, str) or (weighs and each is None) for each in items)


def carry_time_keys(
    library: str,
    settings: Mapping[str, object],
    rho: Fraction,
    left: Collection[str],
    keys: Collection[TimeKey] | None = None,
    envs: Fraction = Fraction(1),
    batches: Fraction = Fraction(1),
    ruled: Mapping[str, object] | None = None,
) -> list[TimeChange]:
    """What becomes of all settings that mean time; `left` are those that rules left alone.

    `envs` is how many times as many environments there are, `batches` how many times as long a batch lasts, and
    `ruled` has what rules have set by now.
    """
    changes: list[TimeChange] = []
    scales = {"agent steps": rho, "all steps": rho * envs, "batches": batches}
    for name, known_as, key in applied_keys(library, settings, left, keys):
        scale = scales[key.counts]
        if not key.reason or rho == scale == 1:
            continue
        if key.law != KEPT and key.equals in (ruled or {}):
            changes.append(TimeChange(name, settings[name], (ruled or {})[key.equals], "carried", key.reason))
            continue
        if key.counts == "all steps" and envs != 1:
            key = key._replace(reason=_IN_ALL)
        if key.counts == "batches" and batches != 1:
            key = key._replace(reason=f"{_BATCHES.partition(',')[0]}, which last {float(batches):.3g} times as long")
        changes += _carry(key, name, known_as, settings, scale)
    return changes


def _carry(key: TimeKey, name: str, kind: str, settings: Mapping[str, object], rho: Fraction) -> Iterator[TimeChange]:
    value, last, is_weight = settings[name], name.rpartition(".")[2], bool(WEIGHT.search(kind))
    if isinstance(value, bool):
        return
    if key.law == KEPT or (value in (-1, inf) and key.law == COUNT and not is_weight):
        why = key.reason if key.law == KEPT else f"{value} is no number of steps"
        yield TimeChange(name, value, value, "kept" if key.carried or key.law != KEPT else "yours", why)
        return
    numbers: list[Any] = value if isinstance(value, list) else [value]
    if not all(_is_number(each) for each in numbers) or not any(numbers):
        return
    least = 2 if key.law == COUNT and "history" in last and value != 1 else 1
    pairs = [_carried_number(name, each, key.law, rho, least, not is_weight) for each in numbers]
    new = [each for each, _ in pairs] if isinstance(value, list) else pairs[0][0]
    rounded = "" if all(exact for _, exact in pairs) else f", rounded from {_written(_exact(numbers, key.law, rho))}"
    sets_it = kind == name or last in ("value", "weight") or not name.startswith("curriculum.")
    if key.carried and sets_it and not (rounded and key.reason == SETS):
        yield TimeChange(name, value, new, "kept" if new == value else "carried", key.reason + rounded)
        return
    is_fine = not rounded or (isinstance(new, int) and new >= 1000)  # of which nobody needs a fraction
    yield TimeChange(name, value, new if is_fine else _exact(numbers, key.law, rho), "yours", key.reason)


def kind_name(name: str, settings: Mapping[str, object]) -> str:
    """The name that says what kind of setting it is: of a reward its function, of an action its class."""
    name = _set_by_curriculum(name, settings) or name
    head, _, last = name.rpartition(".")
    if name.startswith("rewards.") and last == "weight" and isinstance(found := settings.get(f"{head}.func"), str):
        spot = "spot." if ".spot." in found else ""  # whose terms are norms
        return f"rewards.{spot}{found.rpartition(':')[2].rpartition('.')[2]}.weight"
    if name.startswith("actions.") and last.endswith("scale"):
        kind = str(settings.get(f"{head}.class_type", "")).lower().rpartition(":")[2].rpartition(".")[2]
        modes = [settings.get(f"{head}.{each}use_relative_mode") for each in ("", "controller.")]
        relative = True in modes or "pose_rel" in str(settings.get(f"{head}.controller_cfg.target_types"))
        return f"{head}.{kind}{'.relative' if relative else ''}.{last}"
    return name


def _set_by_curriculum(name: str, settings: Mapping[str, object]) -> str:
    """The setting whose value a parameter of a curriculum is, by its term or its address; else nothing."""
    head, _, parameter = name.partition(".params.")
    if not name.startswith("curriculum.") or looks_like_time(name):
        return ""
    term, reward, address = (settings.get(f"{head}.params.{each}") for each in ("term_name", "reward_name", "address"))
    if (term or reward) and "weight" in parameter.rpartition(".")[2]:
        return f"rewards.{term or reward}.weight"
    found = _MANAGER.sub(r"\1s.", str(address)) if address and parameter.startswith("modify_params.") else ""
    return found.replace("[", ".").replace("]", "")


def looks_like_time(name: str) -> bool:
    last = name.rpartition(".")[2].lower()
    return bool(_LOOKS_LIKE_TIME.search(last) or _FILTER.search(name)) and not _NO_TIME.search(name)


def _applies(key: TimeKey, name: str, value: object, settings: Mapping[str, object], library: str) -> bool:
    if not key.equals:
        return not key.beside or bool(settings.get(f"{name.rpartition('.')[0]}.{key.beside}"))
    if key.equals.isdigit():
        return value == int(key.equals)
    if key.equals in (CYCLE_TIME, _ITS_PERIOD):
        stated = stated_cycle_time(library, settings)
        value = value if key.equals == CYCLE_TIME else settings.get(f"{name.rpartition('.')[0]}.update_period")
        return stated is not None and _fraction(value) == stated[0].exact_s
    canonical = {name.rpartition(".")[2]: each for name, each in settings.items() if name.endswith(key.equals)}
    return value == canonical.get(key.equals)


def _carried_number(name: str, value: float, law: Law, rho: Fraction, least: int, is_count: bool) -> tuple[float, bool]:
    """The value in the new cycle time, and whether it is exact."""
    if not isfinite(value):
        raise InputError(f"{name} is {value!r}: it counts or decays in steps, so it must be a finite number.")
    if value == 0:
        return value, True
    exact = Fraction(law(abs(value), rho)) * (1 if value > 0 else -1)
    counts = isinstance(value, int) or (law == COUNT and value >= _SURELY_A_COUNT and float(value).is_integer())
    if counts and value > 0 and law in (COUNT, PROPORTIONAL) and is_count:
        whole = nearest_whole(exact, least)
        return whole, whole == exact
    if isinstance(value, int) and exact.denominator == 1:
        return int(exact), True
    return float(f"{float(exact):.15g}"), True  # 0.4, not 0.40000000000000002


def _exact(numbers: list[Any], law: Law, rho: Fraction) -> Any:  # noqa: ANN401 - a number, or a list of them
    laws = [float(law(each, rho)) if each else each for each in numbers]
    exact = [round(each, 1) if abs(each) >= 1000 else float(f"{each:.4g}") for each in laws]
    return exact if len(exact) > 1 else exact[0]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return f"{value:.12g}" if _is_number(value) else ""
