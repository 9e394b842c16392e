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
from functools import cached_property
from itertools import count
from math import ceil, floor, isfinite, log10
from pathlib import Path
from typing import Any

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
from cycletime.studies.hardware_estimates import Costs, estimate_wall_time, measure_costs
from cycletime.studies.plan import Plan
from cycletime.studies.scores import read_cells
from cycletime.studies.study_folder import StudyFolder, check_folder_free
from cycletime.studies.worker_pool import Executor, run_study
from cycletime.training.latency import DEFAULT_MARGIN
from cycletime.training.worlds import ClosedFormWorld, refuse_unknown_env

FIRST_LOOK_SHARE = 0.25
"""Share of the budget for the first look, where the length of runs follows from it."""
FIRST_LOOK_MARGIN = 1.2
"""Of its expected time, that a budget must hold: a first look that is not whole is no answer."""
MIN_UPDATES = 10
"""A run with fewer updates says nothing about learning."""


@dataclass(frozen=True)
class Budget:
    wall_s: float | None = None
    """Wall time of one call of the command."""
    simulated_h: float | None = None
    """Simulated hours of all runs of the folder."""

    def __str__(self) -> str:
        minutes = "" if self.wall_s is None else f"{self.wall_s / 60:,.3g} min"
        hours = "" if self.simulated_h is None else f"{self.simulated_h:,.3g} simulated hours"
        return " and ".join(filter(None, [minutes, hours]))

    def __post_init__(self) -> None:
        if self.wall_s is None and self.simulated_h is None:
            raise InputError("There is no budget: give --minutes or --simulated-hours.")
        for name, amount in (("--minutes", self.wall_s), ("--simulated-hours", self.simulated_h)):
            if amount is not None and not (isfinite(amount) and amount > 0):
                shown = amount / 60 if name == "--minutes" else amount
                raise InputError(f"{name} is {shown:g}: it must be a positive number.")


@dataclass
class Spending:
    budget: Budget
    measure: Callable[[], tuple[Costs, float]]
    """What runs cost, and how long a process takes to start, from a short trial; called once, and only if needed."""
    workers: int
    env_dt: Duration
    clock: Callable[[], float]
    began_s: float
    factor: float = 1.0

    @cached_property
    def _measured(self) -> tuple[Costs, float]:
        return self.measure()

    def wall_s(self) -> float:
        return self.clock() - self.began_s

    def is_over(self) -> bool:
        return self.budget.wall_s is not None and self.wall_s() >= self.budget.wall_s

    def has_room(self, wall_s: float, spent_h: float, simulated_h: float) -> bool:
        most_s, most_h = self.budget.wall_s, self.budget.simulated_h
        in_time = most_s is None or self.wall_s() + wall_s <= most_s
        return in_time and (most_h is None or spent_h + simulated_h <= most_h * (1 + 1e-9))

    def needed(self, wall_s: float, simulated_h: float) -> str:
        """The options of a budget that holds so much more."""
        minutes = f"--minutes {_round_up((self.wall_s() + wall_s) / 60):g}"
        hours = f"--simulated-hours {_round_up(simulated_h):g}"
        wanted = ((self.budget.wall_s, minutes), (self.budget.simulated_h, hours))
        return " and ".join(option for given, option in wanted if given is not None)

    def expected_s(self, question: Question, runs: Collection[tuple[Duration, int]]) -> float:
        if not runs:
            return 0.0
        world = question.world
        timed = world if isinstance(world, ClosedFormWorld) else replace(world, env_dt=self.env_dt)
        dts, seeds = {dt for dt, _ in runs}, max(seed for _, seed in runs) + 1
        plan = Plan.of(replace(question, world=timed).study(dts, seeds))
        planned = [each for each in plan.runs if (plan.cells[each.cell].dt, each.seed) in runs]
        return self.factor * estimate_wall_time(plan, planned, *self._measured, self.workers).wall_s


def _second_digit(number: float) -> float:
    """The unit in which a number has two digits."""
    return 10.0 ** (floor(log10(number)) - 1)


def _round_up(number: float) -> float:
    """To two digits."""
    unit = _second_digit(max(number, 1e-3))
    return ceil(number / unit) * unit


def affordable_env_steps(question: Question, dts: Sequence[Duration], spending: Spending) -> int:
    """How long runs may be for the first look to take its share of what is left of the budget, to two digits."""
    budget = spending.budget
    first_look = [(dt, seed) for dt in dts for seed in range(question.first_seeds)]
    most = []
    if budget.simulated_h is not None:
        one_h = replace(question, env_steps=1).simulated_h(len(first_look), spending.env_dt)
        most.append(FIRST_LOOK_SHARE * budget.simulated_h / one_h)
    if budget.wall_s is not None:
        # Expected times are linear in the length of runs.
        few_s, many_s = (
            spending.expected_s(replace(question, env_steps=steps), first_look) for steps in (10**6, 2 * 10**6)
        )
        share_s = FIRST_LOOK_SHARE * (budget.wall_s - spending.wall_s())
        most.append((share_s - (2 * few_s - many_s)) / max(many_s - few_s, 1e-9) * 10**6)
    unit = max(1, round(_second_digit(max(1, min(most)))))
    env_steps = max(0, floor(min(most) / unit) * unit)
    # Enough for `MIN_UPDATES` at every cycle time, after the agent's random start.
    steps = {dt: agent.random_steps + MIN_UPDATES * agent.period for dt, agent in question.agents(dts).items()}
    least = max(ceil(count * (dt / spending.env_dt)) for dt, count in steps.items())
    if env_steps < least:
        room = f"The budget has room for runs of {env_steps:,} environment steps with {len(dts)} candidates"
        remedy = "give a larger budget, fewer --dts, or --env-steps yourself"
        raise InputError(f"{room}, and learning needs at least {least:,}: {remedy}.")
    return env_steps


@dataclass
class SequentialSearch:
    advice: Advice
    path: Path
    executor: Executor
    spending: Spending
    observers: Sequence[StudyObserver]
    stop: Callable[[], bool]

    @property
    def begun(self) -> bool:
        return (self.path / "study.json").exists()

    def run(self) -> Advice:
        ended, looks = None, count(1)
        while ended is None:
            look = next(looks)
            ended = self._run_look(look) or self._judge(look)
        is_open = ended in ("budget", "stopped", "enough")
        next_look = self._cost_of(len(self.advice.judgements) + 1) if is_open else None
        return replace(self.advice, ended=ended, next=next_look)

    def _cost_of(self, look: int) -> NextLook:
        question, seeds, dts = self.advice.question, self.advice.looks.runs(look), self.advice.left
        missing = {(dt, seed) for dt in dts for seed in range(seeds)}
        if self.begun:
            folder = self._folder(dts, seeds)
            plan = Plan.of(folder.study)
            left = folder.runs_left(plan, folder.states(run.name for run in plan.runs))
            missing = {(plan.cells[run.cell].dt, run.seed) for run in left}
        return NextLook(
            seeds=seeds,
            runs=len(missing),
            wall_s=self.spending.expected_s(question, missing),
            simulated_h=question.simulated_h(len(missing), self.advice.env_dt),
        )

    def _run_look(self, look: int) -> EndReason | None:
        """Run what is missing of a look; None when it is complete, else why not."""
        needed = self._cost_of(look)
        if not needed.runs:
            return None
        done = len(StudyFolder.open(self.path).store.refresh()) if self.begun else 0
        spent_h = self.advice.question.simulated_h(done, self.advice.env_dt)
        wall_s = needed.wall_s * (FIRST_LOOK_MARGIN if look == 1 else 1.0)
        if not self.spending.has_room(wall_s, spent_h, needed.simulated_h):
            if look == 1:
                runs = f"{needed.runs} runs of {self.advice.question.env_steps:,} environment steps"
                takes = f"{needed.wall_s / 60:,.2g} min here and {needed.simulated_h:,.3g} simulated hours"
                enough = self.spending.needed(wall_s, spent_h + needed.simulated_h)
                seeds = self._first_seeds_with_room()
                fewer = f"--first-seeds {seeds}, " if seeds else ""
                remedy = f"give {enough}, {fewer}fewer --dts or fewer --env-steps"
                budget = f"the budget is {self.spending.budget}: {remedy}"
                raise InputError(f"The first look, {runs}, takes about {takes}, and {budget}.")
            return "budget"
        if not self.begun:
            self._write()
        folder = self._write_study(self.advice.left, needed.seeds)
        before_s = self.spending.wall_s()
        states = run_study(
            folder, self.executor, observers=self.observers, stop=lambda: self.stop() or self.spending.is_over()
        )
        if not set(states) <= {"done", "failed"}:
            return "stopped" if self.stop() else "budget"
        took_s = self.spending.wall_s() - before_s
        if needed.wall_s > 0 and took_s > 0:
            self.spending.factor *= took_s / needed.wall_s
        return None

    def _first_seeds_with_room(self) -> int | None:
        """The most seeds with which the budget holds the first look; None where there are none, or it is begun."""
        question, dts = self.advice.question, self.advice.tried
        for seeds in range(question.first_seeds - 1, 1, -1) if not self.begun else ():
            runs = [(dt, seed) for dt in dts for seed in range(seeds)]
            hours = question.simulated_h(len(runs), self.advice.env_dt)
            wall_s = FIRST_LOOK_MARGIN * self.spending.expected_s(question, runs)
            if self.spending.has_room(wall_s, 0.0, hours):
                return seeds
        return None

    def _judge(self, look: int) -> EndReason | None:
        """Compare the candidates that are left; None to go on, else why that is the end."""
        advice = self.advice
        folder = self._folder(advice.left, advice.looks.runs(look)).checked()
        found = {
            cell.dt: tuple(run.score for run in runs) for cell, runs in read_cells(folder, advice.question.measure)
        }
        scores = {**advice.scores, **found}
        failed = {
            dt: f"{each.count(None)} of {len(each)} runs failed, diverged or ended no episode"
            for dt, each in found.items()
            if None in each
        }
        self._write_study(advice.tried, max(map(len, scores.values())))
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
        write_advice(self.path, {**self.advice.as_json(), "answer": []})

    def _write_study(self, dts: Iterable[Duration], seeds: int) -> StudyFolder:
        return StudyFolder.create(self.path, self.advice.question.study(dts, seeds))

    def _folder(self, dts: Iterable[Duration], seeds: int) -> StudyFolder:
        """The folder with the study of some candidates and seeds, whatever its own is at this moment."""
        folder = StudyFolder.open(self.path)
        study = self.advice.question.study(dts, seeds).resolved(folder.study)
        return replace(folder, study=replace(study, width=folder.study.width))


@dataclass(frozen=True)
class MachineMeasurements:
    clock: Callable[[], float] = time.monotonic
    in_time: Callable[
        [Mapping[Duration, Agent], WorldFacts, Callable[[str], object], int], Mapping[Duration, RealTimeFit]
    ] = measure_real_time_fit
    costs: Callable[[Plan], tuple[Costs, float]] = lambda plan: measure_costs(plan, plan.runs)
    tell: Callable[[str], object] = lambda sentence: None


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
    """Find out which cycle time to use, or continue; runs train for `env_steps`, or as long as the budget allows."""
    began_s = instruments.clock()
    refuse_unknown_env(question.world)
    before = read_advice(path)
    if before is None and (path / "study.json").exists():
        raise InputError(f"{path} holds a study without {ADVICE_FILE}: give another folder.")
    check_folder_free(path)
    kept = {} if before is None else before["question"]
    question = replace(
        question, env_steps=kept.get("env_steps", question.env_steps) if env_steps is None else env_steps
    )
    if kept and (other := differences(kept, question.as_json())):
        remedy = "give another folder, or that question again"
        raise InputError(f"{path} holds the answer to another question, with {other}: {remedy}.")
    with nullcontext() if isinstance(question.world, ClosedFormWorld) else owning_children():
        facts = world_facts(question.world, question.present, discrete=question.trainer is not None)
        dts, not_tried = question.candidates(facts.env_dt)
        if before is None:
            known = _measure(question, facts, dts, instruments)
        else:
            known = {name: before[name] for name in ("comparable", "machine")}
            known["in_time"] = {Duration(dt): RealTimeFit(**each) for dt, each in before["in_time"].items()}
    late = {dt: each for dt, each in known["in_time"].items() if not each.fits and dt != question.present}
    tried = tuple(dt for dt in dts if dt not in late)

    def costs() -> tuple[Costs, float]:
        instruments.tell("Measuring how fast runs are ...")
        return instruments.costs(Plan.of(question.study(tried, 1)))

    spending = Spending(budget, costs, executor.workers, facts.env_dt, instruments.clock, began_s)
    if len(tried) > 1 and before is None:
        if env_steps is None:
            question = replace(question, env_steps=affordable_env_steps(question, tried, spending))
        question.study(tried, 1).check_worlds()
    advice = Advice(
        question=question,
        env_dt=facts.env_dt,
        tried=tried,
        not_tried={**not_tried, **{dt.shortest: _why_late(each) for dt, each in late.items()}},
        **known,
    )
    if len(tried) > 1:
        advice = SequentialSearch(advice, path, executor, spending, observers, stop).run()
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


def _why_late(in_time: RealTimeFit) -> str:
    if in_time.act_share > 1 - DEFAULT_MARGIN:
        free = f"{100 * DEFAULT_MARGIN:.0f} %"
        return f"acting takes {100 * in_time.act_share:.0f} % of the cycle here, and {free} of it must stay free"
    return f"learning takes {100 * in_time.learn_share:.0f} % of the time there is for it here"
