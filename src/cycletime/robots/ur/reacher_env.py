"""UR-Reacher-2 as a Gymnasium environment on a link to an arm, a real one or a simulated controller's.

A step ends with the newest package at the next point of the grid. Without a driver process time is the controller's,
and the command is sent again with every package; behind a driver, which does that, it is the machine's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from cycletime import ur5
from cycletime.duration import Duration, DurationLike, cycle_steps
from cycletime.errors import InputError, RunError, quote
from cycletime.robots.clock import MonotonicClock, RobotClock, Ticker
from cycletime.robots.real_time_env import Provenance
from cycletime.robots.ur.driver.link import DriverLink
from cycletime.robots.ur.freshness import STANDSTILL_CAUSES, Freshness, check_pace
from cycletime.robots.ur.types import (
    CONNECTION_TIMEOUT_S,
    ArmState,
    Command,
    MoveInterruptedError,
    MoveJ,
    RobotLink,
    RobotMode,
    SpeedJ,
    StateTimeoutError,
    StopJ,
)
from cycletime.tasks.cycle_time import CycleTime
from cycletime.tasks.env_errors import Action, read_action
from cycletime.tasks.time_step import whole_steps
from cycletime.tasks.timing_contract import Timing, past_names, timing
from cycletime.ur5 import MOVED_JOINTS, Q_REF, TARGET_AXES, Excursion, draw_target, update_excursion

Observation: TypeAlias = NDArray[np.float32]

AT_START = 0.002
"""rad within which the arm is at its first pose."""
_RESET_TIMEOUT_S = 8.0
"""The controller's time that a stop, or the move to the first pose, may take."""
_UNLOCK_TIMEOUT_S = 30.0
"""The controller's time in which a stop may be ended between episodes."""
UNSEEN = "UNSEEN"
"""The safety mode of an arm that shows nothing that is believed."""
LINE_S = 0.008
"""How long a speed command works by itself; it is sent again with every package."""
STOP = StopJ(2.0)
MOVE_TO_START = MoveJ(Q_REF, acceleration=1.4, speed=1.05, time_s=2.0)


def make_ur_reacher(
    link: Callable[[], RobotLink] | None = None,
    dt: DurationLike | None = None,
    env_dt: DurationLike = "10ms",
    **options: Any,  # noqa: ANN401 - those of `URReacher2Env`
) -> CycleTime:
    """UR-Reacher-2 at a cycle time, a whole multiple of the environment's step, which it is where none is given.

    Gymnasium copies what environments are made with, so `link` is a function that makes the link to the arm.
    """
    if not callable(link):
        remedy = "give a function that makes a link to its controller, or use cycletime robot run"
        raise InputError(f"link is {quote(link)}: UR-Reacher-2 moves an arm, so {remedy}.")
    cycle_steps(dt or env_dt, env_dt)  # before anything is connected
    return CycleTime(URReacher2Env(link(), env_dt, **options), dt or env_dt)


class URReacher2Env(gymnasium.Env[Observation, Action]):
    """Bring a UR5's flange to a target, with the speeds of its shoulder and its elbow.

    An episode ends when 4 s have passed, with a stop (``info["safety_mode"]``), or when the controller is not heard for
    so long that a driver stops the arm; another one begins when a protective stop was unlocked, or a gate closed. An
    arm that stands still while it should move is a `RunError`.
    ``info`` also has the newest package's time, by the controller's clock and by the environment's (``observed_s``),
    the packages of this step and those that were lost, and how many points of the grid it missed.
    """

    metadata: dict[str, Any] = {"render_modes": [], "raw_actions": True}  # noqa: RUF012 - as Gymnasium

    def __init__(
        self,
        link: RobotLink,
        env_dt: DurationLike = "10ms",
        *,
        reset_time: DurationLike | None = None,
        action_history: DurationLike | None = None,
        where: Provenance = "simulated robot",
    ) -> None:
        """Connect.

        Args:
            link: To the arm, not connected yet; it is closed with the environment.
            env_dt: The environment's time step, of which 4 s are a whole multiple.
            reset_time: The least that a reset takes; the authors' took 3.5 s, here it ends when the arm stands.
            action_history: How far back the observed actions go, one for each step, oldest first. By default one step,
                as the authors' agents see; a command shows after 24 ms, so that at short cycles more are on their way.
            where: Where results come from: nothing else tells a real controller from a simulated one.
        """
        self._env_dt = Duration(env_dt)
        self._limit_steps = cycle_steps(ur5.TIME_LIMIT, self._env_dt)
        self._reset_s = 0.0 if reset_time is None else float(Duration(reset_time))
        self.where: Provenance = where
        self._history_steps = 1
        if action_history is not None:
            history_s = Duration(action_history).exact_s
            self._history_steps = whole_steps("action history", history_s, self._env_dt, least=1)
        self._actions: deque[tuple[float, ...]] = deque(maxlen=self._history_steps)
        limits = np.array([*ur5.OBSERVATION_LIMITS.values(), *[1.0] * 2 * (self._history_steps - 1)], np.float32)
        self.observation_space = gymnasium.spaces.Box(-limits, limits, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._env_steps: int | None = None
        self._command: Command | None = None
        self._link = link
        link.connect()
        self._received_s = 0.0
        self._is_paced = False
        self._driver = link if isinstance(link, DriverLink) else None
        self._freshness = Freshness()  # where there is no driver, which has its own
        self.holds_s = math.inf
        """For how long the arm goes on with an action that is not sent again: a driver stops it then."""
        self.clock: MonotonicClock = RobotClock(lambda: self._received_s, self._pass_package, link.period_s)
        """The machine's, behind a driver; else the controller's, which stands still while nobody receives."""
        if self._driver:
            self.holds_s, self.clock = self._driver.holds_s, self._driver.clock

    @property
    def dt(self) -> float:
        return float(self._env_dt)

    @property
    def observation_names(self) -> list[str]:
        measured = list(ur5.OBSERVATION_LIMITS)[:-2]
        return [*measured, *past_names(["action_shoulder", "action_elbow"], self._history_steps)]

    def contract_timing(self, step: Duration) -> list[Timing]:
        return [timing("action history", (self._history_steps, self._history_steps), step)]

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        if options:
            raise InputError(f"{next(iter(options))!r} is no reset option: there are none.")
        super().reset(seed=seed)
        seen = tuple(self.np_random.uniform(-1, 1, 2).tolist())  # the authors' agents see a random one
        self._actions.extend([seen] * self._history_steps)
        self._command = None
        self._move_to_start()
        self._target = draw_target(self.np_random)
        self._excursion = Excursion()
        self._state = self._receive()
        self._ticker, self._env_steps, self._new_packages = Ticker(self._env_dt, self.clock), 0, 1
        self._before = self._state
        return self._observe(self._away()), self._info(missed_steps=0)

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self.send(action)
        return self.receive(1 + self._ticker.wait().missed)

    def send(self, action: Action) -> None:
        if self._env_steps is None:
            raise ResetNeeded("Call reset() before step().")
        numbers = read_action(action, 2)
        q, qd, target_q = (joints[MOVED_JOINTS] for joints in (self._state.q, self._state.qd, self._state.target_q))
        self._excursion = update_excursion(self._excursion, q, qd, target_q)
        self._command = speed_command(*ur5.guard_action(numbers, q, qd, target_q, self._excursion))
        self._send(self._command)
        self._actions.append(tuple(min(max(number, -1.0), 1.0) for number in numbers))

    def receive(self, env_steps: int = 1) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """What the newest package shows, after so many environment steps, of which the reward is."""
        if self._env_steps is None:
            raise ResetNeeded("Call reset() before step().")
        driver, unseen = self._driver, False
        if driver is not None:  # take the newest package that has come; without a driver it was waited for already
            before = driver.received
            with suppress(StateTimeoutError):  # a controller that is silent for long ends the driver
                self._state = self._receive(0.0)
            self._new_packages += driver.received.packages - before.packages
            # So old a state that the driver has stopped the arm: the episode ended with that state.
            unseen = self.clock.now_s() - driver.received.received_s > driver.sight_s
        paid_steps = min(env_steps, self._limit_steps - self._env_steps)  # for 4 s, also where the last step was late
        self._env_steps += env_steps
        away = self._away()
        seen = self._observe(away)
        paid = 0.0 if unseen else paid_steps * float(ur5.reward(away, self._env_dt))
        truncated = self._is_stopped() or unseen or self._env_steps >= self._limit_steps
        if truncated:
            self._let_stand()
        info = self._info(env_steps - 1)
        return seen, paid, False, truncated, info | ({"safety_mode": UNSEEN} if unseen else {})

    def close(self) -> None:
        """End the connection; a link that drives the arm stops it then."""
        self._env_steps = None
        self._link.close()

    def _pass_package(self) -> None:
        """Wait for the next package, and send the command again."""
        self._state = self._receive()
        self._new_packages += 1
        if self._command is not None and not self._is_stopped():
            self._send(self._command)

    def _send(self, command: Command) -> None:
        self._link.send(command)
        self._freshness.sent(command)

    def _let_stand(self) -> None:
        self._command = self._env_steps = None
        self._send(STOP)

    def _move_to_start(self) -> None:
        self._state = self._receive()
        begin_s, driver = self._state.time_s, self._driver
        received_s = driver.received.received_s if driver else 0.0
        while not self._moved_to_start():
            self._wait("unlocked", lambda _: not self._is_stopped(), _UNLOCK_TIMEOUT_S)
        if driver and not self._is_paced:  # without one there is one clock
            check_pace(self._state.time_s - begin_s, driver.received.received_s - received_s, driver.pace)
            self._is_paced = True
        self._wait("ready", lambda state: state.time_s >= begin_s + self._reset_s, self._reset_s + _RESET_TIMEOUT_S)

    def _moved_to_start(self) -> bool:
        """Try; whether neither a stop nor a silence of the controller came between."""
        with suppress(MoveInterruptedError):
            self._send(STOP)
            self._wait("at a stand", lambda state: state.stands or self._is_stopped(), _RESET_TIMEOUT_S)
            if self._is_stopped():
                return False
            self._send(MOVE_TO_START)
            moved_s = self._state.time_s + MOVE_TO_START.time_s
            self._wait(
                "in its first pose",
                lambda state: (state.time_s > moved_s and _is_at_start(state)) or self._is_stopped(),
                _RESET_TIMEOUT_S,
            )
            return not self._is_stopped()
        return False

    def _is_stopped(self) -> bool:
        return not self._state.safety_mode.allows_motion

    def _wait(self, what: str, reached: Callable[[ArmState], bool], most_s: float) -> None:
        begin_s = self._state.time_s
        while not reached(self._state):
            if self._state.time_s - begin_s > most_s:
                mode = self._state.safety_mode
                look_at = STANDSTILL_CAUSES if mode.allows_motion else "at it"
                raise RunError(
                    f"The arm is not {what} after {most_s:g} s, with the safety mode {mode.name}: look {look_at}."
                )
            self._state = self._receive()

    def _receive(self, timeout_s: float = CONNECTION_TIMEOUT_S) -> ArmState:
        state = self._link.receive(timeout_s)
        if self._driver is None:
            self._believe(state)
        self._received_s = state.time_s
        safety = state.safety_mode
        if state.robot_mode is not RobotMode.RUNNING or not (safety.allows_motion or safety.may_pass):
            self._env_steps = None
            modes = f"robot mode {state.robot_mode.name} and safety mode {safety.name}"
            raise RunError(f"The arm is in {modes}: look at it, and bring it back to RUNNING and NORMAL by hand.")
        return state

    def _believe(self, state: ArmState) -> None:
        """Without a driver, time is the controller's; a state that is no news ends the run, and the arm stands."""
        try:
            if why := self._freshness.check(state.time_s, state):
                raise RunError(why)
        except RunError:
            self._let_stand()
            raise

    def _away(self) -> tuple[float, ...]:
        return tuple((ur5.tip(self._state.q)[TARGET_AXES] - self._target).tolist())

    def _observe(self, away: tuple[float, ...]) -> Observation:
        q, qd = self._state.q[MOVED_JOINTS], self._state.qd[MOVED_JOINTS]
        history = [number for action in self._actions for number in action]
        return np.asarray(ur5.observation(q, qd, away, history), np.float32)

    def _info(self, missed_steps: int) -> dict[str, Any]:
        passed = round((self._state.time_s - self._before.time_s) / self._link.period_s)
        came, self._new_packages, self._before = self._new_packages, 0, self._state
        return {
            "robot_time_s": self._state.time_s,
            "observed_s": self._driver.received.received_s if self._driver else self._state.time_s,
            "packages": came,
            "missed_packages": max(0, passed - came),
            "missed_steps": missed_steps,
            "safety_mode": self._state.safety_mode.name,
        }


def _is_at_start(state: ArmState) -> bool:
    return state.stands and max(abs(angle - goal) for angle, goal in zip(state.q, Q_REF, strict=True)) < AT_START


def speed_command(speeds: Sequence[Any], acceleration: float = ur5.ACCELERATION) -> SpeedJ:
    return SpeedJ((0.0, float(speeds[0]), float(speeds[1]), 0.0, 0.0, 0.0), float(acceleration), LINE_S)
