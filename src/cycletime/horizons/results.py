"""The results as they are kept with the code, one file for each study, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from cycletime.errors import InputError
from cycletime.horizons.candidates import REFERENCES
from cycletime.horizons.fields import SEARCH, SEARCHED, TRIAL, Field, Rules, retuned, starts, tuning_study
from cycletime.horizons.freezing import frozen_rules
from cycletime.horizons.levels import level_of_nothing
from cycletime.horizons.ranking import RuleComparison, ScoreScale
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
STAGES: Mapping[Stage, Field] = {"tuning": SEARCH, "search": SEARCH, "trial-tuning": TRIAL, "trial": TRIAL}
"""In their order."""
_STAGE_OF: Mapping[str, Stage] = {
    **{f"tuning-{task}": stage for stage in ("tuning", "trial-tuning") for task in STAGES[stage].tasks},
    **{f"{field.name}-{task}": field.name for field in (SEARCH, TRIAL) for task in field.tasks},
}
"""By study, the stage that it belongs to."""


def studies_of(stage: Stage, results: Path) -> list[Study]:
    """The studies of a stage, one for each task; those that compare rules follow from what tuning found.

    Raises:
        InputError: if that is not there, or for the trial the frozen list.
    """
    field = STAGES[stage]
    if stage != field.name:
        return [tuning_study(task) for task in field.tasks]
    rules = _rules_of(field, results)
    return [field.study(outcome_in(results, f"tuning-{task}"), rules) for task in field.tasks]


def collect_stages(out: Path, results: Path) -> list[Path]:
    """Keep what came of the studies in a folder, of which all runs must be done; the files.

    Raises:
        InputError: if there is none, runs are missing or cannot be trusted, or results are there that say more.
    """
    there = [name for name in _STAGE_OF if (out / name / "study.json").exists()]
    if not there:
        raise InputError(f"{out} has none of {', '.join(_STAGE_OF)}: 'cycletime horizons pack' makes what runs them.")
    found = {results / f"{name}.npz": _collected(StudyFolder.open(out / name)) for name in there}
    for path, outcome in found.items():
        check_says_no_less(outcome, path)
    with disk_errors(results):
        results.mkdir(parents=True, exist_ok=True)
    for path, outcome in found.items():
        outcome.save(path)
    return list(found)


def _collected(folder: StudyFolder) -> Outcome:
    (world,) = folder.study.worlds
    assert isinstance(world, ClosedFormWorld), "packs have no others"
    about = {
        "scale": folder.study.env_steps / tuning_study(world.name).env_steps,
        "command": f"cycletime horizons pack {_STAGE_OF[folder.study.name]}",
        "nothing": level_of_nothing(world),
    }
    return outcome_of(folder, about, bins=BINS)


def comparison_of(field: Field, results: Path) -> RuleComparison:
    """The rules of the search or of the trial, compared.

    Raises:
        InputError: if results are missing.
    """
    tunings = {task: outcome_in(results, f"tuning-{task}") for task in field.tasks}
    found = {task: outcome_in(results, f"{field.name}-{task}") for task in field.tasks}
    scales = {task: ScoreScale(float(found[task].about["nothing"]), retuned(tunings[task])) for task in field.tasks}
    begun = [start for task in field.tasks for start in starts(tunings[task])]
    return RuleComparison(_rules_of(field, results), begun, found, scales)


def _rules_of(field: Field, results: Path) -> Rules:
    """What is compared: all candidates, or for the trial those of the frozen list."""
    return SEARCHED if field is SEARCH else {**{name: name for name in REFERENCES}, **frozen_rules(results)}


def outcome_in(results: Path, study: str) -> Outcome:
    """What came of a study.

    Raises:
        InputError: if that is not there.
    """
    file = results / f"{study}.npz"
    if not file.exists():
        raise InputError(
            f"{file} is not there: 'cycletime horizons pack {_STAGE_OF[study]}' makes what runs it, and 'horizons "
            "collect' keeps what comes of it."
        )
    return Outcome.load(file)
