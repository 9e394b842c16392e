"""Advice on the cycle time: looks at more and more seeds of the candidates that may be the best, within a budget.

The study's folder is the state. Whoever types the same command goes on: finished runs are read, looks are judged again
in the same order, and the next one is run. `cycletime.statistics.sequential` has the procedure and its error rate.

FOLDER/              a study like any other, of all candidates and seeds so far
FOLDER/advice.json   the question, what was measured of the machine, and the answer
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
    facts = facts_of(question.world, question.present)
    dts, not_tried = question.candidates(facts.env_dt)
    if before is not None:
        question = _same(question, before, env_steps, path)
        in_time = {Duration(dt): InTime(**each) for dt, each in before["in_time"].items()}
        comparable, where = before["comparable"], before["machine"]
    else:
        instruments.tell("Checking that returns can be compared ...")
        comparable, where = returns_are_comparable(question.world, facts.env_dt, dts), machine()
        in_time = dict(instruments.in_time(question.agents(dts), facts, instruments.tell)) if question.real_time else {}
    late = {dt for dt, each in in_time.items() if not each.fits and dt != question.present}
    not_tried |= {str(dt): _why_late(in_time[dt]) for dt in sorted(late)}
    tried = tuple(dt for dt in dts if dt not in late)
    pace = Pace({}, 0.0, executor.workers, facts.env_dt)
    spending = Spending(budget, pace, instruments.clock, began_s)
    if len(tried) > 1:
        instruments.tell("Measuring how fast runs are ...")
        long = question if before or env_steps else replace(question, env_steps=10**6)
        pace.costs, pace.start_s = instruments.costs(Plan.of(long.study(tried, 1)))
        if before is None:
            chosen = env_steps or affordable_env_steps(question, tried, spending)
            question = replace(question, env_steps=chosen)
    advice = Advice(
        question=question,
        env_dt=facts.env_dt,
        tried=tried,
        in_time=in_time,
        machine=where,
        not_tried=not_tried,
        comparable=comparable,
    )
    if len(tried) < 2:
        return replace(advice, ended="alone", wall_s=instruments.clock() - began_s)
    found = Looking(advice, CandidateRuns(path, question), executor, spending, watcher, stop).answered()
    return replace(found, wall_s=spending.wall_s())


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
