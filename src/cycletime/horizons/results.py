"""The results as they are kept with the code, one file for each study, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from cycletime.errors import InputError
from cycletime.horizons.fields import FIELDS, Field, retuned, starts
from cycletime.horizons.freezing import frozen_rules
from cycletime.horizons.levels import level_of_nothing
from cycletime.horizons.missing import found
from cycletime.horizons.ranking import RuleComparison, ScoreScale
from cycletime.horizons.subjects import SUBJECTS, Algorithm, Rules
from cycletime.paper.collecting import outcome_of
from cycletime.paper.outcome import Outcome
from cycletime.paper.results import check_says_no_less
from cycletime.runs.files import disk_errors
from cycletime.runs.worlds import ClosedFormWorld
from cycletime.studies.spec.study import Study
from cycletime.studies.store.folder import StudyFolder

BINS = 10
"""Of the curves that are kept."""
Stage: TypeAlias = Literal["tuning", "search", "trial-tuning", "trial"]
STAGES: Mapping[Stage, str] = {"tuning": "search", "search": "search", "trial-tuning": "trial", "trial": "trial"}
"""In their order, whether each belongs to the search or to the trial."""


@dataclass(frozen=True)
class _Known:
    """A study that can be asked for."""

    field: Field
    stage: Stage
    task: str

    @property
    def command(self) -> str:
        """What makes the pack that runs it."""
        return f"cycletime horizons pack {self.stage}{self.field.subject.option}"


def _known(algorithm: str, stage: Stage) -> dict[str, _Known]:
    field = FIELDS[algorithm][STAGES[stage]]
    name_of = field.study_name if stage == field.name else field.tuning_name
    return {name_of(task): _Known(field, stage, task) for task in field.tasks}


_KNOWN = {name: each for algorithm in SUBJECTS for stage in STAGES for name, each in _known(algorithm, stage).items()}
"""By name, all studies."""


def studies_of(stage: Stage, results: Path, algorithm: Algorithm = "ppo") -> list[Study]:
    """The studies of a stage, one for each task; those that compare rules follow from what tuning found.

    Raises:
        NoResultsError: if that is not there, or for the trial and its tuning the frozen list.
    """
    field = FIELDS[algorithm][STAGES[stage]]
    rules = _rules_of(field, results)
    if stage != field.name:
        return [field.tuning(task) for task in field.tasks]
    return [field.study(outcome_in(results, field.tuning_name(task)), rules) for task in field.tasks]


def collect_stages(out: Path, results: Path) -> list[Path]:
    """Keep what came of the studies in a folder, of which all runs must be done; the files.

    Raises:
        InputError: if there is none, runs are missing or cannot be trusted, or results are there that say more.
    """
    there = [name for name in _KNOWN if (out / name / "study.json").exists()]
    if not there:
        raise InputError(
            f"{out} has no study of a search or a trial, such as {next(iter(_KNOWN))}: 'cycletime horizons pack' makes "
            "what runs them."
        )
    kept = {results / f"{name}.npz": _collected(StudyFolder.open(out / name)) for name in there}
    for path, outcome in kept.items():
        check_says_no_less(outcome, path)
    with disk_errors(results):
        results.mkdir(parents=True, exist_ok=True)
    for path, outcome in kept.items():
        outcome.save(path)
    return list(kept)


def _collected(folder: StudyFolder) -> Outcome:
    (world,) = folder.study.worlds
    assert isinstance(world, ClosedFormWorld), "packs have no others"
    known = _KNOWN[folder.study.name]
    about = {
        "scale": folder.study.env_steps / known.field.tuning(known.task).env_steps,
        "command": known.command,
        "nothing": level_of_nothing(world),
    }
    return outcome_of(folder, about, bins=BINS)


def comparison_of(field: Field, results: Path) -> RuleComparison:
    """The rules of a search or of a trial, compared.

    Raises:
        NoResultsError: if results are missing.
    """
    tunings = {task: outcome_in(results, field.tuning_name(task)) for task in field.tasks}
    outcomes = {task: outcome_in(results, field.study_name(task)) for task in field.tasks}
    scales = {task: ScoreScale(float(outcomes[task].about["nothing"]), retuned(tunings[task])) for task in field.tasks}
    begun = [start for task in field.tasks for start in starts(tunings[task])]
    return RuleComparison(_rules_of(field, results), begun, outcomes, scales)


def _rules_of(field: Field, results: Path) -> Rules:
    """What is compared: all candidates, or for the trial those of the frozen list."""
    subject = field.subject
    return subject.rules if field.name == "search" else subject.against_references(frozen_rules(results, subject))


def outcome_in(results: Path, study: str) -> Outcome:
    """What came of a study.

    Raises:
        NoResultsError: if that is not there.
    """
    makes = f"'{_KNOWN[study].command}' makes what runs it, and 'horizons collect' keeps what comes of it."
    return Outcome.load(found(results / f"{study}.npz", makes))
