"""Delays in seconds: actions that take effect late and observations that come late, as on a robot.

Rewards and the ends of episodes are never delayed. What is sent later never arrives as if sent earlier: the newest that
has arrived counts, and what it overtook is dropped. Around a robot's environment steps have two parts.

`RealTime` is the real-time Markov decision process of Ramstedt & Pal (2019, 'Real-time reinforcement learning',
section 3): the environment steps with a_{t-1}, and the agent observes x_{t+1} = (s_{t+1}, a_t).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import deque
from contextlib import suppress
from copy import deepcopy
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers.utils import create_zero_array
from numpy.typing import NDArray

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError
from cycletime.tasks.cycle_time import CycleTime, refuse_hidden_resets
from cycletime.tasks.env_errors import EnvErrorWrapper
from cycletime.tasks.time_step import duration_text, step_duration, whole_steps, wrapper_layers
from cycletime.tasks.timing_contract import Timing, TimingKind, observation_names, past_names, space_names, timing

DelayLike: TypeAlias = "DurationLike | tuple[DurationLike, DurationLike] | list[DurationLike]"
"""A span that may be zero, or the two ends of a range from which whole steps are drawn uniformly, ends included."""

Step: TypeAlias = tuple[Any, Any, bool, bool, dict[str, Any]]

Redraw: TypeAlias = Literal["step", "episode"]

_ZERO = re.compile(r"[+-]?(0+\.?0*|\.0+)(e[+-]?\d+)?(/[1-9]\d*)? ?([nuµμm]?s|min|h)?")
_STREAM = 0xDE1A
"""Sets the delays' random numbers apart from those that the environment draws from the same seed."""


_TRANSPARENT_WRAPPERS = (gym.wrappers.OrderEnforcing, gym.wrappers.PassiveEnvChecker, EnvErrorWrapper, CycleTime)
"""Wrappers that change neither actions nor observations; a loop that holds actions itself needs no `CycleTime`."""
NOT_REAL_TIME = (
    "is no environment for the real-time loop, which asks for send, receive, dt, clock and where: give one that has "
    "them, or another engine."
)


@runtime_checkable
class SendReceiveEnv(Protocol):
    """A step in two parts: a robot's, or that of a wrapper which changes what goes to it or comes from it."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Bring the robot to its first pose, and begin an episode when it stands there; takes as long as it takes."""

    def send(self, action: Any) -> None:  # noqa: ANN401 - any action space
        """Do this from now on, until something else is sent; return at once."""

    def receive(self, env_steps: int = 1) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """What there is to see now, as from Gymnasium's `step`, without waiting.

        `env_steps` have passed since the last time: more than one where the loop came late, and the reward is for all
        of them. An episode's end brings the robot to a stand.
        """


def send_receive_env_of(env: gym.Env[Any, Any]) -> SendReceiveEnv:
    """The outermost layer of a robot's environment whose steps can be taken in two parts."""
    robot = env.unwrapped
    if not isinstance(robot, SendReceiveEnv):
        raise InputError(f"{env} {NOT_REAL_TIME}")
    for layer in wrapper_layers(env):
        if isinstance(layer, SendReceiveEnv):
            if any(isinstance(inner, CycleTime) for inner in wrapper_layers(layer)):
                remedy = "so put it inside, where it counts the environment's own steps"
                layers = f"{type(layer).__name__} is around a CycleTime"
                raise InputError(f"{layers}: the real-time loop holds actions itself, {remedy}.")
            return layer
        if not isinstance(layer, _TRANSPARENT_WRAPPERS):
            remedy = "the real-time loop would pass it by, so leave it out, or do what it does in the environment"
            raise InputError(
                f"{type(layer).__name__} is around {env.unwrapped}, and has no send and receive: {remedy}."
            )
    return robot


class _TwoPartWrapper(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Changes what goes to an environment and what comes from it, in whole steps or in the two parts of a robot's."""

    def step(self, action: Any) -> Step:  # noqa: ANN401
        return self._received(self.env.step(self._sent(action)))

    def send(self, action: Any) -> None:  # noqa: ANN401
        send_receive_env_of(self.env).send(self._sent(action))

    def receive(self, env_steps: int = 1) -> Step:
        """The second part; in steps that were missed nothing new was given, and what was on its way went on."""
        self._miss(env_steps - 1)
        return self._received(send_receive_env_of(self.env).receive(env_steps))

    def _sent(self, action: Any) -> Any:  # noqa: ANN401
        return action

    @abstractmethod
    def _received(self, step: Step) -> Step:
        """What the agent gets of a step."""

    @abstractmethod
    def _miss(self, steps: int) -> None:
        """Let steps pass in which nothing is sent or received."""


class _Delay(_TwoPartWrapper):
    """What is under way within an episode; delays are drawn with random numbers that follow from a reset's seed."""

    _kind: ClassVar[TimingKind]

    def __init__(
        self,
        env: gym.Env[Any, Any],
        delay: DelayLike,
        env_dt: DurationLike | None = None,
        redraw: Redraw = "step",
        **others: Any,  # noqa: ANN401
    ) -> None:
        """Wrap an environment.

        Args:
            env: The environment.
            delay: The delay, or the ends of its range.
            env_dt: The environment's time step, where it does not publish it.
            redraw: Draw from the range for each ``"step"`` or once per ``"episode"``.
            others: Further arguments of the subclass.
        """
        refuse_hidden_resets(env, type(self).__name__)
        ends_s = delay_range_s(delay)
        texts = [str(Duration(end_s)) if end_s else "0s" for end_s in ends_s]
        recorded = texts if len(texts) > 1 else texts[0]
        gym.utils.RecordConstructorArgs.__init__(
            self, delay=recorded, env_dt=duration_text(env_dt), redraw=redraw, **others
        )
        gym.Wrapper.__init__(self, env)
        if redraw not in ("step", "episode"):
            raise InputError(f"redraw is {redraw!r}: give 'step' or 'episode'.")
        self._step = step_duration(env, env_dt)
        ends = [whole_steps("delay", end_s, self._step, least=0) for end_s in ends_s]
        self._low, self._high = ends[0], ends[-1]
        self._once_per_episode = redraw == "episode"
        self._index = sum(isinstance(layer, _Delay) for layer in wrapper_layers(env))
        self._random = np.random.default_rng()
        self._begin_episode(None, None)

    @property
    def dt(self) -> float:
        return float(self._step)

    def contract_timing(self, step: Duration) -> list[Timing]:
        drawn = (
            {} if self._low == self._high else {"drawn": "once per episode" if self._once_per_episode else "each step"}
        )
        return [timing(self._kind, (self._low, self._high), self._step, **drawn)]

    def _begin_episode(self, seed: int | None, arrived: Any) -> None:  # noqa: ANN401
        if seed is not None:
            self._random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, self._index)))
        self._delay_steps = self._draw() if self._once_per_episode else self._low
        self._arrived, self._now = deepcopy(arrived), 0
        self._under_way: deque[tuple[int, Any]] = deque()

    def _delayed(self, item: Any) -> Any:  # noqa: ANN401
        """Send something; the newest that has arrived."""
        if not self._once_per_episode:
            self._delay_steps = self._draw()
        # Copies on both ends: environments and agents may reuse their arrays.
        self._under_way.append((self._now + self._delay_steps, deepcopy(item)))
        due = [index for index, (arrives, _) in enumerate(self._under_way) if arrives <= self._now]
        for _ in range(due[-1] + 1 if due else 0):
            _, self._arrived = self._under_way.popleft()
        self._now += 1
        return deepcopy(self._arrived)

    def _miss(self, steps: int) -> None:
        self._now += steps

    def _draw(self) -> int:
        return int(self._random.integers(self._low, self._high, endpoint=True))

    def _delay_s(self) -> float:
        return float(self._step.exact_s * self._delay_steps)


class ActionDelay(_Delay):
    """Applies every action ``delay`` seconds after it was given; ``info["action_delay_s"]`` is that delay.

    Until the first one arrives, ``initial_action`` is applied.
    """

    _kind = "action delay"

    def __init__(
        self,
        env: gym.Env[Any, Any],
        delay: DelayLike,
        env_dt: DurationLike | None = None,
        redraw: Redraw = "step",
        initial_action: Any = None,  # noqa: ANN401 (any action space)
    ) -> None:
        """As an `ObservationDelay`; `initial_action` is applied before the first one arrives, zeros by default."""
        refuse_hidden_resets(env, "ActionDelay")
        self._initial, recorded = _initial_action(env.action_space, initial_action)
        super().__init__(env, delay, env_dt, redraw, initial_action=recorded)
        self._begin_episode(None, self._initial)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._begin_episode(seed, self._initial)
        return self.env.reset(seed=seed, options=options)

    def _sent(self, action: Any) -> Any:  # noqa: ANN401
        return self._delayed(action)

    def _received(self, step: Step) -> Step:
        *seen, info = step
        return *seen, {**info, "action_delay_s": self._delay_s()}


class ObservationDelay(_Delay):
    """Gives every observation ``delay`` seconds after it was made; ``info["observation_delay_s"]`` is the newest's.

    The observation of a reset is given at once, and again until the next one arrives.
    """

    _kind = "observation delay"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._begin_episode(seed, observation)
        return observation, info

    def _received(self, step: Step) -> Step:
        observation, *ends, info = step
        return self._delayed(observation), *ends, {**info, "observation_delay_s": self._delay_s()}


def _initial_action(space: spaces.Space[Any], given: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """The action before the first one arrives, by default the one nearest to zero, and a given one as JSON."""
    if given is None:
        return create_zero_array(space), None
    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        with suppress(TypeError, ValueError, OverflowError):
            element = np.asarray(given, space.dtype)
            is_cast = np.issubdtype(element.dtype, np.integer) and not np.array_equal(element, given)  # 1 of 1.7
            action = element[()] if isinstance(space, spaces.Discrete) else element
            if not is_cast and space.contains(action):
                return action, element.tolist()
    raise InputError(f"initial_action is {given!r}: give one in the action space {space}.")


def delay_range_s(delay: DelayLike) -> list[Fraction]:
    ends = list(delay) if isinstance(delay, tuple | list) else [delay]
    # Zero is no `Duration`, since a cycle cannot last no time; a delay can.
    spans = [Fraction(0) if _ZERO.fullmatch(str(end).strip().lower()) else Duration(end).exact_s for end in ends]
    if len(spans) not in (1, 2) or spans[0] > spans[-1]:
        raise InputError(f"The delay is {delay!r}: give one span, such as '20ms', or a range such as ('10ms', '40ms').")
    return spans


class RealTime(_TwoPartWrapper):
    """Applies each action one step late, and appends the latest actions to the observation.

    The observation is a flat Box: the environment's observation, then the actions, oldest first and so the one under
    way last; discrete actions are one-hot. It lies in its space as long as the actions lie in theirs. Around a
    `CycleTime` a step is a cycle. For longer delays put an `ActionDelay` inside, and let ``history`` cover both.
    """

    dt: float
    """How long one step lasts, in seconds; there only where ``history`` or ``env_dt`` is given."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        history: DurationLike | None = None,
        env_dt: DurationLike | None = None,
        initial_action: Any = None,  # noqa: ANN401 (any action space)
    ) -> None:
        """Wrap an environment.

        Args:
            env: The environment: its observations must be a flat Box, its actions such that they can be flattened.
            history: How far back the observed actions go, a whole multiple of a step; one step by default.
            env_dt: The environment's time step, where it does not publish it; needed only for ``history``.
            initial_action: What is applied first, and fills the history at first; zeros by default.
        """
        refuse_hidden_resets(env, "RealTime")
        self._initial, recorded = _initial_action(env.action_space, initial_action)
        gym.utils.RecordConstructorArgs.__init__(
            self, history=duration_text(history), env_dt=duration_text(env_dt), initial_action=recorded
        )
        gym.Wrapper.__init__(self, env)
        self._history_steps = 1
        if history is not None or env_dt is not None:
            step = step_duration(env, env_dt)
            self.dt = float(step)
            if history is not None:
                self._history_steps = whole_steps("history", Duration(history).exact_s, step, least=1)
        self._under_way = self._initial
        self._actions: deque[NDArray[Any]] = deque(maxlen=self._history_steps)
        self.observation_space = _augmented(env, self._history_steps)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, as if the initial action had been given all along."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._under_way = self._initial
        self._actions.extend([self._flat(self._initial)] * self._history_steps)
        return self._augment(observation), info

    @property
    def observation_names(self) -> list[str]:
        actions = space_names(self.env.action_space, "action")
        return [*observation_names(self.env), *past_names(actions, self._history_steps)]

    def contract_timing(self, step: Duration) -> list[Timing]:
        history = self._history_steps
        return [timing("action delay", (1, 1), step), timing("action history", (history, history), step)]

    def _sent(self, action: Any) -> Any:  # noqa: ANN401
        """The previous action; this one is set on its way."""
        due, self._under_way = self._under_way, deepcopy(action)
        self._actions.append(self._flat(action))
        return due

    def _received(self, step: Step) -> Step:
        observation, *others = step
        return self._augment(observation), *others

    def _miss(self, steps: int) -> None:
        self._actions.extend([self._actions[-1]] * steps)

    def _flat(self, action: Any) -> NDArray[Any]:  # noqa: ANN401
        return np.asarray(spaces.flatten(self.env.action_space, action))

    def _augment(self, observation: Any) -> NDArray[Any]:  # noqa: ANN401
        return np.concatenate([observation, *self._actions]).astype(self.observation_space.dtype)


def _augmented(env: gym.Env[Any, Any], history_steps: int) -> spaces.Box:
    observation, action = env.observation_space, spaces.flatten_space(env.action_space)
    if not isinstance(observation, spaces.Box) or len(observation.shape) != 1:
        why = f"the observations of {env} are {observation}: put gymnasium.wrappers.FlattenObservation between"
        raise InputError(f"RealTime appends actions to a flat Box, and {why}.")
    if not isinstance(action, spaces.Box):
        raise InputError(f"RealTime appends actions that can be flattened (Box, Discrete), not {env.action_space}.")
    dtype: Any = observation.dtype if np.issubdtype(observation.dtype, np.floating) else np.float32
    low = np.concatenate([observation.low, np.tile(action.low, history_steps)])
    high = np.concatenate([observation.high, np.tile(action.high, history_steps)])
    return spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)
