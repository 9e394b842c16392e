"""An arm of one joint behind the real-time loop, with nothing of Universal Robots' in it."""

from typing import Any

import gymnasium
import numpy as np

from cycletime.robots.clock import MonotonicClock, Ticker, WallClock


class Servo:
    """Stands for the hardware. Instead of these, read from and write to your own bus, and do not wait for it."""

    def __init__(self, clock: MonotonicClock) -> None:
        self.clock, self.angle, self.speed, self.read_s = clock, 0.5, 0.0, clock.now_s()

    def read(self) -> None:
        now_s = self.clock.now_s()
        self.angle, self.read_s = self.angle + self.speed * (now_s - self.read_s), now_s

    def write(self, speed: float) -> None:
        self.read()
        outside = abs(self.angle) > 2 and self.angle * speed > 0
        self.speed = 0.0 if outside else min(max(speed, -1.0), 1.0)  # your limits, whatever an agent wants


class ToyArm(gymnasium.Env[Any, Any]):
    """Turns a joint to a target, with its speed as the action; an episode lasts 2 s."""

    dt, where = 0.02, "simulated robot"  # the environment's step; results of yours come from a "real robot"
    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, clock: MonotonicClock | None = None) -> None:
        self.clock = clock or WallClock()
        self.servo = Servo(self.clock)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        home = Ticker(self.dt, self.clock)
        while abs(self.servo.angle) > 0.02:
            self.servo.write(float(np.clip(-5 * self.servo.angle, -1, 1)))
            home.wait()
            self.servo.read()
        self.servo.write(0.0)
        self.target, self.env_steps, self.beats = self.np_random.uniform(-1, 1), 0, Ticker(self.dt, self.clock)
        return self.observed(), {"observed_s": self.servo.read_s}

    def send(self, action: Any) -> None:
        self.servo.write(float(action[0]))

    def receive(self, env_steps: int = 1) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.servo.read()
        self.env_steps += env_steps
        truncated = self.env_steps >= 100
        if truncated:
            self.servo.write(0.0)  # it stands while the agent learns
        away = abs(self.servo.angle - self.target)
        return self.observed(), -away * env_steps * self.dt, False, truncated, {"observed_s": self.servo.read_s}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.send(action)
        return self.receive(1 + self.beats.wait().missed)

    def close(self) -> None:
        self.servo.write(0.0)

    def observed(self) -> Any:
        return np.array([self.servo.angle - self.target, self.servo.speed], np.float32)


gymnasium.register("ToyArm-v0", ToyArm)  # type: ignore[arg-type]
