"""`cycletime study plan`: what a study has to do, and how long that takes here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

from tyro.conf import Positional, arg

from cycletime.cli.options import Count
from cycletime.errors import InputError, printable

if TYPE_CHECKING:
    from cycletime.studies.plan.plan import Plan, Planned


@dataclass(frozen=True, kw_only=True)
class PlanStudy:
    """Print how many runs a study has, how many simulated hours, and how long they take on this machine."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """The study, a TOML file."""
    out: Annotated[Optional[Path], arg(metavar="FOLDER", help_behavior_hint="(default: nothing is done)")] = None  # noqa: UP045
    """Where the study is kept, to see what is done already."""
    workers: Annotated[Count, arg(help_behavior_hint="(default: one for each core, or for each GPU)")] = None
    """Processes at a time."""
    no_calibration: bool = False
    """Do not try runs to estimate the time."""

    def run(self) -> int:
        """Print it."""
        from cycletime.studies.plan.plan import Plan
        from cycletime.studies.spec.file import read_study
        from cycletime.studies.store.folder import StudyFolder, states_in_words

        if self.workers is not None and self.workers < 1:
            raise InputError(f"--workers is {self.workers}: it must be at least 1.")
        begun = StudyFolder.open(self.out) if self.out is not None and (self.out / "study.json").exists() else None
        study = read_study(self.file).resolved(begun.study if begun else None)
        plan = Plan.of(study)
        left = plan.runs
        _print_size(plan)
        if begun is not None:
            states = begun.states(planned.name for planned in plan.runs)
            print(f"  {states_in_words(Counter(states.values()))}")
            left = tuple(planned for planned in plan.runs if states[planned.name] != "done")
        elif self.out is not None:
            print(f"  there is no study in {printable(str(self.out))} yet")
        if not self.no_calibration and (tried := _that_may_be_tried(plan, left)):
            _print_estimate(plan, tried, self.workers)
        return 0


def _print_size(plan: Plan) -> None:
    from cycletime.studies.running.progress import in_groups

    study = plan.study
    hours = "" if plan.simulated_h is None else f", {plan.simulated_h:,.2f} simulated hours"
    print(f"{study.name}: {in_groups(plan)}\n  {plan.env_steps:,} environment steps{hours}")
    engines = plan.engines().items()
    words = (f"{count:,} run{'' if count == 1 else 's'} by the engine {name}" for name, count in engines)
    print(f"  {', '.join(words)}")
    if (study.width or 1) > 1:
        print(f"  up to {study.width:,} runs of a group side by side in one program, on the {study.device}")
    shared = len(plan.cells) * len(study.seeds) - len(plan.runs)
    if shared:
        print(f"  {shared:,} more are the same as others, since their rules agree, and run once")


def _that_may_be_tried(plan: Plan, left: tuple[Planned, ...]) -> tuple[Planned, ...]:
    """The runs that an estimate is of; the others are named."""
    from cycletime.studies.plan.estimate import may_be_tried

    for world in plan.study.worlds:
        if not may_be_tried(world):
            print(f"  {world.name}: no estimate, since to try it would import its module")
    return tuple(planned for planned in left if may_be_tried(plan.cells[planned.cell].world))


def _print_estimate(plan: Plan, left: tuple[Planned, ...], given_workers: int | None) -> None:
    from cycletime.runs.machine import processor
    from cycletime.studies.executors.choose import ExecutorOptions, executor_for
    from cycletime.studies.plan.elsewhere import CORES
    from cycletime.studies.plan.estimate import calibrate, estimate
    from cycletime.studies.running.progress import spelled

    workers = executor_for("local", ExecutorOptions(workers=given_workers), plan.study.device).workers
    costs, start_s = calibrate(plan, left)
    for (task, algorithm, _), cost in costs.items():
        runs = max(cost.runs_at_once, plan.study.width or 1)
        of_all = f" of {runs:,} runs" if runs > 1 else ""
        where = f" on {cost.where}" if cost.where else ""
        print(
            f"  {task} {algorithm}: {cost.agent_step_s * 1e6:,.1f} µs an agent step{of_all}, {cost.program_s:,.1f} s "
            f"until a program is ready{where}"
        )
    told = estimate(plan, left, costs, start_s, workers)
    count = len(plan.groups(left))
    programs = f"{count:,} program{'' if count == 1 else 's'}"
    elsewhere = sorted({cost.where for cost in costs.values() if cost.where})
    print(
        f"about {spelled(told.wall_s)} with {workers} worker{'' if workers == 1 else 's'}: in all "
        f"{spelled(told.computing_s)} of computing and {spelled(told.programs_s)} for {programs}"
    )
    if elsewhere:
        print(f"  on {' and '.join(elsewhere)}, which is not here")
    else:
        print(f"  tried just now on {processor()}; busy cores make it longer, programs on the disk shorter")
        _print_elsewhere(plan, left, {count: estimate(plan, left, costs, start_s, count).wall_s for count in CORES})


def _print_elsewhere(plan: Plan, left: tuple[Planned, ...], by_cores_s: dict[int, float]) -> None:
    """What other machines would take, so that one sees when to rent one."""
    from cycletime.studies.plan.elsewhere import h200_s
    from cycletime.studies.running.progress import spelled

    if plan.study.device == "cpu":
        words = [f"about {spelled(wall_s)} on {count}" for count, wall_s in by_cores_s.items()]
        print(f"  {', '.join(words[:-1])} and {words[-1]} such cores", end="")
        card_s = h200_s(plan, left)
        print("" if card_s is None else f'; about {spelled(card_s)} on one H200 (device = "gpu")')
