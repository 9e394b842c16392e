"""Advice on the cycle time: looks at more and more seeds of the candidates that may be the best, within a budget.

The study's folder is the state. Whoever types the same command goes on: finished runs are read, looks are judged again
in the same order, and the next one is run. `cycletime.statistics.sequential` has the procedure and its error rate.

FOLDER/              a study like any other, of all candidates and seeds so far
FOLDER/advice.json   the question, what was measured of the machine, and the answer
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cycletime.agents import Agent
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.runs.worlds import refuse_unknown_env
from cycletime.studies.advising.advice import FILE, Advice, read_advice
from cycletime.studies.advising.candidate_runs import CandidateRuns
from cycletime.studies.advising.in_time import InTime, machine, measured_in_time
from cycletime.studies.advising.looking import Looking
from cycletime.studies.advising.question import Question, differing
from cycletime.studies.advising.spending import Budget, Pace, Spending, affordable_env_steps
from cycletime.studies.advising.worlds import WorldFacts, facts_of, returns_are_comparable
from cycletime.studies.executors.executor import Executor
from cycletime.studies.plan.estimate import Costs, calibrate
from cycletime.studies.plan.plan import Plan
from cycletime.studies.running.running import Watcher
from cycletime.studies.store.folder import check_free


@dataclass(frozen=True)
class Instruments:
    """What measures this machine; tests have others."""

    clock: Callable[[], float] = time.monotonic
    in_time: Callable[[Mapping[Duration, Agent], WorldFacts, Callable[[str], object]], Mapping[Duration, InTime]] = (
        measured_in_time
    )
    costs: Callable[[Plan], tuple[Costs, float]] = lambda plan: calibrate(plan, plan.runs)
    """What runs of a plan cost, and how long a process takes to start."""
    tell: Callable[[str], object] = lambda sentence: None
    """Told what goes on."""

    def costs_of(self, question: Question, dts: Sequence[Duration]) -> tuple[Costs, float]:
        """What runs of candidates cost."""
        self.tell("Measuring how fast runs are ...")
        return self.costs(Plan.of(question.study(dts, 1)))


THIS_MACHINE = Instruments()


def advise(
    question: Question,
    path: Path,
    executor: Executor,
    budget: Budget,
    *,
    env_steps: int | None = None,
    watcher: Watcher | None = None,
    stop: Callable[[], bool] = lambda: False,
    instruments: Instruments = THIS_MACHINE,
) -> Advice:
    """Find out which cycle time to use, or go on with it.

    Args:
        question: What is asked.
        path: The study's folder.
        executor: Who computes.
        budget: What may be spent.
        env_steps: How long each run trains; None for as long as the budget has room for.
        watcher: Who wants to know how runs go.
        stop: Asked about twice a second; where it says yes, workers save and leave.
        instruments: What measures this machine.

    Raises:
        InputError: if the folder holds another question, or the budget has no room for the first look.
    """
    began_s = instruments.clock()
    refuse_unknown_env(question.world)
    before = read_advice(path)
    if before is None and (path / "study.json").exists():
        raise InputError(f"{path} holds a study without {FILE}: give another folder.")
    check_free(path)
    if env_steps is not None:
        question = replace(question, env_steps=env_steps)
    if before is not None:
        question = _same(question, before, env_steps, path)
    facts = facts_of(question.world, question.present)
    dts, not_tried = question.candidates(facts.env_dt)
    known = _measured(question, facts, dts, instruments) if before is None else _Known.of(before)
    late = {dt: each for dt, each in known.in_time.items() if not each.fits and dt != question.present}
    tried = tuple(dt for dt in dts if dt not in late)
    pace = Pace(partial(instruments.costs_of, question, tried), executor.workers, facts.env_dt)
    spending = Spending(budget, pace, instruments.clock, began_s)
    if len(tried) > 1 and before is None:
        if env_steps is None:
            question = replace(question, env_steps=affordable_env_steps(question, tried, spending))
        question.study(tried, 1).check_worlds()
    advice = Advice(
        question=question,
        env_dt=facts.env_dt,
        tried=tried,
        in_time=known.in_time,
        machine=known.machine,
        not_tried={**not_tried, **{str(dt): _why_late(each) for dt, each in late.items()}},
        comparable=known.comparable,
    )
    if len(tried) > 1:
        advice = Looking(advice, CandidateRuns(path, question), executor, spending, watcher, stop).answered()
    return replace(advice, wall_s=spending.wall_s(), ended=advice.ended if len(tried) > 1 else "alone")


@dataclass(frozen=True)
class _Known:
    """What is measured once, and then kept: another answer would be another question."""

    in_time: Mapping[Duration, InTime]
    machine: Mapping[str, Any]
    comparable: bool | None

    @classmethod
    def of(cls, before: Mapping[str, Any]) -> _Known:
        in_time = {Duration(dt): InTime(**each) for dt, each in before["in_time"].items()}
        return cls(in_time, before["machine"], before["comparable"])


def _measured(question: Question, facts: WorldFacts, dts: Sequence[Duration], instruments: Instruments) -> _Known:
    instruments.tell("Checking that returns can be compared ...")
    comparable, where = returns_are_comparable(question.world, facts.env_dt, dts), machine()
    if not question.real_time:
        return _Known({}, where, comparable)
    return _Known(instruments.in_time(question.agents(dts), facts, instruments.tell), where, comparable)


def _same(question: Question, before: Mapping[str, Any], env_steps: int | None, path: Path) -> Question:
    """The question as the folder has it, where that is the same.

    Raises:
        InputError: if it is another.
    """
    kept = before["question"]
    question = replace(question, env_steps=kept["env_steps"] if env_steps is None else env_steps)
    if other := differing(kept, question.as_json()):
        raise InputError(f"{path} holds the answer to another question ({other}): give another folder.")
    return question


def _why_late(in_time: InTime) -> str:
    if in_time.act_share > 0.5:
        return f"acting takes {100 * in_time.act_share:.0f} % of the cycle here, and half of it is to stay free"
    return f"learning takes {100 * in_time.learn_share:.0f} % of the time there is for it here"
