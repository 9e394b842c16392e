"""Finding the best cycle time: looks at more and more seeds of the candidates that may be the best, within a budget.

The study's folder is the state. Whoever types the same command goes on: finished runs are read, looks are judged again
in the same order, and the next one is run. `cycletime.statistics.sequential` has the procedure and its error rate.

FOLDER/              a study like any other, of all candidates and seeds so far
FOLDER/advice.json   the question, what was measured of the machine, and the answer
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from math import ceil, floor, isfinite, log10
from pathlib import Path
from typing import Any, TypeAlias

from cycletime.agents import Agent
from cycletime.duration import Duration
from cycletime.errors import InputError, RunError
from cycletime.processes import owning_children
from cycletime.statistics import Judgement
from cycletime.studies.advice import (
    ADVICE_FILE,
    Advice,
    EndReason,
    NextLook,
    Question,
    differences,
    read_advice,
    write_advice,
)
from cycletime.studies.cycle_time_checks import (
    RealTimeFit,
    WorldFacts,
    describe_machine,
    measure_real_time_fit,
    returns_are_comparable,
    world_facts,
)
from cycletime.studies.events import StudyObserver
from cycletime.studies.executors import Executor
from cycletime.studies.hardware_estimates import Costs, estimate_wall_time, measure_costs
from cycletime.studies.plan import Plan
from cycletime.studies.scores import read_cells
from cycletime.studies.study_folder import StudyFolder, check_folder_free
from cycletime.studies.worker_pool import run_study
from cycletime.training.latency import DEFAULT_MARGIN
from cycletime.training.worlds import ClosedFormWorld, refuse_unknown_env

CandidateRun: TypeAlias = tuple[Duration, int]

FIRST_LOOK_SHARE = 0.25
"""Share of the budget for the first look, where the length of runs follows from it."""
MIN_UPDATES = 10
"""A run with fewer updates says nothing about learning."""


@dataclass(frozen=True)
class Budget:
    """What may be spent; None for no limit."""

    wall_s: float | None = None
    """Wall time of one call of the command."""
    simulated_h: float | None = None
    """Simulated hours of all runs of the folder."""

    def __str__(self) -> str:
        minutes = [] if self.wall_s is None else [f"{self.wall_s / 60:,.3g} min"]
        return " and ".join(
            minutes + ([] if self.simulated_h is None else [f"{self.simulated_h:,.3g} simulated hours"])
        )

    def __post_init__(self) -> None:
        if self.wall_s is None and self.simulated_h is None:
            raise InputError("There is no budget: give --minutes or --simulated-hours.")
        for name, amount in (("--minutes", self.wall_s), ("--simulated-hours", self.simulated_h)):
            if amount is not None and not (isfinite(amount) and amount > 0):
                shown = amount / 60 if name == "--minutes" else amount
                raise InputError(f"{name} is {shown:g}: it must be a positive number.")


@dataclass
class WallTimeModel:
    measure: Callable[[], tuple[Costs, float]]
    """What runs cost, and how long a process takes to start, from a short trial; called once, and only if needed."""
    workers: int
    env_dt: Duration
    factor: float = 1.0
    """By how much runs took longer than the trial said."""

    @cached_property
    def _measured(self) -> tuple[Costs, float]:
        return self.measure()

    def seconds(self, question: Question, runs: Collection[CandidateRun]) -> float:
        if not runs:
            return 0.0
        world = question.world
        timed = world if isinstance(world, ClosedFormWorld) else replace(world, env_dt=self.env_dt)
        dts, seeds = {dt for dt, _ in runs}, max(seed for _, seed in runs) + 1
        plan = Plan.of(replace(question, world=timed).study(dts, seeds))
        planned = [each for each in plan.runs if (plan.cells[each.cell].dt, each.seed) in runs]
        return self.factor * estimate_wall_time(plan, planned, *self._measured, self.workers).wall_s

    def correct(self, expected_s: float, took_s: float) -> None:
        if expected_s > 0 and took_s > 0:
            self.factor *= took_s / expected_s


@dataclass(frozen=True)
class BudgetTracker:
    budget: Budget
    wall_time: WallTimeModel
    clock: Callable[[], float]
    began_s: float

    def wall_s(self) -> float:
        return self.clock() - self.began_s

    def is_over(self) -> bool:
        return self.budget.wall_s is not None and self.wall_s() >= self.budget.wall_s

    def has_room(self, wall_s: float, spent_h: float, simulated_h: float) -> bool:
        most_s, most_h = self.budget.wall_s, self.budget.simulated_h
        in_time = most_s is None or self.wall_s() + wall_s <= most_s
        return in_time and (most_h is None or spent_h + simulated_h <= most_h * (1 + 1e-9))


def affordable_env_steps(question: Question, dts: Sequence[Duration], spending: BudgetTracker) -> int:
    """How long runs may be for the first look to take its share of what is left of the budget, to two digits."""
    budget, wall_time = spending.budget, spending.wall_time
    first_look = [(dt, seed) for dt in dts for seed in range(question.first_seeds)]
    most = []
    if budget.simulated_h is not None:
        one_h = replace(question, env_steps=1).simulated_h(len(first_look), wall_time.env_dt)
        most.append(FIRST_LOOK_SHARE * budget.simulated_h / one_h)
    if budget.wall_s is not None:
        # Expected times are linear in the length of runs.
        few_s, many_s = (
            wall_time.seconds(replace(question, env_steps=steps), first_look) for steps in (10**6, 2 * 10**6)
        )
        share_s = FIRST_LOOK_SHARE * (budget.wall_s - spending.wall_s())
        most.append((share_s - (2 * few_s - many_s)) / max(many_s - few_s, 1e-9) * 10**6)
    env_steps, least = _floor_two_digits(min(most)), _min_env_steps(question, dts, wall_time.env_dt)
    if env_steps < least:
        raise InputError(
            f"The budget has room for runs of {env_steps:,} environment steps with {len(dts)} candidates, and learning "
            f"needs at least {least:,}: give a larger budget, fewer --dts, or --env-steps yourself."
        )
    return env_steps


def _min_env_steps(question: Question, dts: Sequence[Duration], env_dt: Duration) -> int:
    """Enough for `MIN_UPDATES` at every cycle time, after the agent's random start."""
    steps = {dt: agent.random_steps + MIN_UPDATES * agent.period for dt, agent in question.agents(dts).items()}
    return max(ceil(count * (dt / env_dt)) for dt, count in steps.items())


def _floor_two_digits(number: float) -> int:
    if number < 1:
        return 0
    unit: int = 10 ** max(0, floor(log10(number)) - 1)
    return floor(number / unit) * unit


@dataclass(frozen=True)
class CandidateRuns:
    path: Path
    question: Question

    @property
    def begun(self) -> bool:
        return (self.path / "study.json").exists()

    def write_study(self, dts: Iterable[Duration], seeds: int) -> StudyFolder:
        return StudyFolder.create(self.path, self.question.study(dts, seeds))

    def missing(self, dts: Iterable[Duration], seeds: int) -> set[CandidateRun]:
        dts = tuple(dts)
        if not self.begun:
            return {(dt, seed) for dt in dts for seed in range(seeds)}
        folder = self._folder(dts, seeds)
        plan = Plan.of(folder.study)
        states = folder.states(run.name for run in plan.runs)
        return {(plan.cells[run.cell].dt, run.seed) for run in folder.runs_left(plan, states)}

    def scores(self, dts: Iterable[Duration], seeds: int) -> dict[Duration, tuple[float | None, ...]]:
        """By candidate and in the order of seeds; None where a run has no score."""
        folder = self._folder(dts, seeds).checked()
        return {cell.dt: tuple(run.score for run in runs) for cell, runs in read_cells(folder, self.question.measure)}

    def done(self) -> int:
        return len(StudyFolder.open(self.path).store.refresh()) if self.begun else 0

    def _folder(self, dts: Iterable[Duration], seeds: int) -> StudyFolder:
        """The folder with the study of some candidates and seeds, whatever its own is at this moment."""
        folder = StudyFolder.open(self.path)
        study = self.question.study(dts, seeds).resolved(folder.study)
        return replace(folder, study=replace(study, width=folder.study.width))


@dataclass
class SequentialSearch:
    advice: Advice
    runs: CandidateRuns
    executor: Executor
    spending: BudgetTracker
    observers: Sequence[StudyObserver]
    stop: Callable[[], bool]

    def run(self) -> Advice:
        ended, looks = None, count(1)
        while ended is None:
            look = next(looks)
            ended = self._run_look(look) or self._judge(look)
        is_open = ended in ("budget", "stopped", "enough")
        next_look = self._cost_of(len(self.advice.judgements) + 1) if is_open else None
        return replace(self.advice, ended=ended, next=next_look)

    def _cost_of(self, look: int) -> NextLook:
        question, seeds = self.advice.question, self.advice.looks.runs(look)
        missing = self.runs.missing(self.advice.left, seeds)
        return NextLook(
            seeds=seeds,
            runs=len(missing),
            wall_s=self.spending.wall_time.seconds(question, missing),
            simulated_h=question.simulated_h(len(missing), self.advice.env_dt),
        )

    def _run_look(self, look: int) -> EndReason | None:
        """Run what is missing of a look; None when it is complete, else why not."""
        needed = self._cost_of(look)
        if not needed.runs:
            return None
        spent_h = self.advice.question.simulated_h(self.runs.done(), self.advice.env_dt)
        if not self.spending.has_room(needed.wall_s, spent_h, needed.simulated_h):
            if look == 1:
                raise InputError(self._no_room(needed))
            return "budget"
        if not self.runs.begun:
            self._write()
        folder = self.runs.write_study(self.advice.left, needed.seeds)
        before_s = self.spending.wall_s()
        states = run_study(
            folder, self.executor, observers=self.observers, stop=lambda: self.stop() or self.spending.is_over()
        )
        if not set(states) <= {"done", "failed"}:
            return "stopped" if self.stop() else "budget"
        self.spending.wall_time.correct(needed.wall_s, self.spending.wall_s() - before_s)
        return None

    def _no_room(self, needed: NextLook) -> str:
        return (
            f"The first look, {needed.runs} runs of {self.advice.question.env_steps:,} environment steps, takes about "
            f"{needed.wall_s / 60:,.2g} min here and {needed.simulated_h:,.3g} simulated hours, and the budget is "
            f"{self.spending.budget}: give a larger budget, fewer --dts or fewer --env-steps."
        )

    def _judge(self, look: int) -> EndReason | None:
        """Compare the candidates that are left; None to go on, else why that is the end."""
        advice = self.advice
        found = self.runs.scores(advice.left, advice.looks.runs(look))
        scores = {**advice.scores, **found}
        failed = {dt: why for dt, each in found.items() if (why := _why_no_mean(each)) is not None}
        self.runs.write_study(advice.tried, max(map(len, scores.values())))
        judged = {dt: [score for score in each if score is not None] for dt, each in found.items() if dt not in failed}
        if not judged:
            dt, why = next(iter({**advice.without_mean, **failed}.items()))
            raise RunError(f"No candidate has a mean; at {dt} {why}: 'cycletime study status' says more.")
        self.advice = replace(
            advice,
            judgements=(*advice.judgements, Judgement.of(advice.looks, look, judged)),
            scores=scores,
            without_mean={**advice.without_mean, **failed},
        )
        self._write()
        if len(self.advice.left) == 1:
            return "decided"
        return "enough" if self.advice.judgements[-1].is_decided(advice.question.enough) else None

    def _write(self) -> None:
        write_advice(self.runs.path, {**self.advice.as_json(), "answer": []})


def _why_no_mean(scores: tuple[float | None, ...]) -> str | None:
    missing = sum(score is None for score in scores)
    return f"{missing} of {len(scores)} runs failed, diverged or ended no episode" if missing else None


@dataclass(frozen=True)
class MachineMeasurements:
    clock: Callable[[], float] = time.monotonic
    in_time: Callable[
        [Mapping[Duration, Agent], WorldFacts, Callable[[str], object], int], Mapping[Duration, RealTimeFit]
    ] = measure_real_time_fit
    costs: Callable[[Plan], tuple[Costs, float]] = lambda plan: measure_costs(plan, plan.runs)
    """What runs of a plan cost, and how long a process takes to start."""
    tell: Callable[[str], object] = lambda sentence: None

    def costs_of(self, question: Question, dts: Sequence[Duration]) -> tuple[Costs, float]:
        self.tell("Measuring how fast runs are ...")
        return self.costs(Plan.of(question.study(dts, 1)))


THIS_MACHINE = MachineMeasurements()


def advise(
    question: Question,
    path: Path,
    executor: Executor,
    budget: Budget,
    *,
    env_steps: int | None = None,
    observers: Sequence[StudyObserver] = (),
    stop: Callable[[], bool] = lambda: False,
    instruments: MachineMeasurements = THIS_MACHINE,
) -> Advice:
    """Find out which cycle time to use, or continue: the same folder, question and budget give the same answer.

    Runs train for `env_steps`, or as long as the budget has room for; `stop` is asked about twice a second.
    """
    began_s = instruments.clock()
    refuse_unknown_env(question.world)
    before = read_advice(path)
    if before is None and (path / "study.json").exists():
        raise InputError(f"{path} holds a study without {ADVICE_FILE}: give another folder.")
    check_folder_free(path)
    if env_steps is not None:
        question = replace(question, env_steps=env_steps)
    if before is not None:
        question = _resumed_question(question, before, env_steps, path)
    with nullcontext() if isinstance(question.world, ClosedFormWorld) else owning_children():
        facts = world_facts(question.world, question.present)
        dts, not_tried = question.candidates(facts.env_dt)
        known = _measure(question, facts, dts, instruments) if before is None else _measured_before(before)
    late = {dt: each for dt, each in known["in_time"].items() if not each.fits and dt != question.present}
    tried = tuple(dt for dt in dts if dt not in late)
    wall_time = WallTimeModel(partial(instruments.costs_of, question, tried), executor.workers, facts.env_dt)
    spending = BudgetTracker(budget, wall_time, instruments.clock, began_s)
    if len(tried) > 1 and before is None:
        if env_steps is None:
            question = replace(question, env_steps=affordable_env_steps(question, tried, spending))
        question.study(tried, 1).check_worlds()
    advice = Advice(
        question=question,
        env_dt=facts.env_dt,
        tried=tried,
        not_tried={**not_tried, **{str(dt): _why_late(each) for dt, each in late.items()}},
        **known,
    )
    if len(tried) > 1:
        advice = SequentialSearch(advice, CandidateRuns(path, question), executor, spending, observers, stop).run()
    return replace(advice, wall_s=spending.wall_s(), ended=advice.ended if len(tried) > 1 else "alone")


def _measure(
    question: Question, facts: WorldFacts, dts: Sequence[Duration], instruments: MachineMeasurements
) -> dict[str, Any]:
    """What an `Advice` says of the machine and the environment, measured once: another result changes the question."""
    instruments.tell("Checking that returns can be compared ...")
    return {
        "comparable": returns_are_comparable(question.world, facts.env_dt, dts),
        "machine": describe_machine(),
        "in_time": instruments.in_time(question.own_agents(dts), facts, instruments.tell, question.num_envs)
        if question.real_time
        else {},
    }


def _measured_before(before: Mapping[str, Any]) -> dict[str, Any]:
    in_time = {Duration(dt): RealTimeFit(**each) for dt, each in before["in_time"].items()}
    return {"comparable": before["comparable"], "machine": before["machine"], "in_time": in_time}


def _resumed_question(question: Question, before: Mapping[str, Any], env_steps: int | None, path: Path) -> Question:
    """The question with the folder's length of runs; refused if it is another."""
    kept = before["question"]
    question = replace(question, env_steps=kept["env_steps"] if env_steps is None else env_steps)
    if other := differences(kept, question.as_json()):
        raise InputError(
            f"{path} holds the answer to another question, with {other}: give another folder, or that question again."
        )
    return question


def _why_late(in_time: RealTimeFit) -> str:
    if in_time.act_share > 1 - DEFAULT_MARGIN:
        free = f"{100 * DEFAULT_MARGIN:.0f} %"
        return f"acting takes {100 * in_time.act_share:.0f} % of the cycle here, and {free} of it must stay free"
    return f"learning takes {100 * in_time.learn_share:.0f} % of the time there is for it here"
