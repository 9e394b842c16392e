"""`cycletime study`: many runs from one file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Optional

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, arg, subcommand

from cycletime.cli.options import NO_NAMES, Count, NameListOption, Rate, Text
from cycletime.cli.output import print_status
from cycletime.cli.report import ReportCommand
from cycletime.errors import InputError, printable

if TYPE_CHECKING:
    from cycletime.studies.plan import Plan, PlannedRun
    from cycletime.studies.worker_pool import Executor


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    executor: Annotated[str, arg(metavar="EXECUTOR")] = "local"
    """Where workers run: local, ray or slurm."""
    workers: Annotated[Count, arg(help_behavior_hint="(default: one for each core, or for each GPU)")] = None
    """Processes, tasks or jobs at a time."""
    address: Annotated[Text, arg(metavar="ADDRESS", help_behavior_hint="(default: a cluster on this machine)")] = None
    """Ray's cluster: auto, HOST:PORT or ray://HOST:PORT."""
    gpus: Annotated[Rate, arg(help_behavior_hint="(default: none, or 1 where the study is for GPUs)")] = None
    """GPUs for each task on Ray; 0.25 lets four share one."""
    partition: Annotated[Text, arg(metavar="NAME", help_behavior_hint="(default: Slurm's)")] = None
    """Slurm's partition."""
    minutes: Annotated[Count, arg(help_behavior_hint="(default: the executor's)")] = None
    """How long a Slurm job may take until it goes back into the queue."""
    cpus: Annotated[Count, arg(help_behavior_hint="(default: the executor's)")] = None
    """CPUs of a Slurm job."""
    memory_gb: Annotated[Count, arg(help_behavior_hint="(default: the executor's)")] = None
    """Memory of a Slurm job."""
    gres: Annotated[Text, arg(metavar="GRES", help_behavior_hint="(default: none)")] = None
    """Slurm's generic resources, such as gpu:1."""
    sbatch: Annotated[NameListOption, arg(metavar="NAME=VALUE ...")] = NO_NAMES
    """Further options of sbatch, such as account=lab."""

    def executor_for(self, device: str) -> Executor:
        from cycletime.studies.executors import OPTIONS, make_executor

        own = {name: getattr(self, name) for names in OPTIONS.values() for name in names}
        return make_executor(self.executor, device, self.workers, **own)


@dataclass(frozen=True, kw_only=True)
class RunStudy(WorkerOptions):
    """Run a study, or continue it: what is done already is not run again."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """The study, a TOML file."""
    out: Annotated[Path, arg(metavar="FOLDER")]
    """Where the study is kept."""

    def run(self) -> int:
        """Run what is left; status 1 if some runs failed."""
        from cycletime.studies.hardware_estimates import check_start
        from cycletime.studies.progress import StudyProgress
        from cycletime.studies.spec_file import read_study
        from cycletime.studies.study_folder import StudyFolder, format_states
        from cycletime.studies.worker_pool import run_study
        from cycletime.training.process import stopping

        study = read_study(self.file)
        executor = self.executor_for(study.device)
        check_start(study.cells(), self.out, self.executor, print_status)
        folder = StudyFolder.create(self.out, study)
        with stopping() as stopper:
            counts = run_study(folder, executor, observers=[StudyProgress(executor.workers)], stop=stopper)
        for sentence in folder.damage():
            print_status(sentence)
        print(f"{folder.study.name}: {format_states(counts, folder.path)}")
        if others := len(folder.store.places) - counts["done"]:
            print_status(f"{self.out} has {others:,} more finished, of another plan: they stay, in no report.")
        if stopper():
            print_status("Stopped. The same command goes on with it.")
            return stopper.status
        return 1 if counts["failed"] else 0


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
        from cycletime.studies.executors import check_workers
        from cycletime.studies.plan import Plan
        from cycletime.studies.spec_file import read_study
        from cycletime.studies.study_folder import StudyFolder, format_states

        check_workers(self.workers)
        begun = StudyFolder.open(self.out) if self.out is not None and (self.out / "study.json").exists() else None
        study = read_study(self.file).resolved(begun.study if begun else None)
        plan = Plan.of(study)
        left = plan.runs
        _print_size(plan)
        if begun is not None:
            states = begun.states(planned.name for planned in plan.runs)
            print(f"  {format_states(Counter(states.values()), begun.path)}")
            left = begun.runs_left(plan, states)
        elif self.out is not None:
            print(f"  there is no study in {printable(str(self.out))} yet")
        # Planning tries no foreign code, such as that of 'module:Name-v0'.
        foreign = [world.name for world in plan.study.worlds if ":" in world.name]
        tried = tuple(planned for planned in left if plan.cells[planned.cell].world.name not in foreign)
        if tried and not self.no_calibration:
            _print_estimate(plan, tried, self.workers)
        for name in foreign:
            unchecked = "no estimate, and whether it can start and its time step fits dts and env_dt, is not checked"
            print(f"{name}: its module was not imported: {unchecked} (study run does, before there is a folder)")
        return 0


def _print_size(plan: Plan) -> None:
    from cycletime.studies.progress import format_groups, format_runs

    study = plan.study
    hours = "" if plan.simulated_h is None else f", {plan.simulated_h:,.2f} simulated hours"
    print(f"{study.name}: {format_groups(plan)}\n  {plan.env_steps:,} environment steps{hours}")
    print(f"  {', '.join(f'{format_runs(count)} by the engine {name}' for name, count in plan.engines().items())}")
    if (study.width or 1) > 1:
        print(f"  up to {study.width:,} runs of a group side by side in one program, on the {study.device}")
    shared = len(plan.cells) * len(study.seeds) - len(plan.runs)
    if shared:
        print(f"  {shared:,} more, the same as others since their rules agree, run once with them")
    for note in plan.notes():
        print(f"  {note}")


def _print_estimate(plan: Plan, left: tuple[PlannedRun, ...], given_workers: int | None) -> None:
    from cycletime.studies.executors import make_executor
    from cycletime.studies.hardware_estimates import estimate_wall_time, measure_costs
    from cycletime.studies.progress import format_seconds
    from cycletime.training.machine import processor

    workers = make_executor("local", plan.study.device, given_workers).workers
    costs, start_s = measure_costs(plan, left)
    for (task, algorithm, _), cost in costs.items():
        runs = max(cost.runs_at_once, plan.study.width or 1)
        of_all = f" of {runs:,} runs" if runs > 1 else ""
        where = f" on {cost.where}" if cost.where else ""
        print(
            f"  {task} {algorithm}: {cost.agent_step_s * 1e6:,.1f} µs an agent step{of_all}, {cost.program_s:,.1f} s "
            f"until a program is ready{where}"
        )
    estimate = estimate_wall_time(plan, left, costs, start_s, workers)
    count = len(plan.groups(left))
    programs = f"{count:,} program{'' if count == 1 else 's'}"
    elsewhere = sorted({cost.where for cost in costs.values() if cost.where})
    print(
        f"about {format_seconds(estimate.wall_s)} with {workers} worker{'' if workers == 1 else 's'}: in all "
        f"{format_seconds(estimate.computing_s)} of computing and {format_seconds(estimate.programs_s)} for {programs}"
    )
    if elsewhere:
        print(f"  on {' and '.join(elsewhere)}, which is not here")
    else:
        print(f"  tried just now on {processor()}; busy cores make it longer, programs on the disk shorter")


@dataclass(frozen=True, kw_only=True)
class StudyOption:
    folder: Annotated[Positional[Path], arg(metavar="STUDY")]
    """The study's folder."""


@dataclass(frozen=True, kw_only=True)
class StudyStatus(StudyOption):
    """Print how many runs of a study are done, running, failed, stopped or pending, and what went wrong."""

    runs: bool = False
    """Print the name and the state of every run; STUDY/runs/NAME is what 'watch', 'evaluate' and 'export' take."""
    tracebacks: bool = False
    """Print where in the code runs failed, too."""

    def run(self) -> int:
        """Print it; status 1 if some runs failed, or files are damaged."""
        from cycletime.studies.plan import Plan
        from cycletime.studies.study_folder import StudyFolder, format_states

        folder = StudyFolder.open(self.folder)
        states = folder.states(planned.name for planned in Plan.of(folder.study).runs)
        counts = Counter(states.values())
        print(f"{folder.study.name}: {format_states(counts)}")
        if counts["failed"]:
            print("  'study retry' has those that failed tried again")
        for name, state in states.items():
            if state == "failed":
                last = folder.failures(name).last
                print(f"  {name}: {printable(str(last.get('error')))}")
                if self.tracebacks and last.get("traceback"):
                    print(indent(printable(str(last["traceback"]).rstrip()), "    "))
            elif self.runs:
                print(f"  {name}: {state}")
        damage = folder.damage()
        for sentence in damage:
            print(printable(f"  {sentence}"))
        return 1 if counts["failed"] or damage else 0


@dataclass(frozen=True, kw_only=True)
class RetryStudy(StudyOption):
    """Forget what went wrong, so that the next 'study run' tries again; what is done stays."""

    def run(self) -> int:
        from cycletime.studies.study_folder import StudyFolder, damaged_runs, move_aside

        folder = StudyFolder.open(self.folder)
        begun = [path.name for path in folder.runs.iterdir()]
        failed = [name for name in begun if folder.failures(name).file.exists() and name not in folder.store]
        for name in failed:
            folder.failures(name).forget()
        for path, wrong in damaged_runs(folder, failed):
            print(printable(f"  {wrong}; it begins anew, and what there was is now {move_aside(folder, path)}"))
        print(f"{folder.study.name}: {len(failed):,} run{'' if len(failed) == 1 else 's'} to be tried again")
        return 0


@dataclass(frozen=True, kw_only=True)
class VerifyStudy(StudyOption):
    """Read every run completely, and report what is damaged."""

    repair: bool = False
    """Move what is damaged to STUDY/damaged, so that the next 'study run' runs those runs again."""

    def run(self) -> int:
        """Print what is damaged; status 1 if anything is."""
        from cycletime.studies.study_folder import StudyFolder, damaged_runs, move_aside

        folder = StudyFolder.open(self.folder).checked()
        files, runs, disputes = folder.store.damaged, dict(damaged_runs(folder)), folder.disputes()
        good = len(folder.store.places)
        for path, wrong in {**files, **runs}.items():
            aside = f"; it is now {move_aside(folder, path)}" if self.repair else ""
            print(printable(f"  {path}: {wrong}{aside}"))
        for dispute in disputes:
            print(printable(f"  {dispute}"))
        unfinished = f", {len(runs):,} unfinished runs that cannot go on" if runs else ""
        damaged = "1 file" if len(files) == 1 else f"{len(files):,} files"
        print(f"{folder.study.name}: {good:,} runs good, {damaged} damaged{unfinished}")
        return 1 if files or runs or disputes else 0


@dataclass(frozen=True, kw_only=True)
class ExportStudy(StudyOption):
    """Write all learning curves into one tidy table: task, algorithm, rule, dt, seed, env_step, seconds, return."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """The table; its name ends with .parquet or .csv."""
    bins: Annotated[Count, arg(help_behavior_hint="(default: a row for each episode)")] = None
    """How many equal bins of environment steps, each with its mean return."""

    def run(self) -> int:
        """Write it; status 1 if some runs are missing in it, since their files are damaged."""
        from cycletime.studies.curve_export import export_curves
        from cycletime.studies.study_folder import StudyFolder

        folder = StudyFolder.open(self.folder).checked()
        runs, rows = export_curves(folder, self.file, self.bins)
        damage = folder.damage()
        for sentence in damage:
            print(printable(f"  {sentence}"))
        print(f"{folder.study.name}: {rows:,} rows of {runs:,} runs in {printable(str(self.file))}")
        return 1 if damage else 0


@dataclass(frozen=True, kw_only=True)
class PackStudy:
    """Pack studies, and the code that they need, for a machine that has JAX and NumPy, and for the engine cuda CuPy."""

    files: Annotated[Positional[tuple[Path, ...]], arg(metavar="FILE ...", help_behavior_hint="(required)")]
    """The study, a TOML file; or several, which run one after the other, each in a folder of OUT."""
    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as pack.zip."""
    packages: Annotated[Text, arg(metavar="FOLDER")] = None
    """A folder of modules and scripts that the studies' trainers need there; 64 MiB in all."""

    def run(self) -> int:
        if self.output.is_dir() or not self.output.parent.is_dir():
            what = "is a folder" if self.output.is_dir() else "is in a folder that is not there"
            raise InputError(f"{str(self.output)!r} {what}: give the name of a file, such as pack.zip.")
        from cycletime.studies.pack import pack_studies
        from cycletime.studies.spec_file import read_study

        if not self.files:
            raise InputError("There is nothing to pack: give the file of a study.")
        packages = None if self.packages is None else Path(self.packages)
        studies = [read_study(file) for file in self.files]
        print_packed(pack_studies(studies, self.output, packages=packages), self.output)
        return 0


def print_packed(packed: Counter[str], file: Path) -> None:
    size = file.stat().st_size / 2**20
    engines = " and ".join(sorted(packed))
    print(f"{packed.total():,} runs of the engine {engines} in {printable(str(file))}, {size:,.1f} MiB.")
    print(f"There: python {printable(file.name)} OUT")


@dataclass(frozen=True)
class StudyCommand:
    """Run many trainings from one file, and judge them."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[RunStudy, subcommand("run")]
            | Annotated[PlanStudy, subcommand("plan")]
            | Annotated[StudyStatus, subcommand("status")]
            | Annotated[RetryStudy, subcommand("retry")]
            | Annotated[VerifyStudy, subcommand("verify")]
            | Annotated[ExportStudy, subcommand("export")]
            | Annotated[PackStudy, subcommand("pack")]
            | Annotated[ReportCommand, subcommand("report")]
        ]
    ]
