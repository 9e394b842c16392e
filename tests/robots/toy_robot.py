"""A robot in virtual time: a carriage on a rail, and how long whatever takes is set by who holds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from cycletime.errors import RunError
from cycletime.robots.clock import Ticker
from tests.robots.ur.virtual import VirtualClock

LIMIT_STEPS = 8


class ToyRobot(gymnasium.Env[Any, Any]):
    """Brings itself to 0, with its speed as the action; an episode lasts 8 steps of 10 ms."""

    where = "simulated robot"
    dt = 0.01

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock(0.0)
        self.observation_space = gymnasium.spaces.Box(-9.0, 9.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.log: list[tuple[str, float]] = []
        self.resets = 0
        self.stops_at: tuple[int, int] | None = None
        """The episode and the step in which a protective stop comes."""
        self.fails_at: tuple[int, int] | None = None
        self.closed = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
        super().reset(seed=seed)
        self.clock.time_s += 0.5
        self.resets += 1
        self.place, self.speed, self.seen_s = float(self.np_random.uniform(-1, 1)), 0.0, self.clock.now_s()
        self.steps, self.beats = 0, Ticker("10ms", self.clock)
        self.log.append(("reset", self.seen_s))
        return self._observed(), {"observed_s": self.seen_s, "packages": 1, "missed_packages": 0}

    def send(self, action: Any) -> None:  # noqa: ANN401
        self._move()
        self.speed = float(action[0])
        self.log.append(("send", self.clock.now_s()))

    def receive(self, env_steps: int = 1) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._move()
        self.steps += env_steps
        here = (self.resets - 1, self.steps)
        if self.fails_at == here:
            raise RunError("The robot is on fire.")
        stopped = self.stops_at == here
        truncated = stopped or self.steps >= LIMIT_STEPS
        self.speed = 0.0 if truncated else self.speed
        mode = "PROTECTIVE_STOP" if stopped else "NORMAL"
        info = {"observed_s": self.seen_s - 0.002, "packages": env_steps, "missed_packages": 0, "safety_mode": mode}
        return self._observed(), -abs(self.place) * env_steps * self.dt, False, truncated, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        self.send(action)
        return self.receive(1 + self.beats.wait().missed)

    def close(self) -> None:
        self.speed, self.closed = 0.0, True

    def _move(self) -> None:
        now_s = self.clock.now_s()
        self.place += self.speed * (now_s - self.seen_s)
        self.seen_s = now_s

    def _observed(self) -> Any:  # noqa: ANN401
        return np.array([self.place, self.speed], np.float32)


def busy(clock: VirtualClock, work: Callable[..., Any], time_s: Callable[[], float]) -> Callable[..., Any]:
    """A function that takes time on a clock."""

    def slow(*args: Any, **options: Any) -> Any:  # noqa: ANN401
        result = work(*args, **options)
        clock.time_s += time_s()
        return result

    return slow
