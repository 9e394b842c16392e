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
from cycletime.reports.formatting import TextTable, dt_text, estimate_as_json, estimate_or_dash, join_words, range_text
from cycletime.statistics import Estimate, compare

_COLUMNS = 100
_MAX_LISTED = 6
"""Values that are as good as a winner; others are counted."""


@dataclass(frozen=True)
class PublishedTable:
    title: str
    sweep: str
    short: Mapping[str, str]
    """By hyper-parameter, its letter."""
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
    sweep: Estimate
    """The winner's score in the sweep, which is too good, since it won by it."""
    fresh: Estimate | None
    """The winner's score with fresh seeds, once it was run."""
    papers_choice: Estimate | None
    """The score of the paper's values in our sweep; None if every run diverged."""
    difference: Estimate | None
    """Our winner with fresh seeds less the paper's values, with its interval; None where both are the same."""
    as_good: tuple[tuple[float, ...], ...]
    """Other values that are behind the winner in the sweep by less than the standard error of the difference."""


@dataclass(frozen=True)
class TunedTable:
    name: str
    published: PublishedTable
    rows: tuple[TunedRow, ...]
    tried: int
    """How many choices of values the sweep has at a cycle time."""
    scale: float

    def as_text(self) -> str:
        """For people, in lines of about 100 characters."""
        table = self.text_table()
        notes = [line for note in table.notes for line in wrap(f"- {note}", _COLUMNS, subsequent_indent="  ")]
        return "\n".join([table.title, "", *table.markdown(is_aligned=True), "", *notes]) + "\n"

    def text_table(self) -> TextTable:
        letters = ", ".join(self.published.short.values())
        header = ("dt", f"paper {letters}", f"our {letters}", "ours, sweep", "ours, fresh", "paper's", "difference")
        title = f"{self.published.title}{scale_label(self.scale)}"
        return TextTable(header, [self._cells(row) for row in self.rows], title, self._notes())

    def as_json(self) -> dict[str, Any]:
        names = tuple(self.published.short)
        return {
            "table": self.name,
            "title": self.published.title,
            "scale": self.scale,
            "tried": self.tried,
            "rows": [
                {
                    "dt_s": float(row.dt),
                    "paper": dict(zip(names, row.paper, strict=True)),
                    "ours": dict(zip(names, row.ours, strict=True)),
                    "same": row.is_same,
                    "sweep": estimate_as_json(row.sweep),
                    "fresh": estimate_as_json(row.fresh),
                    "papers_choice": estimate_as_json(row.papers_choice),
                    "difference": estimate_as_json(row.difference),
                    "as_good": [dict(zip(names, values, strict=True)) for values in row.as_good],
                }
                for row in self.rows
            ],
        }

    def _cells(self, row: TunedRow) -> tuple[str, ...]:
        difference = "same values" if row.is_same else estimate_or_dash(row.difference)
        means = map(estimate_or_dash, (row.sweep, row.fresh, row.papers_choice))
        return (dt_text(row.dt), _values_text(row.paper), _values_text(row.ours), *means, difference)

    def _notes(self) -> list[str]:
        counts: dict[str, list[Estimate | None]] = {
            "in the sweep": [row.sweep for row in self.rows],
            "with fresh seeds": [row.fresh for row in self.rows],
            "with the paper's values": [row.papers_choice for row in self.rows],
        }
        runs = [
            f"{range_text([each.n for each in estimates if each])} {where}"
            for where, estimates in counts.items()
            if any(estimates)
        ]
        close = [f"{dt_text(row.dt)}: {len(row.as_good)}{_choices_text(row.as_good)}" for row in self.rows]
        return [
            f"Scores are the mean return over learning ± one standard error; n = {join_words(runs)}. In the sweep the "
            "winner's is too good, since it won by it. The paper's values are scored in our sweep.",
            "The difference is that of ours with fresh seeds minus the paper's values, with a 95 % interval by Welch's "
            "t."
            if any(row.fresh for row in self.rows)
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
    names, paper = tuple(published.short), published.values[str(winner.dt)]
    # The paper prints three digits of a discount, and the sweep has six.
    choice = min(sweep.where(dt=winner.dt), key=lambda cell: dist(_cell_values(cell, names), paper))
    ours = _cell_values(winner.cell, names)
    (again,) = (fresh.where(dt=winner.dt, **dict(zip(names, ours, strict=True))) if fresh else ()) or (None,)
    is_same = choice is winner.cell
    return TunedRow(
        winner.dt,
        paper,
        ours,
        is_same,
        winner.mean,
        None if again is None else mean_score(again),
        mean_score(choice),
        None if again is None or is_same else _difference(again, choice),
        tuple(_cell_values(cell, names) for cell in winner.as_good),
    )


def _cell_values(cell: OutcomeCell, names: Sequence[str]) -> tuple[float, ...]:
    return tuple(cell.labels[name] for name in names)


def _difference(ours: OutcomeCell, papers: OutcomeCell) -> Estimate | None:
    if mean_score(ours) is None or mean_score(papers) is None:
        return None
    return compare(ours.seed_scores, papers.seed_scores, failed="exclude").difference


def _values_text(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" if value < 10 else f"{value:g}" for value in values)


def _choices_text(choices: Sequence[tuple[float, ...]]) -> str:
    words = [f"({_values_text(each)})" for each in choices[:_MAX_LISTED]]
    more = ["others"] if len(choices) > len(words) else []
    return f" {join_words([*words, *more])}" if words else ""
