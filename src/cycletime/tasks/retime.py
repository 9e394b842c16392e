"""Gymnasium's MuJoCo environments, and Pendulum, with another time step: `retime("Hopper-v5", "2ms")`.

An environment step is `frame_skip` physics steps, in exact arithmetic; the physics step is never made longer than the
environment's own, since its model was tuned for that one. A reward term that is charged once per step is multiplied by
env_dt/own_dt, so that its sum over an episode stays, up to the error of sampling it more often. A difference of
potentials telescopes, and is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from importlib.util import find_spec
from math import ceil, floor, inf
from typing import Any, ClassVar, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TimeLimit

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError, did_you_mean, quote
from cycletime.extras import install_command
from cycletime.tasks.render import frame_rate
from cycletime.tasks.time_step import duration_text, whole_steps, wrapper_layers


@dataclass(frozen=True)
class TimeStep:
    physics_dt: Duration
    frame_skip: int

    @property
    def env_dt(self) -> Duration:
        return self.physics_dt * self.frame_skip


@dataclass(frozen=True)
class MujocoClock:
    """Environments derived from Gymnasium's ``MujocoEnv``: ``model.opt.timestep`` and ``frame_skip``."""

    skips_frames: ClassVar[bool] = True

    def read(self, env: Any) -> TimeStep:  # noqa: ANN401
        try:
            return TimeStep(Duration.of_seconds(float(env.model.opt.timestep)), int(env.frame_skip))
        except AttributeError:
            raise InputError(
                f"{env} has no model.opt.timestep and frame_skip: register it with clock=AttributeClock(name)."
            ) from None

    def write(self, env: Any, step: TimeStep) -> None:  # noqa: ANN401
        """Set another time step; the constructor is not used, since it asserts the frame rate of the default step."""
        env.model.opt.timestep = float(step.physics_dt)
        env.frame_skip = step.frame_skip


@dataclass(frozen=True)
class AttributeClock:
    """Environments that integrate once per step, over the number of seconds in an attribute."""

    name: str = "dt"
    """The attribute, such as Pendulum's ``dt`` or CartPole's ``tau``."""

    skips_frames: ClassVar[bool] = False

    def read(self, env: Any) -> TimeStep:  # noqa: ANN401
        if not hasattr(env, self.name):
            raise InputError(f"{env} has no attribute {self.name!r}: register it with the one of its time step.")
        return TimeStep(Duration.of_seconds(getattr(env, self.name)), 1)

    def write(self, env: Any, step: TimeStep) -> None:  # noqa: ANN401
        setattr(env, self.name, float(step.physics_dt))


Clock: TypeAlias = MujocoClock | AttributeClock


def choose_time_step(
    own: TimeStep, env_dt: DurationLike, physics_dt: DurationLike | None, skips_frames: bool
) -> TimeStep:
    """The time step with the asked physics step, or with the longest that is no longer than the own one."""
    env_dt, longest = Duration(env_dt), own.physics_dt
    if not skips_frames and env_dt > longest:
        once = f"the {longest} of this environment, which integrates once per step"
        remedy = f"give at most {longest}, and hold each action for several steps by CycleTime"
        raise InputError(f"The step {env_dt} is longer than {once}: {remedy}.")
    if physics_dt is None:
        frames = ceil(env_dt / longest)
        return TimeStep(Duration(env_dt.exact_s / frames), frames)
    physics_dt = Duration(physics_dt)
    if physics_dt > longest:
        raise InputError(f"physics_dt {physics_dt} is longer than this environment's own {longest}: give at most that.")
    ratio = env_dt / physics_dt
    if not skips_frames and ratio != 1:
        why = "and this environment integrates once per step: leave physics_dt out"
        raise InputError(f"physics_dt {physics_dt} differs from env_dt {env_dt}, {why}.")
    if ratio.denominator != 1:
        fewer = max(1, floor(ratio))
        near = " and ".join(f"{Duration(env_dt.exact_s / n)} ({n} per step)" for n in (fewer, fewer + 1))
        raise InputError(f"env_dt {env_dt} is not a whole multiple of physics_dt {physics_dt}: the nearest are {near}.")
    return TimeStep(physics_dt, ratio.numerator)


class Kind(Enum):
    """How a reward term depends on the time step."""

    RATE = "rate"
    """Charged once per step: an alive bonus, a control cost, a distance. Multiplied by env_dt/own_dt."""
    VELOCITY = "velocity"
    """A difference divided by the environment's time step. Its sum is a displacement after the same factor."""
    DIFFERENCE = "difference"
    """A difference that is not divided by a time step. It telescopes and is left alone."""
    EVENT = "event"
    """Paid once when something happens, such as reaching a goal. Left alone."""
    OVER_PHYSICS_DT = "rate over physics_dt"
    """A rate that the environment divides by its physics step. Multiplied by physics_dt/own_physics_dt, too."""

    @property
    def powers(self) -> tuple[int, int]:
        """The powers of env_dt/own_dt and of physics_dt/own_physics_dt in the factor."""
        if self in (Kind.DIFFERENCE, Kind.EVENT):
            return 0, 0
        return (1, 1) if self is Kind.OVER_PHYSICS_DT else (1, 0)

    def factor(self, own: TimeStep, now: TimeStep) -> float:
        """What a term of this kind is multiplied by where the time step went from `own` to `now`."""
        of_env, of_physics = self.powers
        return float((now.env_dt / own.env_dt) ** of_env * (now.physics_dt / own.physics_dt) ** of_physics)


@dataclass(frozen=True)
class RewardTerm:
    """One summand of an environment's reward."""

    formula: str
    """What the environment computes, with its sign, for people to read."""
    kind: Kind
    info: str | None = None
    """The entry of ``info`` that holds this summand with its sign, if there is one."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, Kind):
            raise InputError(f"kind is {quote(self.kind)}: give one of {', '.join(map(str, Kind))}.")


@dataclass(frozen=True)
class Scaling:
    rest: float
    by_info: Mapping[str, float]

    @classmethod
    def of(cls, terms: Sequence[RewardTerm], own: TimeStep, now: TimeStep) -> Scaling:
        # Without hidden terms there is no rest, and any of the factors will do.
        rest = next((term.kind for term in terms if term.info is None), terms[0].kind)
        by_info = {term.info: term.kind.factor(own, now) for term in terms if term.info is not None}
        return cls(rest.factor(own, now), by_info)

    def apply(self, reward: float, info: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        missing = [name for name in self.by_info if name not in info]
        if missing:
            raise InputError(f"info has no entry {missing[0]!r} of a reward term: it has {', '.join(info) or 'none'}.")
        # Where all factors are the same this is one product, so a factor of 1 changes no bit.
        apart = sum((factor - self.rest) * float(info[name]) for name, factor in self.by_info.items())
        return self.rest * reward + apart, info | {name: info[name] * factor for name, factor in self.by_info.items()}


def check_terms(terms: Sequence[RewardTerm]) -> None:
    if not terms:
        raise InputError("No reward terms were given: describe at least one, as in RewardTerm('1', Kind.RATE).")
    names = [term.info for term in terms if term.info is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"The entry {twice!r} of info was given for several reward terms: give one term for it.")
    hidden = [term for term in terms if term.info is None]
    if len({term.kind.powers for term in hidden}) > 1:
        which = " and ".join(f"{term.formula!r} ({term.kind.value})" for term in hidden)
        raise InputError(f"{which} have different factors: name the entries of info that hold them, with info=.")


@dataclass(frozen=True)
class Retiming:
    clock: Clock
    terms: tuple[RewardTerm, ...]


FORWARD = RewardTerm("(x_after - x_before) / env_dt", Kind.VELOCITY, "reward_forward")
ALIVE = RewardTerm("1 while healthy", Kind.RATE, "reward_survive")


def _rate(formula: str, info: str) -> RewardTerm:
    return RewardTerm(formula, Kind.RATE, info)


_MUJOCO_TERMS = {
    "Reacher-v5": (_rate("-|fingertip - target|", "reward_dist"), _rate("-|action|^2", "reward_ctrl")),
    "Pusher-v5": (
        _rate("-0.5 |object - fingertip|", "reward_near"),
        _rate("-|object - goal|", "reward_dist"),
        _rate("-0.1 |action|^2", "reward_ctrl"),
    ),
    "InvertedPendulum-v5": (ALIVE,),
    "InvertedDoublePendulum-v5": (
        _rate("10 while the tip is above 1 m", "reward_survive"),
        _rate("-0.01 x^2 - (y - 2)^2 of the tip", "distance_penalty"),
        _rate("-0.001 w1^2 - 0.005 w2^2", "velocity_penalty"),  # joint velocities of the state, not differences
    ),
    "HalfCheetah-v5": (FORWARD, _rate("-0.1 |action|^2", "reward_ctrl")),
    "Hopper-v5": (FORWARD, ALIVE, _rate("-0.001 |action|^2", "reward_ctrl")),
    "Walker2d-v5": (FORWARD, ALIVE, _rate("-0.001 |action|^2", "reward_ctrl")),
    "Swimmer-v5": (FORWARD, _rate("-0.0001 |action|^2", "reward_ctrl")),
    "Ant-v5": (
        FORWARD,
        ALIVE,
        _rate("-0.5 |action|^2", "reward_ctrl"),
        _rate("-0.0005 |contact forces, clipped to +-1|^2", "reward_contact"),
    ),
    "Humanoid-v5": (
        RewardTerm("1.25 (x_after - x_before) / env_dt", Kind.VELOCITY, "reward_forward"),
        _rate("5 while healthy", "reward_survive"),
        _rate("-0.1 |action|^2", "reward_ctrl"),
        _rate("-min(5e-7 |contact forces|^2, 10)", "reward_contact"),
    ),
    "HumanoidStandup-v5": (
        RewardTerm("height / physics_dt", Kind.OVER_PHYSICS_DT, "reward_linup"),
        _rate("-0.1 |action|^2", "reward_quadctrl"),
        _rate("-min(5e-7 |contact forces|^2, 10)", "reward_impact"),
        RewardTerm("1", Kind.RATE),  # the environment does not report this one
    ),
}
_PENDULUM_TERMS = (RewardTerm("-(angle^2 + 0.1 w^2 + 0.001 action^2), before the step", Kind.RATE),)

RETIMINGS: dict[str, Retiming] = {
    **{env_id: Retiming(MujocoClock(), terms) for env_id, terms in _MUJOCO_TERMS.items()},
    "Pendulum-v1": Retiming(AttributeClock("dt"), _PENDULUM_TERMS),
}
"""What is known, by Gymnasium id; `register_retiming` adds to it."""


def register_retiming(env_id: str, terms: Sequence[RewardTerm], clock: Clock | None = None) -> None:
    """Make one more environment known to `retime`.

    Args:
        env_id: Its Gymnasium id with the version.
        terms: Every summand of its reward. Where their factors differ, ``info`` has to hold all but one sort of them.
        clock: Where its time step is kept: ``MujocoClock()``, which is the default, or ``AttributeClock(name)``.

    Raises:
        InputError: if the id is known already with other terms, or if the terms cannot be told apart.
    """
    check_terms(terms)
    retiming = Retiming(clock or MujocoClock(), tuple(terms))
    if RETIMINGS.setdefault(env_id, retiming) != retiming:
        raise InputError(f"{env_id!r} is known already: register your own environment under an id of its own.")


def find_retiming(env_id: str) -> Retiming:
    if env_id not in RETIMINGS:
        known = f"{', '.join(sorted(RETIMINGS))}{did_you_mean(env_id, RETIMINGS)}"
        remedy = f"describe them with register_retiming({env_id!r}, terms), or choose one of {known}"
        raise InputError(f"The reward terms of {env_id!r} are not known: {remedy}")
    return RETIMINGS[env_id]


class Retime(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose step is `env_dt`, with rewards that stay comparable per second."""

    time_step: TimeStep

    def __init__(self, env: gym.Env[Any, Any], env_dt: DurationLike, physics_dt: DurationLike | None = None) -> None:
        RecordConstructorArgs.__init__(self, env_dt=duration_text(env_dt), physics_dt=duration_text(physics_dt))
        gym.Wrapper.__init__(self, env)
        refuse_second_retiming(env)
        if env.spec is None:
            raise InputError(f"{env} has no spec that says what it is: make it with retime(id, env_dt).")
        retiming = find_retiming(env.spec.id)
        self._clock = retiming.clock
        own = self._clock.read(env.unwrapped)
        self.time_step = choose_time_step(own, env_dt, physics_dt, self._clock.skips_frames)
        self._scaling = Scaling.of(retiming.terms, own, self.time_step)
        self._is_changed = self.time_step != own
        self._set_time_step()

    @property
    def env_dt(self) -> float:
        return float(self.time_step.env_dt)

    dt = env_dt  # by this name `CycleTime` asks how long a step lasts

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """One step of `env_dt`; the summands of the reward in ``info`` are multiplied like the reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward, info = self._scaling.apply(float(reward), info)
        return observation, reward, terminated, truncated, info

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the time step again, since Gymnasium unpickles an environment by calling its constructor."""
        self.__dict__.update(state)
        self._set_time_step()

    def _set_time_step(self) -> None:
        if not self._is_changed:
            return
        env = self.env.unwrapped
        self._clock.write(env, self.time_step)
        # A dictionary of this instance's own: the one of the class belongs to every other environment of its kind.
        env.metadata = env.metadata | {"render_fps": frame_rate(self.env_dt)}


def refuse_second_retiming(env: gym.Env[Any, Any]) -> None:
    """Refuse a time step on top of another, since the environment's own physics step is no longer known."""
    before = next((layer for layer in wrapper_layers(env) if isinstance(layer, Retime)), None)
    if before is not None:
        raise InputError(f"{env} was retimed to {before.time_step.env_dt} already: start from its plain id.")


def retime(
    env_id: str | EnvSpec,
    env_dt: DurationLike,
    *,
    physics_dt: DurationLike | None = None,
    time_limit: DurationLike | None = None,
    **make_kwargs: Any,  # noqa: ANN401 - whatever the environment takes
) -> Retime:
    """Make an environment whose step is `env_dt`, with rewards per second and episodes in seconds as they were.

    Args:
        env_id: A Gymnasium id with its version, such as 'Hopper-v5', or a spec.
        env_dt: The new time step, shorter or longer than the environment's own.
        physics_dt: The step of the simulation. By default the environment's own where that divides `env_dt`, and else
            the longest below it that does. Another physics step is another world: see docs/retime.md.
        time_limit: After how long an episode is truncated; by default as long as for the plain environment.
            ``math.inf`` for no limit.
        make_kwargs: Further keywords for ``gymnasium.make``, such as ``render_mode``.

    Raises:
        InputError: if the environment is not known, or if a time is not a whole multiple where it has to be.
    """
    if not isinstance(env_id, str | EnvSpec):
        raise InputError(
            f"{env_id!r} is neither an id such as 'Hopper-v5' nor a spec: of an environment, give its .spec."
        )
    # 'module:Name-v0' lets Gymnasium import the module first.
    name = env_id.id if isinstance(env_id, EnvSpec) else env_id.rpartition(":")[2]
    env_dt = Duration(env_dt)
    clock = find_retiming(name).clock
    if isinstance(clock, MujocoClock) and find_spec("mujoco") is None:
        raise InputError(f"MuJoCo is not installed: {install_command('mujoco')}.")
    for count, instead in {"max_episode_steps": "time_limit", "frame_skip": "env_dt"}.items():
        if count in make_kwargs:
            raise InputError(
                f"{count}={make_kwargs[count]!r} counts steps, whose length changes: give {instead} instead."
            )
    env: gym.Env[Any, Any] = gym.make(env_id, max_episode_steps=-1, **make_kwargs)
    refuse_second_retiming(env)
    most_steps = (env_id if isinstance(env_id, EnvSpec) else gym.spec(name)).max_episode_steps
    own = clock.read(env.unwrapped)
    choose_time_step(own, env_dt, physics_dt, clock.skips_frames)  # which refuses a step that is too long
    limit = None if most_steps is None else own.env_dt * most_steps
    if time_limit is not None:
        limit = None if isinstance(time_limit, float) and time_limit == inf else Duration(time_limit)
    if limit is not None and time_limit is None and (limit / env_dt).denominator != 1:
        near = [step for step in _steps_that_divide(limit, env_dt) if clock.skips_frames or step <= own.physics_dt]
        episode = f"The plain environment's episode of {limit} is no whole number of steps of {env_dt}"
        raise InputError(f"{episode}: take {' or '.join(map(str, near))}, or give retime a time_limit.")
    if limit is not None:
        env = TimeLimit(env, whole_steps("time_limit", limit.exact_s, env_dt, least=1))
    return Retime(env, env_dt, physics_dt)


def _steps_that_divide(episode: Duration, env_dt: Duration) -> list[Duration]:
    """The nearest shorter and longer step of which an episode is a whole multiple: of two digits, or half of such."""
    most, found = episode / env_dt, list[Duration]()
    for counts in (range(ceil(most), 10 * ceil(most)), range(floor(most), 0, -1)):
        steps = [episode.exact_s / count for count in counts[:10_000]]
        typed = [step for step in steps if step in (Fraction(f"{n * float(step):.2g}") / n for n in (1, 2))]
        found += map(Duration, (typed or steps)[:1])
    return found
