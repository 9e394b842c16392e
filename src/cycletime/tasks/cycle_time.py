"""An action-cycle time for any Gymnasium environment: Algorithm 1 of the paper, the hold of k = dt / env_dt steps.

An action is held for a whole number of environment steps, its rewards are summed without discounting, and the agent
sees the last observation. A cycle is cut short only by the end of the episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor
from typing import Any, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym

from cycletime.duration import Duration, DurationLike, cycle_steps
from cycletime.errors import InputError
from cycletime.tasks.render import frame_rate

AnyEnv: TypeAlias = "gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]"


@runtime_checkable
class HoldsActions(Protocol):
    """What holds actions itself and keeps the clock: a `CycleTime`, or one of the paper's closed-form tasks."""

    @property
    def dt(self) -> float:
        """The cycle in seconds."""

    @property
    def env_dt(self) -> float:
        """The time step of the simulation in seconds."""

    @property
    def env_steps(self) -> int:
        """The steps of the simulation since the episode's start."""


class CycleTime(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Holds every action for ``dt`` seconds.

    ``info`` tells after each reset and step, counted since the episode's start: ``env_steps``, ``agent_steps`` and
    ``elapsed_s``; and ``cycle_steps``, the environment steps that this cycle really lasted. The rest of it is the
    last environment step's. Around another `CycleTime`, or a task that holds actions itself, the cycle is a multiple of
    the inner one, and ``env_dt`` and ``env_steps`` remain those of the simulation.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        dt: DurationLike,
        *,
        env_dt: DurationLike | None = None,
        time_limit: DurationLike | None = None,
    ) -> None:
        """Wrap an environment.

        Args:
            env: The environment. A ``TimeLimit`` inside counts environment steps, and so keeps its seconds.
            dt: The action-cycle time, a whole multiple of the environment's step.
            env_dt: How long one step of ``env`` lasts, where it does not publish it as ``dt``.
            time_limit: Truncate episodes after this span, even in the middle of a cycle.

        Raises:
            InputError: if the time step is unknown, or a span is no whole multiple of it.
        """
        gym.utils.RecordConstructorArgs.__init__(
            self, dt=str(Duration(dt)), env_dt=recorded(env_dt), time_limit=recorded(time_limit)
        )
        refuse_what_hides_episode_ends(env, "CycleTime")
        gym.Wrapper.__init__(self, env)
        step = step_of(env, env_dt)
        self._dt = Duration(dt)
        self._below = _clock_below(env)
        self._env_dt: Duration = Duration(self._below.env_dt) if self._below else step
        self._hold_steps = self._whole_inner_steps(step)
        self._limit_steps = None
        if time_limit is not None:
            _refuse_shorter_limit(env, Duration(time_limit), step)
            self._limit_steps = whole_steps("time limit", Duration(time_limit).exact_s, step, least=1)
        self._held_steps = 0
        self._agent_steps = 0
        # A copy, since metadata belongs to the environment's class.
        self.metadata = {**env.metadata, "render_fps": frame_rate(self.dt)}

    @property
    def dt(self) -> float:
        """The action-cycle time in seconds."""
        return float(self._dt)

    @property
    def env_dt(self) -> float:
        """The environment's time step in seconds."""
        return float(self._env_dt)

    @property
    def cycle_steps(self) -> int:
        """The environment steps in a full cycle."""
        return cycle_steps(self._dt, self._env_dt)

    @property
    def env_steps(self) -> int:
        """The environment steps since the episode's start."""
        return self._below.env_steps if self._below else self._held_steps

    @property
    def agent_steps(self) -> int:
        """The cycles since the episode's start."""
        return self._agent_steps

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._held_steps = self._agent_steps = 0
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, self._with_clock(info, lasted=0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401 (any action space)
        """Hold the action for one cycle, or until the episode ends."""
        before, total_reward = self.env_steps, 0.0
        for _ in range(self._hold_steps):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total_reward += float(reward)
            self._held_steps += 1
            truncated = truncated or (self._limit_steps is not None and self._held_steps >= self._limit_steps)
            if terminated or truncated:
                break
        self._agent_steps += 1
        info = self._with_clock(info, lasted=self.env_steps - before)
        return observation, total_reward, bool(terminated), bool(truncated), info

    def _whole_inner_steps(self, step: Duration) -> int:
        try:
            return cycle_steps(self._dt, step)
        except InputError as error:
            hint = (
                " Shorter ones need a shorter step: see retime, or give --env-dt on the command line."
                if self._dt < step
                else ""
            )
            if self._below:
                name = self.env.spec.id if self.env.spec else self.env
                hint = (
                    f" {name} has a cycle time of its own: set that one, as in gymnasium.make(id, dt=...) or make_vec."
                )
            raise InputError(f"{error}{hint}") from None

    def _with_clock(self, info: dict[str, Any], lasted: int) -> dict[str, Any]:
        return {
            **info,
            "env_steps": self.env_steps,
            "agent_steps": self._agent_steps,
            "elapsed_s": float(self._env_dt.exact_s * self.env_steps),
            "cycle_steps": lasted,
        }


def step_of(env: AnyEnv, env_dt: DurationLike | None = None) -> Duration:
    """How long one ``env.step`` lasts: ``env_dt``, else what the outermost layer with a ``dt`` says.

    `CycleTime` and ``Retime`` have one, and so have many environments themselves, where it may mean something else
    than a step, so that ``env_dt`` wins over it. The metadata's ``render_fps`` is never asked: it says how videos are
    played and is rounded.

    Raises:
        InputError: if nothing tells, or ``env_dt`` contradicts a layer that holds or retimes.
    """
    if env_dt is None:
        return _published_step(env)
    given = Duration(env_dt)
    knows_its_step = any(hasattr(layer, "dt") for layer in layers_of(env)) or isinstance(env.unwrapped, HoldsActions)
    if knows_its_step and given != _published_step(env):
        raise InputError(f"env_dt is {given}, but a step of {env} lasts {_published_step(env)}: leave env_dt out.")
    return given


def layers_of(env: AnyEnv) -> Iterator[gym.Wrapper[Any, Any, Any, Any]]:
    """The wrappers of an environment, from the outside in."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def whole_steps(name: str, span_s: Fraction, step: Duration, least: int) -> int:
    """How many steps are in a span that must be a whole multiple of them; the message names the span.

    Raises:
        InputError: if it is no multiple, or fewer steps than ``least`` (0 or 1).
    """
    steps = span_s / step.exact_s
    if steps.denominator == 1 and steps >= least:
        return steps.numerator
    below = max(least, floor(steps))
    nearest = [str(step * count) if count else "0s" for count in (below, below + 1)]
    raise InputError(
        f"The {name} {Duration(span_s) if span_s else '0s'} is no whole multiple of the environment's step {step}: "
        f"the nearest are {nearest[0]} and {nearest[1]}."
    )


def refuse_what_hides_episode_ends(env: gym.Env[Any, Any], wrapper: str) -> None:
    """Refuse what would carry an action, or a delay's memory, from one episode into the next."""
    if not isinstance(env, gym.Env):
        raise InputError(
            f"{wrapper} wraps a single gymnasium.Env and not {env!r}: give it to gymnasium.make_vec among the wrappers."
        )
    if any(isinstance(layer, gym.wrappers.Autoreset) for layer in layers_of(env)):
        raise InputError(f"{env} resets itself, and {wrapper} would not see it: put Autoreset around {wrapper}.")


def _published_step(env: AnyEnv) -> Duration:
    published, repeats = None, 1
    for layer in layers_of(env):
        published = getattr(layer, "dt", None)
        if published is not None:
            break
        repeats *= _repeats(layer)
    else:
        published = getattr(env.unwrapped, "dt", None)
    if published is None:
        raise InputError(
            f"{env} publishes no time step (env.unwrapped.dt): give it, for example env_dt='20ms' (--env-dt on the "
            "command line)."
        )
    try:
        return Duration(published) * repeats
    except InputError:
        raise InputError(f"{env} publishes dt = {published!r}, no time step: give it, as in env_dt='20ms'.") from None


def _clock_below(env: gym.Env[Any, Any]) -> HoldsActions | None:
    cycle_time = next((layer for layer in layers_of(env) if isinstance(layer, CycleTime)), None)
    return cycle_time or (env.unwrapped if isinstance(env.unwrapped, HoldsActions) else None)


def _refuse_shorter_limit(env: gym.Env[Any, Any], time_limit: Duration, step: Duration) -> None:
    for layer in layers_of(env):
        if isinstance(layer, gym.wrappers.TimeLimit):
            inner = step * layer._max_episode_steps
            if inner < time_limit:
                raise InputError(
                    f"The time limit {time_limit} is never reached, since {env} ends episodes after {inner} already: "
                    f"make it with max_episode_steps=-1."
                )
        step = step * Fraction(1, _repeats(layer))


def _repeats(layer: gym.Wrapper[Any, Any, Any, Any]) -> int:
    """How many steps of what is inside a layer make one of its own, where that is known."""
    if isinstance(layer, CycleTime):
        return layer._hold_steps
    if isinstance(layer, gym.wrappers.RepeatAction):
        return int(layer.num_repeats)
    return int(layer._skip) if isinstance(layer, gym.wrappers.MaxAndSkipObservation) else 1


def recorded(span: DurationLike | None) -> str | None:
    """The span as it stands in the environment's specification, which must be JSON."""
    return None if span is None else str(Duration(span))
