"""`cycletime experiment`: investigations, the paper's and the search for the rule 'horizons', and what came of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional, TypeAlias

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, arg, subcommand

from cycletime.cli.options import NO_NAMES, Count, NameListOption, Real
from cycletime.cli.output import format_columns
from cycletime.cli.study import WorkerOptions
from cycletime.errors import InputError, unknown_name_error

if TYPE_CHECKING:
    from cycletime.experiments.horizons.candidates import Algorithm
    from cycletime.experiments.horizons.results import Evidence, Stage
    from cycletime.experiments.paper.data import PaperResults
    from cycletime.experiments.paper.experiments import Experiment, Size
    from cycletime.experiments.running import ExperimentRow, Workspace
    from cycletime.studies.study_folder import RunState

_STAGES: tuple[Stage, ...] = ("tuning", "search", "trial-tuning", "trial")
_HORIZONS_STAGES: dict[str, tuple[Stage, Algorithm]] = {
    **{stage: (stage, "ppo") for stage in _STAGES},
    **{f"sac-{stage}": (stage, "sac") for stage in _STAGES},
}
"""By name, the stages of horizons."""
_HORIZONS_TABLES: dict[str, Algorithm] = {"search": "ppo", "sac-search": "sac"}

InvestigationName: TypeAlias = Annotated[Positional[Literal["paper", "horizons"]], arg(metavar="INVESTIGATION")]


@dataclass(frozen=True, kw_only=True)
class Investigated:
    """Which investigation."""

    investigation: InvestigationName
    """paper: the paper's experiments. horizons: the search for a rule that keeps horizons in seconds, and its trial."""

    @property
    def is_paper(self) -> bool:
        return self.investigation == "paper"

    def refuse(self, instead: str) -> InputError:
        """The refusal of what an investigation does not have."""
        return InputError(f"INVESTIGATION is {self.investigation!r}, which has none of these: {instead}.")


@dataclass(frozen=True, kw_only=True)
class ResultsOptions(Investigated):
    """Where results are read from."""

    results: Annotated[
        Optional[Path],  # noqa: UP045
        arg(metavar="FOLDER", help_behavior_hint="(default: those that come with cycletime)"),
    ] = None
    """Results, as 'cycletime experiment collect' keeps them."""

    @property
    def results_folder(self) -> Path:
        from cycletime.experiments.results import results_folder

        return results_folder(self.investigation) if self.results is None else self.results

    def paper_results(self) -> PaperResults:
        """All that there is; nothing where no results come with the code."""
        from cycletime.experiments.paper.data import PaperResults
        from cycletime.experiments.results import read_results

        if self.results is None and not self.results_folder.is_dir():
            return PaperResults({})
        return read_results(self.results_folder)

    def evidence(self, algorithm: Algorithm) -> Evidence:
        """What horizons found for an algorithm."""
        from cycletime.experiments.horizons.results import Evidence

        return Evidence(self.results_folder, algorithm)


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """How much of experiments."""

    seeds: Annotated[Count, arg(help_behavior_hint="(default: the study's own)")] = None
    """Runs of each point: 30, but for 10 of pendulum-grid and sac-robot, and 5 of PPO on the robot."""
    fresh_seeds: Annotated[Count, arg(help_behavior_hint="(default: as many as of the sweep)")] = None
    """Runs of each winner of a sweep."""
    scale: Real = 1.0
    """The share of the paper's environment steps; results that are scaled down are labelled so."""

    @property
    def size(self) -> Size:
        from cycletime.experiments.paper.experiments import Size

        return Size(self.scale, self.seeds, self.fresh_seeds)


@dataclass(frozen=True, kw_only=True)
class ExperimentSelection(SizeOptions, ResultsOptions):
    """Which experiments, how much of them, where they are kept, and what computes them."""

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="NAME ...", help_behavior_hint="(required, or --all)")]
    """Experiments, as 'cycletime experiment list' has them; of horizons one stage: tuning; search, which needs tuning's
    results; trial-tuning, which needs the preregistration; trial, which needs the results of that too; or one of SAC's,
    such as sac-tuning."""
    all: bool = False
    """All of them."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("paper")
    """Where their studies are kept, each in a folder of its own."""
    engine: Annotated[str, arg(metavar="ENGINE")] = "auto"
    """The engine: compiled, cuda, or auto for the fastest that takes a run on the device."""

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        from cycletime.experiments.paper.experiments import EXPERIMENTS, find_experiments

        if self.all == bool(self.names):
            raise InputError(
                "Give either the names of experiments or --all: 'cycletime experiment list paper' has them."
            )
        return find_experiments(EXPERIMENTS if self.all else self.names)

    def workspace(self, device: Literal["cpu", "gpu"], *, change_engine: bool = False) -> Workspace:
        from cycletime.experiments.running import Workspace

        return Workspace(out=self.out, size=self.size, device=device, engine=self.engine, change_engine=change_engine)


@dataclass(frozen=True, kw_only=True)
class ListExperiments(ResultsOptions, SizeOptions):
    """List the experiments: how large they are, how long they take, and whether results are at hand."""

    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        from cycletime.experiments.running import experiment_rows

        if not self.is_paper:
            raise self.refuse(f"its stages are {', '.join(_HORIZONS_STAGES)}")
        found = experiment_rows(self.paper_results(), self.size)
        if self.json:
            from json import dumps

            print(dumps([asdict(row) for row in found], indent=2))
        else:
            _print_list(found)
        return 0


def _print_list(found: list[ExperimentRow]) -> None:
    from cycletime.reports.formatting import join_words
    from cycletime.studies.hardware_estimates import CORE_COUNTS

    head = ("experiment", "runs", f"{CORE_COUNTS[0]} cores", *map(str, CORE_COUNTS[1:]), "H200", "results")
    times_s = [[*row.cores_s.values(), row.h200_s or 0.0] for row in found]
    in_all = _size_cells(sum(row.runs for row in found), *map(sum, zip(*times_s, strict=True)))
    table = [head, *map(_list_row, found), ("all", *in_all, "")]
    print("\n".join(format_columns(table, right=range(1, len(head) - 1))), end="\n\n")
    print(
        f"{CORE_COUNTS[0]} cores, {', '.join(map(str, CORE_COUNTS[1:]))}: about, if they are like an AMD "
        f"EPYC's and idle."
    )
    engines = " or ".join(sorted({engine for row in found for engine in row.engines}))
    print(f"H200: about, on one such GPU, with the engine {engines}.")
    robot = [row.name for row in found if "simulated robot" in row.where]
    print(f"{join_words(robot)} are on a simulated robot.")
    print("'cycletime experiment run paper NAME' runs an experiment.")


def _list_row(row: ExperimentRow) -> tuple[str, ...]:
    return (row.name, *_size_cells(row.runs, *row.cores_s.values(), row.h200_s), row.results)


def _size_cells(runs: int, *times_s: float | None) -> tuple[str, ...]:
    return (f"{runs:,}", *("" if each is None else _spelled_time(each) for each in times_s))


def _spelled_time(seconds: float) -> str:
    from cycletime.studies.progress import format_seconds

    return f"{seconds / 86400:.0f} days" if seconds >= 2 * 86400 else format_seconds(seconds)


@dataclass(frozen=True, kw_only=True)
class RunExperiments(WorkerOptions, ExperimentSelection):
    """Run experiments, or continue them: what is done already is not run again."""

    device: Literal["cpu", "gpu"] = "cpu"
    """Where they are computed."""

    def run(self) -> int:
        """Run what is left; status 1 if some runs failed."""
        from cycletime.cli.run_options import print_status
        from cycletime.experiments.running import run_experiment
        from cycletime.studies.progress import StudyProgress
        from cycletime.training.process import stopping

        if not self.is_paper:
            raise self.refuse("its stages are packed for a GPU by 'cycletime experiment pack horizons STAGE'")
        chosen, workspace = self.experiments, self.workspace(self.device, change_engine=self.change_engine)
        all_done = True
        with stopping() as stopper:
            for experiment in chosen:
                all_done &= run_experiment(
                    experiment,
                    workspace,
                    lambda: self.executor_for(self.device),
                    observer=lambda executor: StudyProgress(executor.workers),
                    tell=self._print,
                    stop=stopper,
                )
                if stopper():
                    print_status("Stopped. The same command goes on with it.")
                    return stopper.status
        print(f"To keep what came of it: cycletime experiment collect paper {self.out}")
        return 0 if all_done else 1

    def _print(self, study: str, counts: Counter[RunState]) -> None:
        from cycletime.experiments.paper.experiments import scale_label
        from cycletime.studies.study_folder import format_states

        print(f"{study}{scale_label(self.scale)}: {format_states(counts)}", flush=True)
        if counts["failed"]:
            print(f"  'cycletime study status {self.out / study}' says why, and 'study retry' has them tried again")


@dataclass(frozen=True, kw_only=True)
class PackExperiments(ExperimentSelection):
    """Pack what is not done yet of experiments, for a machine that has JAX and NumPy, and for the engine cuda CuPy."""

    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as pack.zip."""
    device: Literal["cpu", "gpu"] = "gpu"
    """Where they are computed."""

    def run(self) -> int:
        if self.is_paper:
            self._pack_paper()
        else:
            self._pack_stage()
        return 0

    def _pack_paper(self) -> None:
        from cycletime.cli.study import print_packed
        from cycletime.experiments.running import pending_studies
        from cycletime.studies.pack import pack_studies

        workspace = self.workspace(self.device)
        ready, later = pending_studies(self.experiments, workspace)
        for part, sweep in later.items():
            print(
                f"{part} is not in it: it needs all runs of {sweep}, so bring them to {workspace.out} and pack again."
            )
        if not ready:
            raise InputError(f"There is nothing to pack: all that can be run is done in {workspace.out}.")
        keeps = [experiment.keep for experiment in ready.values()]
        studies = [workspace.study(part) for part in ready]
        print_packed(pack_studies(studies, self.output, keeps=keeps, in_folders=True), self.output)
        print(f"Then bring OUT back as {workspace.out}, and: cycletime experiment collect paper {workspace.out}")

    def _pack_stage(self) -> None:
        from cycletime.cli.study import print_packed
        from cycletime.experiments.horizons.results import stage_studies
        from cycletime.studies.pack import pack_studies

        if len(self.names) != 1:
            raise InputError(f"A pack of horizons has one stage: give one of {', '.join(_HORIZONS_STAGES)}.")
        (name,) = self.names
        if name not in _HORIZONS_STAGES:
            raise unknown_name_error(name, "a stage of horizons", _HORIZONS_STAGES)
        stage, algorithm = _HORIZONS_STAGES[name]
        studies = stage_studies(stage, self.results_folder, algorithm)
        print_packed(pack_studies(studies, self.output, in_folders=True), self.output)
        print("Then bring OUT back, and: cycletime experiment collect horizons OUT")


@dataclass(frozen=True, kw_only=True)
class CollectResults(Investigated):
    """Keep what came of finished studies, small enough to go with the code; of the paper also what policies do."""

    out: Annotated[Positional[Path], arg(metavar="OUT")]
    """The folder that 'cycletime experiment run' or a pack filled."""
    results: Annotated[
        Optional[Path],  # noqa: UP045
        arg(metavar="FOLDER", help_behavior_hint="(default: OUT/results; of horizons those that come with cycletime)"),
    ] = None
    """Where results are kept, one file for each study."""
    wall: Annotated[NameListOption, arg(metavar="STUDY=SECONDS ...")] = NO_NAMES
    """How long studies took, where it was not written down."""
    clips: bool = False
    """Film median runs of the paper at 4 ms, too; that takes the extra 'film'."""

    def run(self) -> int:
        from cycletime.training.machine import prepare_jax

        prepare_jax("cpu")
        from cycletime.experiments.results import collect_results

        if not self.is_paper:
            return self._collect_stages()
        results = self.results or self.out / "results"
        collected = collect_results(self.out, results, _parse_wall_times(self.wall), clips=self.clips)
        for path in collected.kept:
            print(f"{path}, {path.stat().st_size / 1024:,.0f} KiB")
        for name, (done, of) in collected.unfinished.items():
            print(f"{name} is not finished and was left out: {done:,} of {of:,} runs are done")
        if collected.kept:
            print(f"To see what they say: cycletime experiment report paper --results {results}")
        return 0

    def _collect_stages(self) -> int:
        from cycletime.experiments.horizons.results import collect_stages
        from cycletime.experiments.results import results_folder

        if self.wall or self.clips:
            raise self.refuse("leave out --wall and --clips, which are for the paper")
        for path in collect_stages(self.out, self.results or results_folder("horizons")):
            print(f"{path}, {path.stat().st_size / 1024:,.0f} KiB")
        return 0


def _parse_wall_times(walls: NameListOption) -> dict[str, float]:
    found = {}
    for each in walls:
        name, _, value = each.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = -1.0
        if not found[name] > 0:
            raise InputError(f"--wall is {each!r}: give it as STUDY=SECONDS, such as ppo-grid=215.")
    return found


@dataclass(frozen=True, kw_only=True)
class Preregister(ResultsOptions):
    """Write the list of candidates that go to the trial, with what is predicted of them."""

    algorithm: Annotated[Positional[Literal["ppo", "sac"]], arg(metavar="ALGORITHM")] = "ppo"
    """Whose candidates: ppo or sac."""

    def run(self) -> int:
        from cycletime.experiments.horizons.preregistration import chosen_candidates, write_preregistration

        if self.is_paper:
            raise self.refuse("the criteria of the paper's claims stand in the code since before the runs")
        comparison = self.evidence(self.algorithm).search
        for name, why in chosen_candidates(comparison).items():
            print(f"{name}: {why}")
        print(write_preregistration(comparison, self.results_folder))
        return 0


@dataclass(frozen=True, kw_only=True)
class PrintVerdicts(ResultsOptions):
    """Judge the paper's claims, or the trial's candidates and what was predicted of them, by the results at hand."""

    algorithm: Annotated[Positional[Literal["ppo", "sac"]], arg(metavar="ALGORITHM")] = "ppo"
    """Whose trial, of horizons: ppo or sac."""
    json: bool = False
    """Print JSON: a list with an object for each claim of the paper."""

    def run(self) -> int:
        if self.is_paper:
            self._print_claims()
        else:
            self._print_trial()
        return 0

    def _print_claims(self) -> None:
        from cycletime.experiments.claims import claims_as_json
        from cycletime.experiments.paper.claims import CLAIMS
        from cycletime.experiments.paper.report import claims_text

        data = self.paper_results()
        if self.json:
            from json import dumps

            print(dumps(claims_as_json(CLAIMS, data), indent=2, allow_nan=False))
        else:
            print(claims_text(data), end="")

    def _print_trial(self) -> None:
        from cycletime.experiments.horizons.verdicts import ranking_text, verdicts_text

        if self.json:
            raise self.refuse("leave out --json, which is for the paper")
        evidence = self.evidence(self.algorithm)
        print(ranking_text(evidence.trial.comparison))
        print(verdicts_text(evidence.trial, evidence.predictions))


@dataclass(frozen=True, kw_only=True)
class PrintTable(ResultsOptions):
    """Print a table: values that were tuned, the paper's beside ours, or how the rules of a search compare."""

    name: Annotated[Positional[str], arg(metavar="TABLE")]
    """Of the paper ppo-tuned or sac-tuned; of horizons search or sac-search."""
    json: bool = False
    """Print JSON; of the paper's tables."""

    def run(self) -> int:
        if not self.is_paper:
            return self._print_ranking()
        from cycletime.experiments.paper.report import find_table

        table = find_table(self.paper_results(), self.name)
        if self.json:
            from json import dumps

            print(dumps(table.as_json(), indent=2, allow_nan=False))
        else:
            print(table.as_markdown().rstrip())
        return 0

    def _print_ranking(self) -> int:
        from cycletime.experiments.horizons.verdicts import ranking_text

        if self.name not in _HORIZONS_TABLES:
            raise unknown_name_error(self.name, "a table of horizons", _HORIZONS_TABLES)
        if self.json:
            raise self.refuse("leave out --json, which is for the paper")
        print(ranking_text(self.evidence(_HORIZONS_TABLES[self.name]).search))
        return 0


@dataclass(frozen=True, kw_only=True)
class DrawFigures(ResultsOptions):
    """Draw the figures for which there are results, each as PDF, SVG and PNG."""

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="FIGURE ...", help_behavior_hint="(default: all)")]
    """The figures."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("paper-figures")
    """Where they go."""

    def run(self) -> int:
        """Draw them; status 1 if one that was asked for has no results."""
        from cycletime.experiments.paper.figures import missing_figures, save_figures

        if not self.is_paper:
            raise self.refuse("'cycletime experiment report horizons' draws its figures")
        data = self.paper_results()
        paths = save_figures(data, self.out, self.names)
        stems = dict.fromkeys(path.stem for path in paths)
        count = "1 figure" if len(stems) == 1 else f"{len(stems)} figures"
        print(f"{count} in {self.out}" + (f": {', '.join(stems)}" if stems else ""))
        missing = {name: needs for name, needs in missing_figures(data).items() if name in (self.names or (name,))}
        for name, needs in missing.items():
            print(f"{name}: not run ({needs})")
        return 1 if self.names and missing else 0


@dataclass(frozen=True, kw_only=True)
class WriteReport(ResultsOptions):
    """Make all figures, tables and verdicts again, without training and without a GPU."""

    out: Annotated[
        Optional[Path],  # noqa: UP045
        arg(metavar="PATH", help_behavior_hint="(default: paper-report; of horizons docs/horizons.md)"),
    ] = None
    """Of the paper the folder for report.html, figures/, tables/, claims.json and index.md; of horizons the page whose
    parts between <!-- made: NAME --> and <!-- end --> are made, with its figures in figures/horizons beside it."""

    def run(self) -> int:
        if self.is_paper:
            self._write_paper(self.out or Path("paper-report"))
        else:
            self._write_horizons(self.out or Path("docs/horizons.md"))
        return 0

    def _write_paper(self, out: Path) -> None:
        from cycletime.experiments.paper.report import write_report

        data = self.paper_results()
        write_report(data, out, self.results_folder)
        count = len(data.outcomes)
        studies = "1 study" if count == 1 else f"{count} studies"
        print(f"Figures, tables and verdicts from {studies} are in {out}: open report.html in a browser")

    def _write_horizons(self, page: Path) -> None:
        from cycletime.experiments.horizons.page import write_page
        from cycletime.experiments.horizons.results import all_evidence

        for path in write_page(page, all_evidence(self.results_folder)):
            print(path)


@dataclass(frozen=True)
class ExperimentCommand:
    """Run investigations, the paper's experiments and the search for the rule 'horizons', and see what came of them."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[ListExperiments, subcommand("list")]
            | Annotated[RunExperiments, subcommand("run")]
            | Annotated[PackExperiments, subcommand("pack")]
            | Annotated[CollectResults, subcommand("collect")]
            | Annotated[Preregister, subcommand("preregister")]
            | Annotated[PrintVerdicts, subcommand("verdicts")]
            | Annotated[PrintTable, subcommand("table")]
            | Annotated[DrawFigures, subcommand("figures")]
            | Annotated[WriteReport, subcommand("report")]
        ]
    ]
