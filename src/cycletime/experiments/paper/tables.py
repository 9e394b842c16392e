"""The tables of tuned values: the paper's beside ours, and what each is worth in our runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import dist
from textwrap import wrap
from typing import Any

from cycletime.duration import Duration
from cycletime.experiments.investigation import scale_label, winners_name
from cycletime.experiments.outcome import Outcome, OutcomeCell, Winner, mean_score, winners
from cycletime.experiments.paper.data import PaperResults
from cycletime.reports.formatting import TextTable, dt_text, estimate_as_json, estimate_text, join_words, range_text
from cycletime.statistics import Estimate, compare

_COLUMNS = 100
_MAX_LISTED = 6
"""Values that are as good as a winner; others are counted."""


@dataclass(frozen=True)
class PublishedTable:
    title: str
    sweep: str
    short: Mapping[str, str]
    values: Mapping[str, tuple[float, ...]]
    """By cycle time, what the paper found best."""


PUBLISHED_TABLES = {
    "ppo-tuned": PublishedTable(
        "PPO on Reacher, batch b and mini-batch m tuned at each cycle time",
        "ppo-grid",
        {"batch": "b", "minibatch": "m"},
        {"4ms": (8000, 50), "8ms": (8000, 25), "16ms": (4000, 12), "32ms": (2000, 12), "64ms": (1000, 12)},
    ),
    "sac-tuned": PublishedTable(
        "SAC on Reacher, discount gamma tuned at each cycle time",
        "sac-gamma-sweep",
        {"discount": "gamma"},
        {"4ms": (0.961,), "8ms": (0.923,), "16ms": (0.851,), "32ms": (0.851,), "64ms": (0.851,)},
    ),
}


@dataclass(frozen=True)
class TunedRow:
    dt: Duration
    paper: tuple[float, ...]
    """The values that the paper found best, as it prints them."""
    ours: tuple[float, ...]
    is_same: bool
    scores: Mapping[str, Estimate | None]
    """'sweep', our winner's, by which it won; 'fresh', that with fresh seeds; 'papers_choice', that of the paper's
    values in our sweep; 'difference', fresh less the paper's. None of what was not run, or diverged."""
    as_good: tuple[tuple[float, ...], ...]
    """Other values that are behind the winner in the sweep by less than the standard error of the difference."""


@dataclass(frozen=True)
class TunedTable:
    name: str
    published: PublishedTable
    rows: tuple[TunedRow, ...]
    tried: int
    scale: float

    def as_text(self) -> str:
        table = self.text_table()
        notes = [line for note in table.notes for line in wrap(f"- {note}", _COLUMNS, subsequent_indent="  ")]
        return "\n".join([table.title, "", *table.markdown(is_aligned=True), "", *notes]) + "\n"

    def text_table(self) -> TextTable:
        letters = ", ".join(self.published.short.values())
        header = ("dt", f"paper {letters}", f"our {letters}", "ours, sweep", "ours, fresh", "paper's", "difference")
        rows = []
        for row in self.rows:
            *means, difference = map(estimate_text, row.scores.values())
            values = map(_values_text, (row.paper, row.ours))
            rows.append((dt_text(row.dt), *values, *means, "same values" if row.is_same else difference))
        return TextTable(header, rows, f"{self.published.title}{scale_label(self.scale)}", self._notes())

    def as_json(self) -> dict[str, Any]:
        def named(values: Sequence[float]) -> dict[str, float]:
            return dict(zip(self.published.short, values, strict=True))

        return {
            "table": self.name,
            "title": self.published.title,
            "scale": self.scale,
            "tried": self.tried,
            "rows": [
                {
                    "dt_s": float(row.dt),
                    "paper": named(row.paper),
                    "ours": named(row.ours),
                    "same": row.is_same,
                    **{name: estimate_as_json(score) for name, score in row.scores.items()},
                    "as_good": [named(values) for values in row.as_good],
                }
                for row in self.rows
            ],
        }

    def _notes(self) -> list[str]:
        wheres = {"sweep": "in the sweep", "fresh": "with fresh seeds", "papers_choice": "with the paper's values"}
        counts = {name: [each.n for row in self.rows if (each := row.scores[name])] for name in wheres}
        runs = [f"{range_text(counts[name])} {where}" for name, where in wheres.items() if counts[name]]
        close = []
        for row in self.rows:
            words = [f"({_values_text(each)})" for each in row.as_good[:_MAX_LISTED]]
            words += ["others"] if len(row.as_good) > _MAX_LISTED else []
            close.append(f"{dt_text(row.dt)}: {len(row.as_good)} {join_words(words)}".rstrip())
        return [
            f"Scores are the mean return over learning ± one standard error; n = {join_words(runs)}. In the sweep the "
            "winner's is too good, since it won by it. The paper's values are scored in our sweep.",
            "The difference is that of ours with fresh seeds minus the paper's values, with a 95 % interval by Welch's "
            "t."
            if counts["fresh"]
            else "The winners have not been run again with fresh seeds.",
            f"Of {self.tried - 1} other choices so many are as good, being behind the winner by less than the standard "
            f"error of the difference: {'; '.join(close)}.",
        ]


def tuned_table(data: PaperResults, name: str) -> TunedTable:
    published = PUBLISHED_TABLES[name]
    sweep = data.outcome(published.sweep)
    fresh = data.outcomes.get(winners_name(published.sweep))
    rows = tuple(_row(published, sweep, winner, fresh) for winner in winners(sweep).values())
    return TunedTable(name, published, rows, len(sweep.where(dt=rows[0].dt)), sweep.scale)


def _row(published: PublishedTable, sweep: Outcome, winner: Winner, fresh: Outcome | None) -> TunedRow:
    names, dt = tuple(published.short), winner.cell.dt
    paper = published.values[str(dt)]
    # The paper prints three digits of a discount, and the sweep has six.
    choice = min(sweep.where(dt=dt), key=lambda cell: dist(_cell_values(cell, names), paper))
    ours = _cell_values(winner.cell, names)
    (again,) = (fresh.where(dt=dt, **dict(zip(names, ours, strict=True))) if fresh else ()) or (None,)
    compared = () if again is None or choice is winner.cell else (again, choice)
    scores = {
        "sweep": mean_score(winner.cell),
        "fresh": None if again is None else mean_score(again),
        "papers_choice": mean_score(choice),
        "difference": compare(*(cell.seed_scores for cell in compared), failed="exclude").difference
        if compared and all(map(mean_score, compared))
        else None,
    }
    as_good = tuple(_cell_values(cell, names) for cell in winner.as_good)
    return TunedRow(dt, paper, ours, choice is winner.cell, scores, as_good)


def _cell_values(cell: OutcomeCell, names: Sequence[str]) -> tuple[float, ...]:
    return tuple(cell.labels[name] for name in names)


def _values_text(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" if value < 10 else f"{value:g}" for value in values)
