"""Looks at more and more seeds of the candidates that may be the best, until one is left or the budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

from cycletime.duration import Duration
from cycletime.errors import InputError, RunError
from cycletime.statistics import Judgement
from cycletime.studies.advising.advice import Advice, Ended, Next, write_advice
from cycletime.studies.advising.candidate_runs import CandidateRuns
from cycletime.studies.advising.spending import Spending, simulated_h
from cycletime.studies.executors.executor import Executor
from cycletime.studies.running.running import Watcher, run_study


@dataclass
class Looking:
    """Advice while it is worked out."""

    advice: Advice
    """Without any look."""
    runs: CandidateRuns
    executor: Executor
    spending: Spending
    watcher: Watcher | None
    stop: Callable[[], bool]
    judgements: list[Judgement[Duration]] = field(default_factory=list)
    scores: dict[Duration, tuple[float | None, ...]] = field(default_factory=dict)
    without_mean: dict[Duration, str] = field(default_factory=dict)

    @property
    def left(self) -> tuple[Duration, ...]:
        """The candidates that may be the best."""
        return self.judgements[-1].left if self.judgements else self.advice.tried

    def answered(self) -> Advice:
        """The answer, after as many looks as it takes and the budget has room for.

        Raises:
            InputError: if the budget has no room for the first.
            RunError: if no candidate has a mean.
        """
        ended, looks = None, count(1)
        while ended is None:
            look = next(looks)
            ended = self._run(look) or self._judge(look)
        is_open = ended in ("budget", "stopped", "enough")
        return replace(self._found(), ended=ended, next=self._next(len(self.judgements) + 1) if is_open else None)

    def _found(self) -> Advice:
        return replace(
            self.advice,
            judgements=tuple(self.judgements),
            scores=dict(self.scores),
            without_mean=dict(self.without_mean),
        )

    def _next(self, look: int) -> Next:
        """What a look takes."""
        question, seeds = self.advice.question, self.advice.looks.runs(look)
        missing = self.runs.missing(self.left, seeds)
        return Next(
            seeds=seeds,
            runs=len(missing),
            wall_s=self.spending.pace.seconds(question, missing),
            simulated_h=simulated_h(len(missing), question, self.advice.env_dt),
        )

    def _run(self, look: int) -> Ended | None:
        """Run what is missing of a look; why it did not come to its end."""
        needed = self._next(look)
        if not needed.runs:
            return None
        spent_h = simulated_h(self.runs.done(), self.advice.question, self.advice.env_dt)
        if not self.spending.has_room(needed.wall_s, spent_h, needed.simulated_h):
            if look == 1:
                raise InputError(self._no_room(needed))
            return "budget"
        if not self.runs.begun:
            self._note()
        folder = self.runs.note(self.left, needed.seeds)
        before_s = self.spending.wall_s()
        states = run_study(folder, self.executor, watcher=self.watcher, stop=self._is_over)
        if not set(states) <= {"done", "failed"}:
            return "stopped" if self.stop() else "budget"
        self.spending.pace.learn(needed.wall_s, self.spending.wall_s() - before_s)
        return None

    def _is_over(self) -> bool:
        return self.stop() or self.spending.is_over()

    def _no_room(self, needed: Next) -> str:
        return (
            f"The first look, {needed.runs} runs of {self.advice.question.env_steps:,} environment steps, takes about "
            f"{needed.wall_s / 60:,.2g} min here and {needed.simulated_h:,.3g} simulated hours, and the budget is "
            f"{self.spending.budget}: give a larger budget, fewer --dts or fewer --env-steps."
        )

    def _judge(self, look: int) -> Ended | None:
        """Compare what is left; why that is the end."""
        found = self.runs.scores(self.left, self.advice.looks.runs(look))
        self.scores |= found
        self.without_mean |= {dt: why for dt, each in found.items() if (why := _why_no_mean(each)) is not None}
        self.runs.note(self.advice.tried, max(map(len, self.scores.values())))
        judged = {
            dt: [one for one in each if one is not None] for dt, each in found.items() if dt not in self.without_mean
        }
        if not judged:
            dt, why = next(iter(self.without_mean.items()))
            raise RunError(f"No candidate has a mean; at {dt} {why}: 'cycletime study status' says more.")
        self.judgements.append(Judgement.of(self.advice.looks, look, judged))
        self._note()
        if len(self.left) == 1:
            return "decided"
        return "enough" if self.judgements[-1].is_decided(self.advice.question.enough) else None

    def _note(self) -> None:
        write_advice(self.runs.path, {**self._found().as_json(), "answer": []})


def _why_no_mean(scores: tuple[float | None, ...]) -> str | None:
    missing = sum(score is None for score in scores)
    return f"{missing} of {len(scores)} runs failed, diverged or ended no episode" if missing else None
