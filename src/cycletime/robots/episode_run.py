"""One episode on a robot: cycles of act, send, learn and wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.robots.clock import MonotonicClock, Ticker
from cycletime.tasks.delays import SendReceiveEnv
from cycletime.training.env_adapter import StepResult
from cycletime.training.journal import Cycle, Cycles, EpisodeRecord
from cycletime.training.process import HEARTBEAT
from cycletime.training.worlds import ActionBounds


@dataclass(frozen=True)
class AgentStep:
    observation: NDArray[np.float32]
    """[1, |S|]."""
    actions: NDArray[np.float32]
    """[1, |A|], the agent's own."""
    result: StepResult

    @classmethod
    def nothing(cls, observation_size: int, action_size: int) -> AgentStep:
        none = np.zeros((1, observation_size), np.float32)
        return cls(none, np.zeros((1, action_size), np.float32), StepResult.of_one(none, 0.0, False, False, 1))

    @property
    def ended(self) -> bool:
        return bool(self.result.terminated[0] or self.result.truncated[0])

    def row(self) -> NDArray[np.float32]:
        """Its numbers in the order of `agents.agent.Transition`."""
        result = self.result
        flags = [*result.reward, *result.successor[0], *result.terminated, *result.truncated]
        return np.array([*self.observation[0], *self.actions[0], *flags], np.float32)


def steps_from_record(episode: EpisodeRecord, observation_size: int, action_size: int) -> list[AgentStep]:
    """The cycles of an episode that was kept, the same to the bit."""
    s, a = observation_size, action_size

    def step(index: int) -> AgentStep:
        row = episode.rows[index][None]
        successor = row[:, s + a + 1 : 2 * s + a + 1]
        terminated, truncated = (row[0, 2 * s + a + 1 :] != 0).tolist()
        length_steps = int(episode.length_steps[index])
        result = StepResult.of_one(successor, episode.rewards[index], terminated, truncated, length_steps)
        return AgentStep(row[:, :s], row[:, s : s + a], result)

    return [step(index) for index in range(episode.agent_steps)]


_RUNNING_SAFETY_MODES = ("NORMAL", "REDUCED")


Act: TypeAlias = Callable[[NDArray[np.float32]], tuple[NDArray[np.float32], int]]
"""From an observation to actions, [1, |A|], and how many updates its policy is behind."""


class EpisodeRun:
    def __init__(
        self,
        env: SendReceiveEnv,
        act: Act,
        learn: Callable[[AgentStep], None],
        *,
        clock: MonotonicClock,
        env_dt: Duration,
        cycle_steps: int,
        bounds: ActionBounds,
        observation_size: int,
    ) -> None:
        self._env, self._act, self._learn = env, act, learn
        self._clock, self._env_dt, self._cycle_steps = clock, env_dt, cycle_steps
        self._bounds, self._size = bounds, observation_size
        self._steps: list[AgentStep] = []
        self._cycles: list[Cycle] = []

    def play(self, seed: int) -> AgentStep:
        """Reset, and run to the end; returns the last cycle, which is not learned from yet."""
        observation, self._info = self._env.reset(seed=seed)
        self._observation = self._numbers(observation)
        self._ticker = Ticker(self._env_dt, self._clock)
        self._scheduled_s, self._grid_point = self._clock.now_s(), 0
        while not (self._steps and self._steps[-1].ended):
            self._cycle()
            HEARTBEAT.tick()
        return self._steps[-1]

    def record(self, number: int, env_steps_before: int) -> EpisodeRecord:
        results = [each.result for each in self._steps]
        length_steps = np.array([result.env_steps[0] for result in results], np.int64)
        mode = self._info.get("safety_mode", _RUNNING_SAFETY_MODES[0])
        by_itself = "terminated" if results[-1].terminated[0] else "truncated"
        return EpisodeRecord(
            number=number,
            rows=np.stack([each.row() for each in self._steps]),
            length_steps=length_steps,
            rewards=np.array([result.reward[0] for result in results], np.float64),
            cycles=Cycles.of(self._cycles),
            ended_by=by_itself if mode in _RUNNING_SAFETY_MODES else str(mode),
            run_env_steps=env_steps_before + int(length_steps.sum()),
        )

    def _cycle(self) -> None:
        """Act, send, and only then learn from the cycle before and wait."""
        now_s, info = self._clock.now_s, self._info
        grid_point, scheduled_s = self._grid_point, self._scheduled_s
        woke_s = now_s()
        actions, stale = self._act(self._observation)
        acted_s = now_s()
        action = self._bounds.reach(actions[0])
        self._env.send(action)
        sent_s = now_s()
        if self._steps:
            self._learn(self._steps[-1])
        learned_s = now_s()
        result, counts = self._hold(action)
        self._steps.append(AgentStep(self._observation, actions, result))
        self._observation = result.successor
        cycle = Cycle(
            scheduled_s=scheduled_s,
            wake_error_s=woke_s - scheduled_s,
            observation_age_s=woke_s - info.get("observed_s", nan),
            act_s=acted_s - woke_s,
            send_s=sent_s - acted_s,
            learn_s=learned_s - sent_s,
            stale_updates=stale,
            overrun=self._grid_point - grid_point > self._cycle_steps,
            **counts,
        )
        self._cycles.append(cycle)

    def _hold(self, action: NDArray[Any]) -> tuple[StepResult, dict[str, int]]:
        """Wait for the environment's points until the cycle ends; with each the action is sent again."""
        total_reward, total_steps = 0.0, 0
        counts = {"missed_steps": 0, "packages": 0, "missed_packages": 0}
        while True:
            tick = self._ticker.wait()
            env_steps = 1 + tick.missed
            observation, reward, terminated, truncated, self._info = self._env.receive(env_steps)
            total_reward, total_steps = total_reward + float(reward), total_steps + env_steps
            told = {**self._info, "missed_steps": tick.missed}
            known = {name: told.get(name) for name, count in counts.items() if count >= 0}
            counts |= {name: -1 if now is None else counts[name] + now for name, now in known.items()}
            if terminated or truncated or tick.number % self._cycle_steps == 0:
                break
            self._env.send(action)
        self._scheduled_s, self._grid_point = tick.scheduled_s, tick.number
        return StepResult.of_one(self._numbers(observation), total_reward, terminated, truncated, total_steps), counts

    def _numbers(self, observation: Any) -> NDArray[np.float32]:  # noqa: ANN401 - whatever an environment gives
        with np.errstate(over="ignore"):  # an infinity is refused when it is acted on
            numbers = np.array([observation], np.float32)
        if numbers.shape != (1, self._size):
            raise InputError(f"The observation has the shape {numbers.shape[1:]}: its space says ({self._size},).")
        return numbers
