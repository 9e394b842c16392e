"""Advice in virtual time: runs that are finished at once, whose scores are known and which take seconds of a clock."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cycletime.agents import Agent
from cycletime.duration import Duration
from cycletime.studies import advice_search as advising
from cycletime.studies.advice import Advice, Question
from cycletime.studies.advice_search import Budget, MachineMeasurements, advise
from cycletime.studies.cycle_time_checks import RealTimeFit, WorldFacts
from cycletime.studies.hardware_estimates import Costs, cost_key
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.engine import Cost
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.studies.small import finished, specs_of
from tests.studies.toy_tuning import MACHINE, Killed, Toy

IN_TIME = RealTimeFit(act_s=1e-4, learn_s=0.1, act_share=0.01, learn_share=0.02, way="background")
LATE = RealTimeFit(act_s=1e-2, learn_s=0.1, act_share=2.5, learn_share=0.02, way=None)
ENV_STEPS = 4800
RUN_S = 10.0
Score = Callable[[RunSpec], float | None]


def ms(number: int) -> Duration:
    return Duration(f"{number}ms")


def asked(**options: Any) -> Question:  # noqa: ANN401
    given = {"algorithm": "ppo", "dts": (ms(8), ms(32)), "values": {"batch": 100}, **options}
    return Question(world=ClosedFormWorld("reacher"), present=ms(16), **given)


def scores(means: Mapping[int, float | None], spread: float = 1.0) -> Score:
    """By cycle time in ms, the mean of scores with a spread; None for runs that go astray."""

    def score(spec: RunSpec) -> float | None:
        mean = means[round(1000 * float(spec.dt))]
        return None if mean is None else mean + spread * Random(f"{spec.dt} {spec.seed}").gauss(0, 1)

    return score


class Together(Toy):
    """Writes all runs of a study into one file, as workers on one program would."""

    def poll(self, wait_s: float) -> Mapping[str, str]:
        folder = StudyFolder.open(next(iter(self.waiting.values())))
        todo = [spec for spec in specs_of(folder) if spec.name not in folder.store]
        some = todo if self.kill_after is None else todo[: max(0, self.kill_after - len(self.done))]
        values = [self.score(spec) for spec in some]
        folder.store.add(
            [
                finished(spec, inf if value is None else value, machine=MACHINE)
                for spec, value in zip(some, values, strict=True)
            ]
        )
        self.done += some
        if len(some) < len(todo):
            raise Killed
        over, self.waiting = self.waiting, {}
        return dict.fromkeys(over, "")


@dataclass
class VirtualTime:
    """A clock that runs move, and a machine that has been measured."""

    now_s: float = 1000.0
    late: tuple[Duration, ...] = ()
    run_s: float = RUN_S
    """What a run takes."""
    expected_s: float = RUN_S
    """What the try says of it."""
    measured: list[str] = field(default_factory=list)

    def instruments(self) -> MachineMeasurements:
        return MachineMeasurements(clock=lambda: self.now_s, in_time=self._in_time, costs=self._costs)

    def executor(self, score: Score, kill_after: int | None = None) -> Toy:
        def timed(spec: RunSpec) -> float | None:
            self.now_s += self.run_s * spec.env_steps / ENV_STEPS
            return score(spec)

        return Together(timed, workers=1, kill_after=kill_after)

    def _in_time(
        self, agents: Mapping[Duration, Agent], facts: WorldFacts, tell: Callable[[str], object], num_envs: int
    ) -> Mapping[Duration, RealTimeFit]:
        self.measured.append("in time")
        return {dt: LATE if dt in self.late else IN_TIME for dt in agents}

    def _costs(self, plan: Plan) -> tuple[Costs, float]:
        """The same for a run at every cycle time would be no cost of an agent step: that of 16 ms is taken."""
        self.measured.append("costs")
        agent_steps = ENV_STEPS / 8
        return {cost_key(plan.cells[0]): Cost(self.expected_s / agent_steps, 0.0)}, 0.0


def advised(
    question: Question,
    path: Path,
    score: Score,
    *,
    time: VirtualTime | None = None,
    minutes: float | None = 60.0,
    hours: float | None = None,
    kill_after: int | None = None,
    **options: Any,  # noqa: ANN401
) -> tuple[Advice, Toy]:
    """The answer, and who computed the runs."""
    time = time or VirtualTime()
    executor = time.executor(score, kill_after)
    budget = Budget(None if minutes is None else 60 * minutes, hours)
    given = {"env_steps": ENV_STEPS, "instruments": time.instruments(), **options}
    return advise(question, path, executor, budget, **given), executor


@contextmanager
def comparable(answer: bool | None = True) -> Iterator[None]:
    """Let nobody step environments to see whether returns compare."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advising, "returns_are_comparable", lambda *_: answer)
        yield
