"""How large an experiment is, and about how long it takes: on so many cores, and on an H200.

Nothing is tried for it: `cycletime study plan` does that for a single study. On cores the time is

    PPO: agent steps x (a + b k) + gradient steps x c;  SAC: agent steps x d

of one core of an AMD EPYC (`results/training-cpu.txt`, which has b = 2000 and m = 50, and `results/update-cpu.txt`,
which has other m). Engines know their costs on an H200.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil

from cycletime.agents import PPOAgent
from cycletime.duration import cycle_steps
from cycletime.engines.engine import Cost
from cycletime.paper.experiments import Experiment, Size, study_of
from cycletime.runs.machine import cores
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import TASKS
from cycletime.studies.plan.elsewhere import CORES, h200_s, on_an_h200, one_by_one_s, shared_s
from cycletime.studies.plan.plan import Plan, agent_steps_of
from cycletime.studies.spec.study import Study

PPO_STEP_S, PPO_INNER_S, PPO_GRADIENT_S = 10.5e-6, 0.17e-6, 18e-6
"""Of an agent step of PPO with the ten times that its sample is learned from, of each environment step in it, and of a
gradient step."""
SAC_STEP_S = 6.4e-3
"""Of an agent step of SAC, which is an update with 256 samples."""
COMPILE_S = 12.0
"""Of a program."""


@dataclass(frozen=True)
class Extent:
    """What an experiment amounts to."""

    runs: int = 0
    simulated_h: float = 0.0
    where: tuple[str, ...] = ()
    """Where results come from, as their tasks say."""
    engines: tuple[str, ...] = ()
    """What computes it on a GPU; on cores it is the engine compiled."""
    cores_s: Mapping[int, float] = field(default_factory=dict)
    """About, by the number of cores: those of `CORES`, and this machine's."""
    h200_s: float | None = 0.0
    """About, on one H200; None where that is not known."""


def extent_of(experiment: Experiment, size: Size) -> Extent:
    """What an experiment amounts to in a size; the winners' runs are taken to cost as much as the sweep's."""
    found = Extent()
    for part in experiment.studies:
        study = study_of(part, size)
        fresh = size.fresh_seeds or len(study.seeds)
        again = len(study.dts) * fresh if part == experiment.winners_of else 0
        found = _sum(found, _extent_of(study, again))
    return found


def _extent_of(study: Study, again: int) -> Extent:
    here = Plan.of(replace(study, device="cpu"))
    more, there_s = 1 + again / len(here.runs), h200_s(here, here.runs)
    return Extent(
        len(here.runs) + again,
        (here.simulated_h or 0.0) * more,
        tuple(sorted({TASKS[world.name].where for world in study.worlds})),
        tuple(sorted(on_an_h200(here).engines())),
        {count: _wall_s(here, count) + _wall_s(here, count, again) for count in {*CORES, cores()}},
        None if there_s is None else there_s * more,
    )


def _wall_s(plan: Plan, workers: int, runs: int | None = None) -> float:
    """The time that so many cores take for a plan, or for some runs that cost as much as its runs do on average."""
    parts = len(plan.runs) if runs is None else runs
    total_s = one_by_one_s(plan, plan.runs, core_cost) * parts / len(plan.runs)
    costs = ((cell, core_cost(cell.run(plan.study.seeds[0]))) for cell in plan.cells)
    longest_s = max(cost.program_s + agent_steps_of(cell) * cost.agent_step_s for cell, cost in costs)
    return shared_s(total_s, longest_s, parts, workers)


def core_cost(spec: RunSpec) -> Cost:
    """What a run takes on one core."""
    if not isinstance(spec.agent, PPOAgent):
        return Cost(SAC_STEP_S, COMPILE_S)
    assert spec.world.env_dt is not None, "the paper's tasks have one"
    inner_s = PPO_INNER_S * cycle_steps(spec.dt, spec.world.env_dt)
    gradient_steps = spec.agent.epochs * ceil(spec.agent.batch / spec.agent.minibatch) / spec.agent.batch
    return Cost(PPO_STEP_S + inner_s + PPO_GRADIENT_S * gradient_steps, COMPILE_S)


def _sum(one: Extent, other: Extent) -> Extent:
    return Extent(
        one.runs + other.runs,
        one.simulated_h + other.simulated_h,
        tuple(sorted({*one.where, *other.where})),
        tuple(sorted({*one.engines, *other.engines})),
        {count: one.cores_s.get(count, 0.0) + wall_s for count, wall_s in other.cores_s.items()},
        None if one.h200_s is None or other.h200_s is None else one.h200_s + other.h200_s,
    )
