"""An investigation: studies, criteria that are fixed before the runs, results, verdicts, figures, and a page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cycletime.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from cycletime.experiments.outcome import Results
    from cycletime.studies.spec import StudySpec
    from cycletime.studies.study_folder import StudyFolder
    from cycletime.training.run_recorder import SaveOptions

FRESH_SEED = 1000
"""The first seed of runs that repeat a winner: those that it won with have smaller ones."""


@dataclass(frozen=True)
class Experiment:
    """Studies that are run together, under one name."""

    name: str
    about: str
    studies: tuple[str, ...] = ()
    """By default one that is called as it is."""
    winners_of: str | None = None
    """The study whose best cells are run again with fresh seeds."""
    keeps_policies: bool = False
    """Whether each run keeps its policy, so that its behaviour can be measured."""

    def __post_init__(self) -> None:
        if not self.studies:
            object.__setattr__(self, "studies", (self.name,))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all its studies, the winners' last."""
        return self.studies if self.winners_of is None else (*self.studies, winners_name(self.winners_of))

    @property
    def save_options(self) -> SaveOptions:
        from cycletime.training.run_recorder import SaveOptions

        return SaveOptions(episodes=False, policies=self.keeps_policies)


@dataclass(frozen=True)
class Size:
    scale: float = 1.0
    seeds: int | None = None
    """By default the study's own."""
    fresh_seeds: int | None = None
    """Of winners; by default as many as of the sweep."""

    def __post_init__(self) -> None:
        from cycletime.agents.checks import check_counts

        if not 0 < self.scale <= 1:
            raise InputError(f"scale is {self.scale}: it must be above 0 and at most 1, which is all of it.")
        check_counts(self, *(name for name in ("seeds", "fresh_seeds") if getattr(self, name) is not None))
        if self.seeds is not None and self.seeds > FRESH_SEED:
            raise InputError(f"seeds is {self.seeds}: it must be at most {FRESH_SEED}, since winners' follow.")

    def of(self, study: StudySpec) -> StudySpec:
        first = study.seeds[0]
        seeds = study.seeds if self.seeds is None else tuple(range(first, first + self.seeds))
        return replace(study, env_steps=max(1, round(study.env_steps * self.scale)), seeds=seeds)


def _read_results(folder: Path) -> Results:
    from cycletime.experiments.outcome import read_results

    return read_results(folder)


@dataclass(frozen=True, kw_only=True)
class Investigation:
    """An investigation's declaration; functions take what `read` gives. `inspect.getsource` shows what fields mean.

    A small one has `name`, `experiments`, `study` and `verdicts`; docs/paper.md has an example.
    """

    name: str
    typed: str = ""
    """The INVESTIGATION of the command line, such as 'module:NAME'; by default its name."""
    title: str = ""
    """Its name in sentences, such as 'The paper'; by default its name."""
    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    study: Callable[[str, Any], StudySpec]
    """A study in full size by its name; what it follows from is in the `Workspace`. Winners' studies are made of it."""
    env_steps: Callable[[str], int] | None = None
    """A study's in full size, where `study` asks the `Workspace`; by default those of `study(name, None)`."""
    needs: Callable[[str], tuple[str, ...]] = lambda name: ()
    """The studies whose outcomes a study follows from; winners' studies follow from their sweep."""
    follows_results: bool = False
    """Whether studies may follow from the results at hand, and not from runs beside them alone."""
    provenance: Callable[[StudySpec], Mapping[str, Any]] = lambda study: {}
    """What is kept of a study beside its runs, its scale and its command."""
    curve_bins: int | None = None
    """Of the curves that are kept; by default as many as there are."""
    collect_more: Callable[[Mapping[str, StudyFolder], Path], list[Path]] = lambda folders, results: []
    """Keeps more of finished studies than their outcomes; the files."""
    read: Callable[[Path], Any] = _read_results
    """Results from a folder, as `outcome.Results`."""
    verdicts: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    """By claim or by what is judged, the verdict as text."""
    tables: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    as_json: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """What there is for programs: by table, and of 'verdicts'."""
    figures: Collection[str] = ()
    missing_figures: Callable[[Any], Mapping[str, str]] = lambda results: {}
    """By figure that cannot be drawn, the studies that it lacks."""
    save_figures: Callable[[Any, Path, Sequence[str]], list[Path]] = lambda results, folder, names: []
    """Draws those of some figures that there are results for; the files."""
    write_report: Callable[[Any, Path], list[Path]] | None = None
    """Writes all figures, tables and verdicts, or fills a page; the files. By default verdicts and tables as text."""
    report_path: Path = Path()
    """The report's path without --out; by default NAME-report.txt."""

    def __post_init__(self) -> None:
        defaults = {"typed": self.name, "title": self.name, "report_path": Path(f"{self.name}-report.txt")}
        for field_name, value in defaults.items():
            if getattr(self, field_name) in ("", Path()):
                object.__setattr__(self, field_name, value)

    @property
    def study_names(self) -> tuple[str, ...]:
        return tuple(part for experiment in self.experiments.values() for part in experiment.parts)

    def full_env_steps(self, study: str) -> int:
        if self.env_steps is not None:
            return self.env_steps(study)
        return self.study(self.sweep_of(study) or study, None).env_steps

    def known(self, kind: str, name: str, names: Iterable[str]) -> str:
        """A name of an experiment, a figure or a table; refused if there is none such."""
        there = list(names)
        if name not in there:
            has = f"there are {', '.join(there)}" if there else "it has none"
            raise InputError(f"{self.title} has no {kind} {name!r}: {has}{did_you_mean(name, there)}")
        return name

    def sweep_of(self, study: str) -> str | None:
        """The study whose winners a study runs again; None of one that runs none."""
        sweeps = (each.winners_of for each in self.experiments.values() if each.winners_of is not None)
        return next((sweep for sweep in sweeps if winners_name(sweep) == study), None)

    def origin(self, study: StudySpec) -> dict[str, Any]:
        """What is kept of a study beside its runs: its scale, the command that runs it again, and `provenance`."""
        from cycletime.training.engine import AUTO

        experiment = next(each.name for each in self.experiments.values() if study.name in each.parts)
        sweep, scale = self.sweep_of(study.name), study.env_steps / self.full_env_steps(study.name)
        seeds = "--seeds" if sweep is None else "--fresh-seeds"
        words = ["cycletime", "experiment", "run", self.typed, experiment, seeds, str(len(study.seeds))]
        words += [] if scale == 1 else ["--scale", f"{scale:g}"]
        words += [] if study.device == "cpu" else ["--device", study.device]
        words += [] if study.engine == AUTO else ["--engine", study.engine]
        return {"scale": scale, "command": " ".join(words), **self.provenance(study)}

    def report(self, results: Any, path: Path) -> list[Path]:  # noqa: ANN401 - what `read` gives
        from cycletime.training.atomic_files import make_folder, write_whole

        if self.write_report is not None:
            return self.write_report(results, path)
        text = texts_of([*self.verdicts.items(), *self.tables.items()], results)
        make_folder(path.parent)
        write_whole(path, lambda unfinished: unfinished.write_text(text))
        return [path]


def texts_of(makes: Iterable[tuple[str, Callable[[Any], str]]], results: Any, *, asked: bool = False) -> str:  # noqa: ANN401
    """Verdicts or tables as text, and which were not run: of those that were `asked` for that is an error."""
    from cycletime.experiments.outcome import NotRunError

    texts = list[str]()
    for name, make in makes:
        try:
            texts.append(str(make(results)).rstrip("\n"))
        except NotRunError as error:
            if asked:
                raise
            texts.append(f"{name}: not run. {error}")
    return "\n\n".join(texts or ["It has no verdicts and no tables."]) + "\n"


def winners_name(study: str) -> str:
    return f"{study}-winners"


def scale_label(scale: float) -> str:
    """The label of what has a share of the environment steps; nothing where it has all."""
    return "" if scale == 1 else f" (scaled down to {100 * scale:.3g} % of the environment steps)"
