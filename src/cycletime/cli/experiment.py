"""`cycletime paper` and `cycletime horizons`: investigations, and what came of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, arg, subcommand

from cycletime.cli.options import NO_NAMES, Count, NameListOption, Real
from cycletime.cli.output import format_columns
from cycletime.cli.study import WorkerOptions
from cycletime.errors import InputError

if TYPE_CHECKING:
    from cycletime.experiments.paper.data import PaperResults
    from cycletime.experiments.paper.experiments import Experiment, Size
    from cycletime.experiments.running import ExperimentRow, Workspace
    from cycletime.studies.study_folder import RunState


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
        """How much of each."""
        from cycletime.experiments.paper.experiments import Size

        return Size(self.scale, self.seeds, self.fresh_seeds)


@dataclass(frozen=True, kw_only=True)
class ExperimentSelection(SizeOptions):
    """Which experiments, how much of them, where they are kept, and what computes them."""

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="NAME ...", help_behavior_hint="(required, or --all)")]
    """Experiments, as 'cycletime paper list' has them."""
    all: bool = False
    """All of them."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("paper")
    """Where their studies are kept, each in a folder of its own."""
    engine: Annotated[str, arg(metavar="ENGINE")] = "auto"
    """The engine: compiled, cuda, or auto for the fastest that takes a run on the device."""

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        """Those that are asked for."""
        from cycletime.experiments.paper.experiments import EXPERIMENTS, find_experiments

        if self.all == bool(self.names):
            raise InputError("Give either the names of experiments or --all: 'cycletime paper list' has them.")
        return find_experiments(EXPERIMENTS if self.all else self.names)

    def workspace(self, device: Literal["cpu", "gpu"], *, change_engine: bool = False) -> Workspace:
        """Where they are kept, on a device."""
        from cycletime.experiments.running import Workspace

        return Workspace(out=self.out, size=self.size, device=device, engine=self.engine, change_engine=change_engine)


@dataclass(frozen=True, kw_only=True)
class ResultsOptions:
    """Where results are read from."""

    results: Annotated[
        Optional[Path],  # noqa: UP045
        arg(metavar="FOLDER", help_behavior_hint="(default: those that come with cycletime)"),
    ] = None
    """Results, as 'cycletime paper collect' keeps them."""

    @property
    def results_folder(self) -> Path:
        """The folder that is read."""
        from cycletime.experiments.results import results_folder

        return results_folder() if self.results is None else self.results

    def data(self) -> PaperResults:
        """All that there is; nothing where no results come with the code."""
        from cycletime.experiments.paper.data import PaperResults as Data
        from cycletime.experiments.results import read_results

        if self.results is None and not self.results_folder.is_dir():
            return Data({})
        return read_results(self.results_folder)


@dataclass(frozen=True, kw_only=True)
class ListPaper(ResultsOptions, SizeOptions):
    """List the paper's experiments: how large they are, how long they take, and whether results are at hand."""

    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Print them."""
        from cycletime.experiments.running import experiment_rows

        found = experiment_rows(self.data(), self.size)
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
    print("'cycletime paper run NAME' runs an experiment.")


def _list_row(row: ExperimentRow) -> tuple[str, ...]:
    return (row.name, *_size_cells(row.runs, *row.cores_s.values(), row.h200_s), row.results)


def _size_cells(runs: int, *times_s: float | None) -> tuple[str, ...]:
    return (f"{runs:,}", *("" if each is None else _spelled_time(each) for each in times_s))


def _spelled_time(seconds: float) -> str:
    from cycletime.studies.progress import format_seconds

    return f"{seconds / 86400:.0f} days" if seconds >= 2 * 86400 else format_seconds(seconds)


@dataclass(frozen=True, kw_only=True)
class RunPaper(WorkerOptions, ExperimentSelection):
    """Run experiments of the paper, or continue them: what is done already is not run again."""

    device: Literal["cpu", "gpu"] = "cpu"
    """Where they are computed."""

    def run(self) -> int:
        """Run what is left; status 1 if some runs failed."""
        from cycletime.cli.run_options import print_status
        from cycletime.experiments.running import run_experiment
        from cycletime.studies.progress import StudyProgress
        from cycletime.training.process import stopping

        chosen, workspace = self.experiments, self.workspace(self.device, change_engine=self.change_engine)
        all_done = True
        with stopping() as stopper:
            for experiment in chosen:
                all_done &= run_experiment(
                    experiment,
                    workspace,
                    lambda: self.executor_for(self.device),
                    watcher=lambda executor: StudyProgress(executor.workers),
                    tell=self._print,
                    stop=stopper,
                )
                if stopper():
                    print_status("Stopped. The same command goes on with it.")
                    return stopper.status
        print(f"To keep what came of it: cycletime paper collect {self.out}")
        return 0 if all_done else 1

    def _print(self, study: str, counts: Counter[RunState]) -> None:
        from cycletime.experiments.paper.experiments import scale_label
        from cycletime.studies.study_folder import format_states

        print(f"{study}{scale_label(self.scale)}: {format_states(counts)}", flush=True)
        if counts["failed"]:
            print(f"  'cycletime study status {self.out / study}' says why, and 'study retry' has them tried again")


@dataclass(frozen=True, kw_only=True)
class PackPaper(ExperimentSelection):
    """Pack what is not done yet of experiments, for a machine that has JAX and NumPy, and for the engine cuda CuPy."""

    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as pack.zip."""
    device: Literal["cpu", "gpu"] = "gpu"
    """Where they are computed."""

    def run(self) -> int:
        """Write it."""
        from cycletime.cli.study import print_packed
        from cycletime.errors import InputError
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
        print(f"Then bring OUT back as {workspace.out}, and: cycletime paper collect {workspace.out}")
        return 0


@dataclass(frozen=True, kw_only=True)
class CollectPaper:
    """Keep the curves and scores of all finished studies, and measure what their policies do."""

    out: Annotated[Positional[Path], arg(metavar="OUT")]
    """The folder that 'cycletime paper run' filled."""
    results: Annotated[Optional[Path], arg(metavar="FOLDER", help_behavior_hint="(default: OUT/results)")] = None  # noqa: UP045
    """Where results are kept, one file for each study."""
    wall: Annotated[NameListOption, arg(metavar="STUDY=SECONDS ...")] = NO_NAMES
    """How long studies took, where it was not written down."""
    clips: bool = False
    """Film median runs at 4 ms, too; that takes the extra 'film'."""

    def run(self) -> int:
        """Keep them."""
        from cycletime.training.machine import prepare_jax

        prepare_jax("cpu")
        from cycletime.experiments.results import collect_results

        results = self.results or self.out / "results"
        collected = collect_results(self.out, results, _parse_wall_times(self.wall), clips=self.clips)
        for path in collected.kept:
            print(f"{path}, {path.stat().st_size / 1024:,.0f} KiB")
        for name, (done, of) in collected.unfinished.items():
            print(f"{name} is not finished and was left out: {done:,} of {of:,} runs are done")
        if collected.kept:
            print(f"To see what they say: cycletime paper report --results {results}")
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
class PaperClaims(ResultsOptions):
    """Judge the paper's claims by the results at hand."""

    json: bool = False
    """Print JSON: a list with an object for each claim."""

    def run(self) -> int:
        """Print them."""
        from cycletime.experiments.paper.claims import CLAIMS

        data = self.data()
        if self.json:
            from json import dumps

            from cycletime.experiments.claims import claims_as_json

            print(dumps(claims_as_json(CLAIMS, data), indent=2, allow_nan=False))
        else:
            from cycletime.experiments.paper.report import claims_text

            print(claims_text(data), end="")
        return 0


@dataclass(frozen=True, kw_only=True)
class PaperTable(ResultsOptions):
    """Print a table of tuned values, the paper's beside ours."""

    name: Annotated[Positional[str], arg(metavar="TABLE")]
    """ppo-tuned or sac-tuned."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Print it."""
        from cycletime.experiments.paper.report import find_table

        table = find_table(self.data(), self.name)
        if self.json:
            from json import dumps

            print(dumps(table.as_json(), indent=2, allow_nan=False))
        else:
            print(table.as_markdown().rstrip())
        return 0


@dataclass(frozen=True, kw_only=True)
class PaperFigures(ResultsOptions):
    """Draw the figures of the paper for which there are results, each as PDF, SVG and PNG."""

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="FIGURE ...", help_behavior_hint="(default: all)")]
    """The figures."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("paper-figures")
    """Where they go."""

    def run(self) -> int:
        """Draw them; status 1 if one that was asked for has no results."""
        from cycletime.experiments.paper.figures import missing_figures, save_figures

        data = self.data()
        paths = save_figures(data, self.out, self.names)
        stems = dict.fromkeys(path.stem for path in paths)
        count = "1 figure" if len(stems) == 1 else f"{len(stems)} figures"
        print(f"{count} in {self.out}" + (f": {', '.join(stems)}" if stems else ""))
        missing = {name: needs for name, needs in missing_figures(data).items() if name in (self.names or (name,))}
        for name, needs in missing.items():
            print(f"{name}: not run ({needs})")
        return 1 if self.names and missing else 0


@dataclass(frozen=True, kw_only=True)
class PaperReport(ResultsOptions):
    """Make all figures, tables and verdicts again, without training and without a GPU."""

    out: Annotated[Path, arg(metavar="FOLDER")] = Path("paper-report")
    """Where report.html, figures/, tables/, claims.json and index.md go."""

    def run(self) -> int:
        """Write them."""
        from cycletime.experiments.paper.report import write_report

        data = self.data()
        write_report(data, self.out, self.results_folder)
        count = len(data.outcomes)
        studies = "1 study" if count == 1 else f"{count} studies"
        print(f"Figures, tables and verdicts from {studies} are in {self.out}: open report.html in a browser")
        return 0


@dataclass(frozen=True)
class PaperCommand:
    """Run the paper's experiments, and see what came of them."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[ListPaper, subcommand("list")]
            | Annotated[RunPaper, subcommand("run")]
            | Annotated[PackPaper, subcommand("pack")]
            | Annotated[CollectPaper, subcommand("collect")]
            | Annotated[PaperClaims, subcommand("claims")]
            | Annotated[PaperTable, subcommand("table")]
            | Annotated[PaperFigures, subcommand("figures")]
            | Annotated[PaperReport, subcommand("report")]
        ]
    ]


@dataclass(frozen=True, kw_only=True)
class _HorizonsResults:
    """Where results are."""

    results: Annotated[
        Optional[Path],  # noqa: UP045
        arg(metavar="FOLDER", help_behavior_hint="(default: those that come with cycletime)"),
    ] = None
    """Results, as 'cycletime horizons collect' keeps them."""

    @property
    def folder(self) -> Path:
        from cycletime.experiments.results import results_folder

        return results_folder("horizons") if self.results is None else self.results


@dataclass(frozen=True, kw_only=True)
class _AlgorithmResults(_HorizonsResults):
    """Results of an algorithm."""

    algorithm: Annotated[Literal["ppo", "sac"], arg(metavar="ALGORITHM")] = "ppo"
    """Whose rules: ppo or sac."""


@dataclass(frozen=True, kw_only=True)
class PackHorizons(_AlgorithmResults):
    """Pack the studies of a stage for a machine with a GPU that has JAX, NumPy and CuPy."""

    stage: Annotated[Positional[Literal["tuning", "search", "trial-tuning", "trial"]], arg(metavar="STAGE")]
    """tuning; search, which needs tuning's results; trial-tuning, which needs the frozen list; trial, which needs the
    results of that too."""
    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as tuning.zip."""

    def run(self) -> int:
        """Write it."""
        from cycletime.cli.study import print_packed
        from cycletime.experiments.horizons.results import stage_studies
        from cycletime.studies.pack import pack_studies

        studies = stage_studies(self.stage, self.folder, self.algorithm)
        print_packed(pack_studies(studies, self.output, in_folders=True), self.output)
        print("Then bring OUT back, and: cycletime horizons collect OUT")
        return 0


@dataclass(frozen=True, kw_only=True)
class CollectHorizons(_HorizonsResults):
    """Keep what came of studies, small enough to go with the code."""

    out: Annotated[Positional[Path], arg(metavar="OUT")]
    """The folder that a pack filled."""

    def run(self) -> int:
        """Keep it."""
        from cycletime.training.machine import prepare_jax

        prepare_jax("cpu")
        from cycletime.experiments.horizons.results import collect_stages

        for path in collect_stages(self.out, self.folder):
            print(f"{path}, {path.stat().st_size / 1024:,.0f} KiB")
        return 0


@dataclass(frozen=True, kw_only=True)
class RankHorizons(_AlgorithmResults):
    """Print how the rules of the search compare."""

    def run(self) -> int:
        """Print it."""
        from cycletime.experiments.horizons.results import Evidence
        from cycletime.experiments.horizons.verdicts import ranking_text

        print(ranking_text(Evidence(self.folder, self.algorithm).search))
        return 0


@dataclass(frozen=True, kw_only=True)
class FreezeHorizons(_AlgorithmResults):
    """Write the list of candidates that go to the trial, with what is predicted of them."""

    def run(self) -> int:
        """Write it."""
        from cycletime.experiments.horizons.preregistration import chosen_candidates, write_preregistration
        from cycletime.experiments.horizons.results import Evidence

        comparison = Evidence(self.folder, self.algorithm).search
        for name, why in chosen_candidates(comparison).items():
            print(f"{name}: {why}")
        print(write_preregistration(comparison, self.folder))
        return 0


@dataclass(frozen=True, kw_only=True)
class JudgeHorizons(_AlgorithmResults):
    """Print what the trial says of the candidates, and of what was predicted of them."""

    def run(self) -> int:
        """Print it."""
        from cycletime.experiments.horizons.results import Evidence
        from cycletime.experiments.horizons.verdicts import ranking_text as ranking_in_words
        from cycletime.experiments.horizons.verdicts import verdicts_text

        evidence = Evidence(self.folder, self.algorithm)
        print(ranking_in_words(evidence.trial.comparison))
        print(verdicts_text(evidence.trial, evidence.predictions))
        return 0


@dataclass(frozen=True, kw_only=True)
class HorizonsPage(_HorizonsResults):
    """Fill the tables and figures of a page from the results."""

    page: Annotated[Positional[Path], arg(metavar="PAGE")]
    """The page, such as docs/horizons.md, whose parts between <!-- made: NAME --> and <!-- end --> are made; its
    figures go to figures/horizons beside it."""

    def run(self) -> int:
        """Write it."""
        from cycletime.experiments.horizons.page import write_page
        from cycletime.experiments.horizons.results import all_evidence

        for path in write_page(self.page, all_evidence(self.folder)):
            print(path)
        return 0


@dataclass(frozen=True)
class HorizonsCommand:
    """Search for a rule that keeps horizons in seconds, try what was found, and see what came of it."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[PackHorizons, subcommand("pack")]
            | Annotated[CollectHorizons, subcommand("collect")]
            | Annotated[RankHorizons, subcommand("ranking")]
            | Annotated[FreezeHorizons, subcommand("freeze")]
            | Annotated[JudgeHorizons, subcommand("verdicts")]
            | Annotated[HorizonsPage, subcommand("page")]
        ]
    ]
