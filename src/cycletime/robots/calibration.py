"""Before a robot moves: what `act` and `learn` take on this machine, on the run's own shapes, and whether that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

from cycletime.agents import Agent
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.training.latency import (
    DEFAULT_MARGIN,
    CallTimes,
    LearnWay,
    act_call,
    learn_call,
    measure,
    shortest_cycle_s,
)
from cycletime.training.spec import LearnerName

_USABLE = 1 - DEFAULT_MARGIN
MEASURE_S = 2.0


@dataclass(frozen=True)
class Calibration:
    dt: Duration
    env_dt: Duration
    period: int
    way: LearnWay
    act: CallTimes
    learn: CallTimes
    holds_s: float = inf
    """How long the robot goes on with an action: no other is sent while a cycle does its work."""

    @property
    def in_cycle_s(self) -> float:
        """The 99th percentile of what one cycle has to do: act, and learn where that is not done elsewhere."""
        return self.act.p99_s + (self.learn.p99_s if self.way == "inline" else 0.0)

    @property
    def share(self) -> float:
        return self.in_cycle_s / float(self.dt)

    def __str__(self) -> str:
        took_ms = 1000 * self.in_cycle_s
        if not took_ms:
            return "the robot waits for the agent, whose work takes none of its time"
        return f"99 of 100 cycles need {took_ms:.2f} ms for their work, {self.share:.0%} of {self.dt}"

    @property
    def fits(self) -> bool:
        """Whether there is time, a background learner keeps up, and the robot does not stop meanwhile."""
        return self.dt >= self.shortest_dt and self._is_held

    @property
    def shortest_dt(self) -> Duration:
        shortest_s = shortest_cycle_s(self.way, self.period, self.act, self.learn)
        return self.env_dt * max(1, ceil(shortest_s / self.env_dt.exact_s))

    @property
    def _is_held(self) -> bool:
        in_cycle: LearnWay = "inline" if self.way == "inline" else "between_episodes"
        return shortest_cycle_s(in_cycle, self.period, self.act, self.learn) <= self.holds_s

    def check(self) -> None:
        if self.fits:
            return
        remedy = {
            "inline": ", or learn at another time: learner='background' with SAC, learn_when='episode_end' with PPO",
            "background": ", or learn less often",
            "between_episodes": "",
        }[self.way]
        taken = f"here act takes {_ms(self.act.p99_s)} and learn {_ms(self.learn.p99_s)}, {self.way.replace('_', ' ')}"
        if not self._is_held:
            why = f"{self.holds_s:g} s, of which {_USABLE:.0%} may be used: {taken}. Take a smaller network{remedy}"
            raise InputError(f"The robot stops when it is told nothing for {why}.")
        short = f"{taken}, and {_USABLE:.0%} of a cycle may be used. Give at least {self.shortest_dt}{remedy}"
        raise InputError(f"The cycle time is {self.dt}, which is too short: {short}.")


def calibrate(
    agent: Agent,
    sizes: tuple[int, int],
    *,
    dt: Duration,
    env_dt: Duration,
    learner: LearnerName,
    capacity: int,
    holds_s: float = inf,
    clock: Callable[[], float],
) -> Calibration:
    """Time `act` and `learn` by the clock of the robot's world; where that stands still, they take no time."""
    between = agent.learn_when == "episode_end"
    return Calibration(
        dt=dt,
        env_dt=env_dt,
        period=agent.period,
        way="between_episodes" if between else learner,
        act=_measure_by_clock(act_call(agent, *sizes), MEASURE_S, clock),
        # What is not in the cycle need not be known so well.
        learn=_measure_by_clock(learn_call(agent, *sizes, capacity), 0.0 if between else MEASURE_S, clock),
        holds_s=holds_s,
    )


def _measure_by_clock(call: Callable[[], object], budget_s: float, clock: Callable[[], float]) -> CallTimes:
    before_s = clock()
    call()
    if (first_s := clock() - before_s) == 0.0:
        return CallTimes(0.0, 0.0, 0.0, 0.0, 0.0, count=0)
    measured = measure(call, budget_s, clock, fewest=1)
    return CallTimes(first_s, measured.median_s, measured.mean_s, measured.p99_s, measured.worst_s, measured.count)


def _ms(time_s: float) -> str:
    return f"{1e3 * time_s:.3g} ms"
