"""An investigation: studies, criteria that are fixed before the runs, results, verdicts, figures, and a page.

The paper and horizons are two declarations of it. All that an investigation has goes by name, so that the same commands
serve every one of them; what one does not have is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from cycletime.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from cycletime.experiments.outcome import Outcome, Results
    from cycletime.studies.spec import StudySpec
    from cycletime.studies.study_folder import StudyFolder
    from cycletime.training.run_recorder import SaveOptions

INVESTIGATIONS: Mapping[str, str] = {
    "paper": "cycletime.experiments.paper.declaration:PAPER",
    "horizons": "cycletime.experiments.horizons.declaration:HORIZONS",
}
FRESH_SEED = 1000
"""The first seed of runs that repeat a winner: those that it won with have smaller ones."""
R = TypeVar("R", bound="Results")


@dataclass(frozen=True)
class Experiment:
    """Studies that are run together, under one name."""

    name: str
    about: str
    shown_in: str
    studies: tuple[str, ...]
    winners_of: str | None = None
    """The study whose best cells are run again with fresh seeds."""
    keeps_policies: bool = False
    """Whether each run keeps its policy, so that its behaviour can be measured."""

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
    """How much of an experiment is run."""

    scale: float = 1.0
    """The share of its environment steps."""
    seeds: int | None = None
    """By default the study's own."""
    fresh_seeds: int | None = None
    """Of winners; by default as many as of the sweep."""

    def __post_init__(self) -> None:
        from cycletime.agents.checks import check_counts

        if not 0 < self.scale <= 1:
            raise InputError(f"scale is {self.scale}: it must be above 0 and at most 1, which is the paper's.")
        check_counts(self, *(name for name in ("seeds", "fresh_seeds") if getattr(self, name) is not None))
        if self.seeds is not None and self.seeds > FRESH_SEED:
            raise InputError(f"seeds is {self.seeds}: it must be at most {FRESH_SEED}, since winners' follow.")

    def of(self, study: StudySpec) -> StudySpec:
        first = study.seeds[0]
        seeds = study.seeds if self.seeds is None else tuple(range(first, first + self.seeds))
        return replace(study, env_steps=max(1, round(study.env_steps * self.scale)), seeds=seeds)


class StudyInputs(Protocol):
    """What studies of later stages follow from; `running.Workspace` has it."""

    @property
    def size(self) -> Size: ...

    @property
    def results(self) -> Path | None: ...

    def outcome(self, name: str) -> Outcome: ...


@dataclass(frozen=True, kw_only=True)
class Investigation(Generic[R]):
    """The declaration of an investigation; R is the type of its results."""

    name: str
    """Of its commands, and of its folder in results/."""
    title: str
    """What sentences call it: 'The paper'."""
    about: str
    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    study: Callable[[str, StudyInputs], StudySpec]
    needs: Callable[[str], tuple[str, ...]]
    """The studies whose outcomes a study follows from."""
    provenance: Callable[[StudySpec], Mapping[str, Any]]
    """What is kept of a study beside its runs: at least its scale and the command that runs it again."""
    curve_bins: int | None = None
    """Of the curves that are kept; by default as many as there are."""
    collect_more: Callable[[Mapping[str, StudyFolder], Path], list[Path]] | None = None
    """Keeps more of finished studies than their outcomes; the files."""
    read: Callable[[Path], R]
    verdicts: Mapping[str, Callable[[R], str]] = field(default_factory=dict)
    """By claim or by what is judged, the verdict as text."""
    verdicts_as_json: Callable[[R], list[dict[str, Any]]] | None = None
    tables: Mapping[str, Callable[[R], str]] = field(default_factory=dict)
    """By name, tables as text."""
    tables_as_json: Mapping[str, Callable[[R], dict[str, Any]]] = field(default_factory=dict)
    save_figures: Callable[[R, Path, Sequence[str]], list[Path]]
    """Draws the figures that there are results for, or some; the files."""
    missing_figures: Callable[[R], dict[str, str]]
    """By name, the figures that cannot be drawn, and what they need."""
    write_report: Callable[[R, Path], list[Path]]
    """Writes all figures, tables and verdicts, or fills a page; the files."""
    report_path: Path
    """Where that is, unless another place is asked for."""

    @property
    def study_names(self) -> tuple[str, ...]:
        return tuple(part for experiment in self.experiments.values() for part in experiment.parts)

    def find_experiments(self, names: Iterable[str]) -> tuple[Experiment, ...]:
        return tuple(self.experiments[self.known("experiment", name, self.experiments)] for name in names)

    def known(self, kind: str, name: str, names: Iterable[str]) -> str:
        """A name of an experiment, a figure or a table; refused if there is none such."""
        return known_name(self.title, kind, name, names)


def known_name(title: str, kind: str, name: str, names: Iterable[str]) -> str:
    """A name, if it is among those that an investigation of this title has."""
    there = list(names)
    if name not in there:
        has = f"there are {', '.join(there)}" if there else "it has none"
        raise InputError(f"{title} has no {kind} {name!r}: {has}{did_you_mean(name, there)}")
    return name


def load_investigation(name: str) -> Investigation[Any]:
    """An investigation by name, with all that its declaration needs."""
    module, _, attribute = INVESTIGATIONS[name].partition(":")
    found: Investigation[Any] = getattr(import_module(module), attribute)
    return found


def winners_name(study: str) -> str:
    """What the study is called that runs another's winners again."""
    return f"{study}-winners"


def scale_label(scale: float) -> str:
    """The label of what has a share of the environment steps; nothing where it has all."""
    return "" if scale == 1 else f" (scaled down to {100 * scale:.3g} % of the environment steps)"
