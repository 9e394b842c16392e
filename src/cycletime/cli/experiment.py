"""`cycletime experiment`: investigations (the paper, and the search for the rule 'horizons') and their results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, arg, subcommand

from cycletime.cli.options import Count, Real, Text
from cycletime.cli.output import print_status
from cycletime.cli.study import WorkerOptions
from cycletime.errors import InputError, did_you_mean
from cycletime.experiments.investigation import Size, scale_label, texts_of
from cycletime.rules.hyperparameters import align_columns

if TYPE_CHECKING:
    from cycletime.experiments.investigation import Experiment, Investigation
    from cycletime.experiments.outcome import Results
    from cycletime.experiments.running import Workspace


_DECLARATIONS = {name: f"cycletime.experiments.{name}.declaration:{name.upper()}" for name in ("paper", "horizons")}


def _folder(default: str, metavar: str = "FOLDER") -> Any:  # noqa: ANN401 - tyro's marker
    return arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


@dataclass(frozen=True, kw_only=True)
class ResultsOptions:
    """Which investigation, and where its results are read from."""

    investigation: Annotated[Positional[str], arg(metavar="INVESTIGATION")]
    """paper: the paper's experiments. horizons: the search for the rule, and its trial. Your own: module:NAME."""
    results: Annotated[Optional[Path], _folder("results/INVESTIGATION, here or above")] = None  # noqa: UP045
    """Results, as 'cycletime experiment collect' keeps them."""

    @property
    def declared(self) -> Investigation:
        from cycletime.experiments.investigation import Investigation
        from cycletime.training.worlds import import_own

        module, colon, name = _DECLARATIONS.get(self.investigation, self.investigation).partition(":")
        home = "" if self.investigation in _DECLARATIONS else str(Path.cwd())  # so that commands run as they were typed
        if not colon:
            known = ", ".join(map(repr, _DECLARATIONS))
            raise InputError(
                f"INVESTIGATION is {self.investigation!r}: give one of {known}, or your own as 'module:NAME'."
            )
        there = vars(import_own(module, self.investigation, home))
        found = there.get(name)
        if not isinstance(found, Investigation):
            own = [each for each, value in there.items() if isinstance(value, Investigation)]
            raise InputError(
                f"{self.investigation!r} is {'not there' if found is None else f'of type {type(found).__name__}'}: "
                f"{module} should have an Investigation of the name {name!r}{did_you_mean(name, own)}"
            )
        return replace(found, typed=self.investigation)

    def chosen(self, kind: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
        return [self.declared.known(kind, name, known) for name in names] or list(known)

    @property
    def results_folder(self) -> Path:
        from cycletime.experiments.collecting import results_folder

        return results_folder(self.declared.name) if self.results is None else self.results

    def read(self, *, some: bool = False) -> Results:
        """The results; with `some`, refused where there are none of the investigation, as in a study's folder."""
        found: Results = self.declared.read(self.results_folder)
        if some and found.outcomes.keys().isdisjoint(self.declared.study_names):
            remedy = f"'cycletime experiment collect {self.investigation}' makes a folder with them"
            raise InputError(f"There are no results of '{self.investigation}' in {self.results_folder}: {remedy}.")
        return found

    def print_json(self, name: str) -> None:
        make = self.declared.as_json.get(name)
        if make is None:
            raise InputError(f"{self.declared.title} has no {name} in JSON: leave out --json.")
        print(json.dumps(make(self.read()), indent=2, allow_nan=False))


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    seeds: Annotated[Count, arg(help_behavior_hint="(default: the study's own)")] = None
    """Runs of each point: of the paper 30, but for 10 of pendulum-grid and sac-robot, and 5 of PPO on the robot."""
    fresh_seeds: Annotated[Count, arg(help_behavior_hint="(default: as many as of the sweep)")] = None
    """Runs of each winner of a sweep."""
    scale: Real = 1.0
    """The share of the paper's environment steps; results that are scaled down are labelled so."""

    @property
    def size(self) -> Size:
        return Size(self.scale, self.seeds, self.fresh_seeds)


@dataclass(frozen=True, kw_only=True)
class ExperimentSelection(SizeOptions, ResultsOptions):
    """Which experiments, how much of them, where they are kept, and what computes them."""

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="NAME ...", help_behavior_hint="(required, or --all)")]
    """Experiments, as 'cycletime experiment list' has them; those of horizons need the results of the ones before."""
    all: bool = False
    """All of them."""
    out: Annotated[Optional[Path], _folder("INVESTIGATION")] = None  # noqa: UP045
    """Where their studies are kept, each in a folder of its own."""
    engine: Annotated[Text, arg(metavar="ENGINE", help_behavior_hint="(default: what the studies say)")] = None
    """The engine: compiled, cuda, or auto for the fastest that takes a run on the device."""

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        if self.all == bool(self.names):
            raise InputError(
                f"Give either the names of experiments or --all: 'cycletime experiment list {self.investigation}' has "
                "them."
            )
        known = self.declared.experiments
        return tuple(known[name] for name in self.chosen("experiment", self.names, known))

    def workspace(self, device: str | None) -> Workspace:
        from cycletime.experiments.running import Workspace

        return Workspace(
            investigation=self.declared,
            out=self.out or Path(self.declared.name),
            results=self.results_folder if self.declared.follows_results else None,
            size=self.size,
            device=device,
            engine=self.engine,
        )


@dataclass(frozen=True, kw_only=True)
class ListExperiments(ResultsOptions, SizeOptions):
    """List the experiments: how large they are, and whether results are at hand."""

    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        from cycletime.experiments.collecting import find_results
        from cycletime.experiments.outcome import Results
        from cycletime.experiments.running import Workspace, experiment_row

        declared, own = self.declared, find_results(self.declared.name)
        folder = self.results or own
        planned = own or self.results_folder if declared.follows_results else None  # whose sizes are known
        workspace = Workspace(investigation=declared, out=Path(declared.name), results=planned, size=self.size)
        data = Results({}) if folder is None else declared.read(folder)
        found = [experiment_row(experiment, workspace, data) for experiment in declared.experiments.values()]
        if self.json:
            print(json.dumps(found, indent=2))
            return 0
        in_all = {key: sum(row[key] for row in found) for key in ("runs", "simulated_h")}
        every = [*found, {"name": "all", **in_all, "results": ""}]
        rows = [(row["name"], f"{row['runs']:,}", f"{row['simulated_h']:,.0f}", row["results"]) for row in every]
        head = ("experiment", "runs", "simulated hours", "results")
        print("\n".join(align_columns([head, *rows], right=(1, 2), underlined=False)), end="\n\n")
        if robots := [row["name"] for row in found if "simulated robot" in row["where"]]:
            print(fill(f"On a simulated robot: {', '.join(robots)}.", 80, break_on_hyphens=False))
        print(f"'cycletime experiment run {self.investigation} NAME' runs an experiment.")
        return 0


@dataclass(frozen=True, kw_only=True)
class RunExperiments(WorkerOptions, ExperimentSelection):
    """Run experiments, or continue them: what is done already is not run again."""

    device: Literal["cpu", "gpu"] = "cpu"
    """Where they are computed."""

    def run(self) -> int:
        """Run what is left; status 1 if some runs failed."""
        from cycletime.experiments.running import check_experiments, run_experiment
        from cycletime.studies.progress import StudyProgress
        from cycletime.studies.study_folder import format_states
        from cycletime.training.process import stopping

        chosen, workspace = self.experiments, self.workspace(self.device)
        scale, all_done = scale_label(self.scale), True
        check_experiments(chosen, workspace)
        with stopping() as stopper:
            for experiment in chosen:
                all_done &= run_experiment(
                    experiment,
                    workspace,
                    lambda: self.executor_for(self.device),
                    observer=lambda executor: StudyProgress(executor.workers),
                    tell=lambda study, counts: print(
                        f"{study}{scale}: {format_states(counts, workspace.out / study)}", flush=True
                    ),
                    stop=stopper,
                )
                if stopper():
                    print_status("Stopped. The same command goes on with it.")
                    return stopper.status
        print(f"To keep what came of it: cycletime experiment collect {self.investigation} {workspace.out}")
        return 0 if all_done else 1


@dataclass(frozen=True, kw_only=True)
class PackExperiments(ExperimentSelection):
    """Pack what is not done yet of experiments, for a machine that has JAX and NumPy, and for the engine cuda CuPy."""

    output: Annotated[Path, arg(metavar="PACK", aliases=["-o"])]
    """The pack, such as pack.zip."""
    device: Literal["cpu", "gpu"] = "gpu"
    """Where they are computed."""

    def run(self) -> int:
        from cycletime.cli.study import print_packed
        from cycletime.experiments.running import pending_studies
        from cycletime.studies.pack import pack_studies

        workspace = self.workspace(self.device)
        ready, later = pending_studies(self.experiments, workspace)
        for name, needed in later.items():
            print(f"{name} is not in it: it needs all runs of {needed}; bring them to {workspace.out} and pack again.")
        if not ready:
            why = f"all that can be run is done in {workspace.out}" if not later else "first run what they need"
            raise InputError(f"There is nothing to pack: {why}.")
        keeps = [experiment.save_options for experiment in ready.values()]
        studies = [workspace.study(name) for name in ready]
        print_packed(pack_studies(studies, self.output, keeps=keeps, in_folders=True), self.output)
        print(
            f"Then bring OUT back as {workspace.out}, and: cycletime experiment collect {self.investigation} "
            f"{workspace.out}"
        )
        return 0


@dataclass(frozen=True, kw_only=True)
class CollectResults(ResultsOptions):
    """Keep what came of finished studies, small enough to go with the code; of the paper also what policies do."""

    out: Annotated[Positional[Path], arg(metavar="OUT")]
    """The folder that 'cycletime experiment run' or a pack filled."""
    results: Annotated[Optional[Path], _folder("OUT/results")] = None  # noqa: UP045
    """Where results are kept, one file for each study."""

    def run(self) -> int:
        from cycletime.training.machine import prepare_jax

        prepare_jax("cpu")
        from cycletime.experiments.collecting import collect_results

        results = self.results or self.out / "results"
        kept, unfinished = collect_results(self.declared, self.out, results)
        for path in kept:
            print(f"{path}, {path.stat().st_size / 1024:,.0f} KiB")
        for name, (done, of) in unfinished.items():
            print(f"{name} is not finished and was left out: {done:,} of {of:,} runs are done")
        if kept:
            see = "verdicts" if self.declared.report_path.suffix else "report"
            print(f"To see what they say: cycletime experiment {see} {self.investigation} --results {results}")
        return 0


@dataclass(frozen=True, kw_only=True)
class PrintVerdicts(ResultsOptions):
    """Judge the paper's claims, or the trial's candidates and what was predicted of them, by the results at hand."""

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="NAME ...", help_behavior_hint="(default: all)")]
    """Claims of the paper, such as 12 or headline; of horizons ppo or sac."""
    json: bool = False
    """Print JSON: a list with an object for each claim of the paper."""

    def run(self) -> int:
        if self.json:
            if self.names:
                raise InputError(f"--json has all verdicts: leave {' '.join(self.names)} out.")
            self.print_json("verdicts")
            return 0
        verdicts = self.declared.verdicts
        makes = [(name, verdicts[name]) for name in self.chosen("verdict", self.names, verdicts)]
        print(texts_of(makes, self.read(), asked=bool(self.names)), end="")
        return 0


@dataclass(frozen=True, kw_only=True)
class PrintTable(ResultsOptions):
    """Print a table: values that were tuned, the paper's beside ours, or how the rules of a search compare."""

    name: Annotated[Positional[str], arg(metavar="TABLE", help_behavior_hint="(required)")] = ""
    """Of the paper ppo-tuned or sac-tuned; of horizons search, trial, sac-search or sac-trial."""
    json: bool = False
    """Print JSON; of the paper's tables."""

    def run(self) -> int:
        tables = self.declared.tables
        if not self.name:
            raise InputError(f"TABLE is missing: {self.declared.title} has {', '.join(tables) or 'none'}.")
        name = self.declared.known("table", self.name, tables)
        if self.json:
            self.print_json(name)
        else:
            print(tables[name](self.read()).rstrip())
        return 0


@dataclass(frozen=True, kw_only=True)
class DrawFigures(ResultsOptions):
    """Draw the figures for which there are results."""

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="FIGURE ...", help_behavior_hint="(default: all)")]
    """The figures."""
    out: Annotated[Optional[Path], _folder("paper-figures or horizons-figures")] = None  # noqa: UP045
    """Where they go."""

    def run(self) -> int:
        """Draw them; status 1 if one that was asked for has no results."""
        declared, out = self.declared, self.out or Path(f"{self.declared.name}-figures")
        wanted, data = self.chosen("figure", self.names, declared.figures), self.read(some=True)
        stems = dict.fromkeys(path.stem for path in declared.save_figures(data, out, wanted))
        count = "1 figure" if len(stems) == 1 else f"{len(stems)} figures"
        print(f"{count} in {out}" + (f": {', '.join(stems)}" if stems else ""))
        missing = {name: needs for name, needs in declared.missing_figures(data).items() if name in wanted}
        for name, needs in missing.items():
            print(f"{name}: not run ({needs})")
        return 1 if self.names and missing else 0


@dataclass(frozen=True, kw_only=True)
class WriteReport(ResultsOptions):
    """Make all figures, tables and verdicts again, without training and without a GPU."""

    out: Annotated[Optional[Path], _folder("paper-report; of horizons docs/horizons.md", "PATH")] = None  # noqa: UP045
    """Of the paper a folder; of horizons a page with marks <!-- made: NAME -->, whose figures go beside it."""

    def run(self) -> int:
        from cycletime.experiments.collecting import find_results

        data, out, own = self.read(some=True), self.out or self.declared.report_path, find_results(self.declared.name)
        own_page = own and (own.resolve(), own.parents[1].resolve() / out)
        is_own = own_page == (self.results_folder.resolve(), out.resolve())
        if self.out is None and self.declared.write_report is not None and out.is_file() and not is_own:
            raise InputError(
                f"{out} is there, and may be of other results than {self.results_folder}: to write it anew, give --out "
                f"{out}, or a copy of it; 'cycletime experiment verdicts {self.investigation} --results "
                f"{self.results_folder}' prints what they say."
            )
        written = self.declared.report(data, out)
        studies = "1 study" if len(data.outcomes) == 1 else f"{len(data.outcomes)} studies"
        page = ": open report.html in a browser" if any(path.name == "report.html" for path in written) else ""
        drawn = "Figures, tables" if self.declared.figures else "Tables"
        print(f"{drawn} and verdicts from {studies} are in {out}{page}")
        return 0


@dataclass(frozen=True)
class ExperimentCommand:
    """Run investigations, the paper's experiments and the search for the rule 'horizons', and see what came of them."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[ListExperiments, subcommand("list")]
            | Annotated[RunExperiments, subcommand("run")]
            | Annotated[PackExperiments, subcommand("pack")]
            | Annotated[CollectResults, subcommand("collect")]
            | Annotated[PrintVerdicts, subcommand("verdicts")]
            | Annotated[PrintTable, subcommand("table")]
            | Annotated[DrawFigures, subcommand("figures")]
            | Annotated[WriteReport, subcommand("report")]
        ]
    ]
