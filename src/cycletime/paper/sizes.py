"""How large an experiment is, and about how long it takes: on the cores that are here, and on an H200.

Nothing is tried for it: `cycletime study plan` does that for a single study. On cores the time is

    PPO: agent steps x (a + b k) + gradient steps x c;  SAC: agent steps x d

of one core of an Intel Xeon at 2.8 GHz (`results/training-cpu.txt`, which has b = 2000 and m = 50; how it changes with
m and k was tried with `cycletime study plan` on an AMD EPYC). Engines know their costs on an H200.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

from cycletime.agents import PPOAgent
from cycletime.duration import cycle_steps
from cycletime.engines.engine import Cost
from cycletime.engines.registry import engine_of
from cycletime.paper.experiments import Experiment, Size, study_of
from cycletime.runs.machine import cores
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import TASKS
from cycletime.studies.plan.plan import Plan, agent_steps_of
from cycletime.studies.spec.study import Study

PPO_STEP_S, PPO_INNER_S, PPO_GRADIENT_S = 13e-6, 0.17e-6, 18e-6
"""Of an agent step of PPO with the ten times that its sample is learned from, of each environment step in it, and of a
gradient step."""
SAC_STEP_S = 6e-3
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
    here_s: float = 0.0
    """About, with all cores of this machine."""
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
    # A program takes as long for each of its lanes, however many: to find how many fit takes longer than all else here.
    there = Plan.of(replace(study, device="gpu", width=1))
    more, there_s = 1 + again / len(here.runs), _wall_s(there, _h200_cost)
    return Extent(
        len(here.runs) + again,
        (here.simulated_h or 0.0) * more,
        tuple(sorted({TASKS[world.name].where for world in study.worlds})),
        tuple(sorted(there.engines())),
        (_wall_s(here, core_cost) or 0.0) * more / min(cores(), len(here.runs)),
        None if there_s is None else there_s * more,
    )


def core_cost(spec: RunSpec) -> Cost:
    """What a run takes on one core."""
    if not isinstance(spec.agent, PPOAgent):
        return Cost(SAC_STEP_S, COMPILE_S)
    assert spec.world.env_dt is not None, "the paper's tasks have one"
    inner_s = PPO_INNER_S * cycle_steps(spec.dt, spec.world.env_dt)
    gradient_steps = spec.agent.epochs * ceil(spec.agent.batch / spec.agent.minibatch) / spec.agent.batch
    return Cost(PPO_STEP_S + inner_s + PPO_GRADIENT_S * gradient_steps, COMPILE_S)


def _h200_cost(spec: RunSpec) -> Cost | None:
    """Not known of PPO on the robot's task, which no kernel has."""
    return engine_of(spec).known_cost(spec)


def _wall_s(plan: Plan, cost_of: Callable[[RunSpec], Cost | None]) -> float | None:
    """The seconds of all runs and programs, one after the other but for what is trained together."""
    costs, total_s = list[Cost](), 0.0
    for cell in plan.cells:
        if (cost := cost_of(cell.run(plan.study.seeds[0]))) is None:
            return None
        costs.append(cost)
    for group in plan.groups().values():
        first = group[0].cell
        together = max(costs[first].runs_at_once, plan.cells[first].engine.width)
        runs_s = sum(
            count * agent_steps_of(plan.cells[cell]) * costs[cell].agent_step_s
            for cell, count in Counter(planned.cell for planned in group).items()
        )
        total_s += costs[first].program_s + runs_s / len(group) * max(1.0, len(group) / together)
    return total_s


def _sum(one: Extent, other: Extent) -> Extent:
    return Extent(
        one.runs + other.runs,
        one.simulated_h + other.simulated_h,
        tuple(sorted({*one.where, *other.where})),
        tuple(sorted({*one.engines, *other.engines})),
        one.here_s + other.here_s,
        None if one.h200_s is None or other.h200_s is None else one.h200_s + other.h200_s,
    )
