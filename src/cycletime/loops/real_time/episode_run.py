"""One episode of a robot while it goes on: cycles of act, send, learn, wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.loops.action_bounds import ActionBounds
from cycletime.loops.pulse import PULSE
from cycletime.loops.real_time.agent_step import AgentStep
from cycletime.loops.real_time.cycles import Cycle, Cycles
from cycletime.loops.real_time.episode import EpisodeRecord
from cycletime.loops.real_time.observer import Observer
from cycletime.loops.stepped_env import StepResult
from cycletime.robots.clock import Beats, MonotonicClock
from cycletime.robots.real_time_env import TwoParts

_NO_STOP = ("NORMAL", "REDUCED")
"""Safety modes in which an episode ends by itself only."""


class Agency(Protocol):
    """The agent's side of an episode."""

    def act(self, observation: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
        """What it does, [1, |A|], and how many learnings its policy is behind."""

    def take(self, step: AgentStep) -> None:
        """Learn from a cycle, or see to it."""


@dataclass(frozen=True)
class _Work:
    """What a cycle did until it had nothing left to do."""

    woke_s: float
    age_s: float
    act_s: float
    send_s: float
    learn_s: float
    stale: int


@dataclass
class _Held:
    """What comes of an action while it is held."""

    reward: float = 0.0
    env_steps: int = 0
    missed_steps: int = 0
    packages: int = 0
    missed_packages: int = 0

    def add(self, reward: float, env_steps: int, info: Mapping[str, Any]) -> None:
        self.reward += reward
        self.env_steps += env_steps
        self.missed_steps += env_steps - 1
        self.packages = _sum_told(self.packages, info.get("packages"))
        self.missed_packages = _sum_told(self.missed_packages, info.get("missed_packages"))


class EpisodeRun:
    """From a reset to the episode's end."""

    def __init__(
        self,
        parts: TwoParts,
        agency: Agency,
        *,
        clock: MonotonicClock,
        env_dt: Duration,
        cycle_steps: int,
        bounds: ActionBounds,
        observation_size: int,
        observer: Observer,
    ) -> None:
        """Bring together the robot, its clock, and who acts and looks on."""
        self._parts, self._agency, self._clock, self._observer = parts, agency, clock, observer
        self._env_dt, self._cycle_steps, self._bounds = env_dt, cycle_steps, bounds
        self._size = observation_size
        self._steps: list[AgentStep] = []
        self._cycles: list[Cycle] = []

    def play(self, seed: int) -> AgentStep:
        """Reset, and go on to the end; the last cycle, which is not learned from yet."""
        observation, self._info = self._parts.reset(seed=seed)
        self._observation = self._numbers(observation)
        self._beats = Beats(self._env_dt, self._clock)
        self._scheduled_s, self._point = self._clock.now_s(), 0
        while not (self._steps and self._steps[-1].ended):
            self._cycle()
            PULSE.tick()
        self._tell()
        return self._steps[-1]

    def record(self, number: int, env_steps_before: int) -> EpisodeRecord:
        """What is kept of it."""
        results = [each.result for each in self._steps]
        length_steps = np.array([result.env_steps[0] for result in results], np.int64)
        mode = self._info.get("safety_mode", _NO_STOP[0])
        by_itself = "terminated" if results[-1].terminated[0] else "truncated"
        return EpisodeRecord(
            number=number,
            rows=np.stack([each.row() for each in self._steps]),
            length_steps=length_steps,
            rewards=np.array([result.reward[0] for result in results], np.float64),
            cycles=Cycles.of(self._cycles),
            ended_by=by_itself if mode in _NO_STOP else str(mode),
            run_env_steps=env_steps_before + int(length_steps.sum()),
        )

    def _cycle(self) -> None:
        scheduled_s, point = self._scheduled_s, self._point
        actions, action, work = self._work()
        held, result = self._hold(action)
        self._steps.append(AgentStep(self._observation, actions, result))
        self._observation = result.successor
        self._cycles.append(
            Cycle(
                scheduled_s=scheduled_s,
                wake_error_s=work.woke_s - scheduled_s,
                observation_age_s=work.age_s,
                act_s=work.act_s,
                send_s=work.send_s,
                learn_s=work.learn_s,
                stale_learnings=work.stale,
                missed_steps=held.missed_steps,
                packages=held.packages,
                missed_packages=held.missed_packages,
                overrun=self._point - point > self._cycle_steps,
            )
        )

    def _work(self) -> tuple[NDArray[np.float32], NDArray[Any], _Work]:
        """Act, send, and only then learn from the cycle before."""
        now_s = self._clock.now_s
        woke_s = now_s()
        actions, stale = self._agency.act(self._observation)
        acted_s = now_s()
        action = self._bounds.reach(actions[0])
        self._parts.send(action)
        sent_s = now_s()
        if self._steps:
            self._agency.take(self._steps[-1])
        learned_s = now_s()
        self._tell()
        age_s = woke_s - self._info.get("observed_s", nan)
        return actions, action, _Work(woke_s, age_s, acted_s - woke_s, sent_s - acted_s, learned_s - sent_s, stale)

    def _hold(self, action: NDArray[Any]) -> tuple[_Held, StepResult]:
        """Wait for the environment's points until the cycle ends; with each the action is sent again."""
        held = _Held()
        while True:
            beat = self._beats.wait()
            env_steps = 1 + beat.missed
            observation, reward, terminated, truncated, self._info = self._parts.receive(env_steps)
            held.add(float(reward), env_steps, self._info)
            if terminated or truncated or beat.number % self._cycle_steps == 0:
                break
            self._parts.send(action)
        self._scheduled_s, self._point = beat.scheduled_s, beat.number
        successor = self._numbers(observation)
        return held, StepResult(
            successor,
            np.array([held.reward], np.float64),
            np.array([terminated], np.bool_),
            np.array([truncated], np.bool_),
            np.array([held.env_steps], np.int64),
            np.ones(1, np.bool_),
            successor,
        )

    def _tell(self) -> None:
        """Tell of the newest cycle that is over."""
        if self._cycles:
            self._observer.cycled(self._cycles[-1], float(self._steps[-1].result.reward[0]), self._info)

    def _numbers(self, observation: Any) -> NDArray[np.float32]:  # noqa: ANN401 - whatever an environment gives
        with np.errstate(over="ignore"):  # an infinity is refused when it is acted on
            numbers = np.array([observation], np.float32)
        if numbers.shape != (1, self._size):
            raise InputError(f"The observation has the shape {numbers.shape[1:]}: its space says ({self._size},).")
        return numbers


def _sum_told(total: int, told: int | None) -> int:
    """The sum of what an environment tells; -1 where it does not."""
    return -1 if told is None or total < 0 else total + told
