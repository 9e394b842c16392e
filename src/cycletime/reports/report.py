"""A report: all that a study says. `output` writes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cycletime.errors import InputError
from cycletime.reports.answer import Answer, completeness
from cycletime.reports.figure import FigureSpec
from cycletime.reports.figures import study_figures
from cycletime.reports.formatting import TextTable
from cycletime.reports.summary import Statistics, Summary
from cycletime.reports.tables import RankedChoices, split_choices, summary_table
from cycletime.studies.scores import MEASURES, StudyScores, read_scores
from cycletime.studies.study_folder import StudyFolder

MAX_DRAWN = 3
"""Of many choices of values for a task and an algorithm, so many are drawn."""
MEANS = Statistics()
FEW_DRAWN = f"Figures are of the {MAX_DRAWN} best choices of values for each task and algorithm."


@dataclass(frozen=True)
class Report:
    scores: StudyScores
    statistics: Statistics
    summaries: tuple[Summary, ...]
    answers: tuple[Answer, ...]
    choices: tuple[RankedChoices, ...]
    """Panels of a single cell, many of which make one table."""
    command: str

    @classmethod
    def of(
        cls,
        folder: StudyFolder | Path | str,
        *,
        measure: str = "average",
        statistics: Statistics = MEANS,
        command: str = "",
    ) -> Report:
        """Read a study, finished or not, and compute what it says; `command` is what it says that it was made by."""
        folder = folder if isinstance(folder, StudyFolder) else StudyFolder.open(folder)
        if measure not in MEASURES:
            raise InputError(f"{measure!r} is not a measure: give one of {', '.join(MEASURES)}.")
        scores = read_scores(folder, measure)
        panels, groups = split_choices(scores.panels)
        summaries = tuple(Summary.of(panel, statistics) for panel in panels)
        answers = tuple(Answer.of(summary) for summary in summaries)
        choices = tuple(RankedChoices.of(group, statistics) for group in groups)
        return cls(scores, statistics, summaries, answers, choices, command)

    @property
    def name(self) -> str:
        return self.scores.folder.study.name

    @property
    def completeness(self) -> tuple[str, ...]:
        return completeness(self.scores)

    def tables(self) -> list[tuple[TextTable, list[tuple[str, tuple[str, ...]]]]]:
        """All tables, each with the sentences that follow it, under their headings."""
        measure = self.scores.measure
        panels = [
            (summary_table(summary, measure), answer.sections())
            for summary, answer in zip(self.summaries, self.answers, strict=True)
        ]
        return [*panels, *((choices.table(measure), [("", choices.sentences())]) for choices in self.choices)]

    def machines(self) -> list[tuple[str, int]]:
        """The code and machines that made the runs, with how many each made."""
        machines = [run.result.get("machine", {}) for run in self.scores.runs() if run.result]
        texts = (
            f"cycletime {each.get('cycletime', 'unknown')}, {_made_with(each)} "
            f"({each.get('processor', 'unknown')}, {each.get('cores', '?')} cores)"
            for each in machines
        )
        return sorted(Counter(texts).items())

    def drawn(self) -> set[int]:
        """The panels that figures are drawn of: of values that a study varies, the best few of a task and algorithm."""
        kinds: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for index, summary in enumerate(self.summaries):
            means = [each.value for each in summary.estimates.values() if each is not None]
            if means:
                kinds.setdefault((summary.panel.task, summary.panel.algorithm), []).append((-max(means), index))
        return {index for found in kinds.values() for _, index in sorted(found)[:MAX_DRAWN]}

    def figures(self) -> list[list[FigureSpec]]:
        """The figures of each panel, none of those that are not drawn; a number where two would have the same name."""
        seen: Counter[str] = Counter()
        drawn, found = self.drawn(), []
        for index, summary in enumerate(self.summaries):
            stem = re.sub(r"[^a-z0-9.]+", "-", summary.panel.title.lower()).strip("-.")
            seen[stem] += 1
            name = stem if seen[stem] == 1 else f"{stem}-{seen[stem]}"
            found.append(study_figures(summary, name, self.scores.measure, self.command) if index in drawn else [])
        return found


def _made_with(machine: Mapping[str, str]) -> str:
    if "trainer" in machine:
        return machine["trainer"] + (f" (script {machine['script']})" if "script" in machine else "")
    return f"JAX {machine.get('jax', 'unknown')} on {machine.get('device', 'unknown')}"
