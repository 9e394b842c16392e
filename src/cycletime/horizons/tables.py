"""Tables of the page, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from statistics import median_low

from cycletime.agents import SACAgent
from cycletime.duration import Duration
from cycletime.horizons.evidence import Evidence
from cycletime.horizons.judging import JudgedTrial
from cycletime.horizons.ranking import KINDS, MEASURES, Interval, RuleComparison
from cycletime.paper.outcome import Outcome, OutcomeCell
from cycletime.paper.winners import winners
from cycletime.reports.words import value_and_interval
from cycletime.rules.quantities import decay_in_seconds
from cycletime.statistics import Estimate, mean_and_error

_RATES = {"discount": "discount", "trace_decay": "trace"}
_WORDS = {"average": "average", "worst": "worst cycle time"}


def best_horizons(evidence: Evidence) -> str:
    """By task and cycle time the horizons that tuning found best, and between which those lie that are as good."""
    rows = []
    for task, tuning in evidence.tunings.items():
        found = winners(tuning)
        for rate in evidence.subject.horizons:
            cells = [_span(rate, [each.cell, *each.as_good]) for each in found.values()]
            rows.append((task, _RATES[rate], f"{_ms(min(found))} to {_ms(max(found))}", *cells))
    names = ("task", "horizon", "cycle times")
    return markdown((*names, *_dt_names(len(rows[0]) - len(names))), rows)


def _dt_names(count: int) -> list[str]:
    """Of cycle times in their order: those that are starting points."""
    names = ["shortest", *[""] * (count - 2), "longest"]
    names[median_low(range(count))] = "middle"
    return names


def measures(comparison: RuleComparison, rules: Iterable[str]) -> str:
    """Of rules the average and the worst cycle time, from tuned and untuned values."""
    header = ("rule", *(f"{kind}, {_WORDS[measure]}" for kind in KINDS for measure in MEASURES))
    return markdown(
        header,
        [
            (
                f"`{rule}`",
                *(_short(comparison.interval(rule, kind, measure)) for kind in KINDS for measure in MEASURES),
            )
            for rule in rules
        ],
    )


def by_task(comparison: RuleComparison) -> str:
    """Of rules the average on each task that judges."""
    header = ("values", "rule", *comparison.dts)
    return markdown(
        header,
        [
            (
                kind,
                f"`{rule}`",
                *(_short(comparison.interval(rule, kind, "average", task=task)) for task in comparison.dts),
            )
            for kind in KINDS
            for rule in comparison.ranked(kind, "average")
        ],
    )


def by_updates(comparison: RuleComparison) -> str:
    """By task, cycle time and SAC's updates in a second, the return of the best discount, with its standard error."""
    best: dict[tuple[str, Duration], dict[float, Estimate]] = {}
    for task, outcome in comparison.outcomes.items():
        for cell in sorted(outcome.cells, key=lambda cell: cell.dt):
            if cell.values["target_smoothing"] == SACAgent.target_smoothing:
                row, rate = best.setdefault((task, cell.dt), {}), _updates_per_s(cell)
                found = mean_and_error(cell.scores, failed="exclude")
                row[rate] = max(row.get(rate, found), found, key=lambda each: each.value)
    rates = sorted({rate for row in best.values() for rate in row})
    header = ("task", "cycle time", *(f"{rate:.3g} updates/s" for rate in rates))
    return markdown(
        header,
        [
            (task, _ms(dt), *(value_and_interval(row[rate]) if rate in row else "" for rate in rates))
            for (task, dt), row in best.items()
        ],
    )


def verdicts(trial: JudgedTrial) -> str:
    """Of candidates the verdict, and the differences that it rests on."""
    references = trial.comparison.subject.references
    header = ("candidate", "verdict", *(f"more than `{other}`" for other in references))
    rows = [
        (f"`{name}`", f"**{trial.verdict(name)}**", *(str(trial.more(name, other)) for other in references))
        for name in trial.candidates
    ]
    return markdown(header, rows)


def against_default(trial: JudgedTrial) -> str:
    """What the winner has more than the default rule, in everything that decides."""
    rows = [(where, str(trial.more(trial.winner, trial.default, *what))) for where, what in trial.conditions.items()]
    return markdown(("", f"`{trial.winner}` more than `{trial.default}`"), rows)


def predictions(evidence: Evidence) -> str:
    """What became of the predictions of each candidate."""
    rows = []
    for name in evidence.trial.candidates:
        found = evidence.trial.of_predictions(evidence.predictions, name)
        counts = Counter(found.values())
        wrong = ", ".join(key.replace("_", " ") for key, became in found.items() if became != "held")
        rows.append((f"`{name}`", *(str(counts[word]) for word in ("held", "refuted", "not decided")), wrong))
    return markdown(("candidate", "held", "refuted", "not decided", "which did not hold"), rows)


def afterwards(evidence: Evidence) -> str:
    """What the rule that the trial suggested has more than the paper's and than the winner, on all tasks."""
    trial, rule = evidence.trial, evidence.subject.afterwards
    assert rule is not None, "of this algorithm, a trial has suggested one"
    others = (*evidence.subject.references, trial.winner)
    rows = []
    for comparison in (trial.comparison, evidence.search):
        beside = replace(comparison, rules={**comparison.rules, rule.name: rule})
        for kind, measure in product(KINDS, MEASURES):
            more = (str(beside.interval(rule.name, kind, measure, less=other)) for other in others)
            own = _short(beside.interval(rule.name, kind, measure))
            rows.append((", ".join(comparison.dts), f"{kind}, {_WORDS[measure]}", own, *more))
    return markdown(("tasks", "values", f"`{rule.name}`", *(f"more than `{other}`" for other in others)), rows)


def origins(outcomes: Iterable[Outcome]) -> str:
    """Where the runs come from."""
    header = ("study", "runs", "environment steps", "made by", "code", "on", "wall time")
    return markdown(header, [tuple(_origin(outcome)) for outcome in outcomes])


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _origin(outcome: Outcome) -> Iterator[str]:
    about = outcome.about
    yield from (outcome.name, f"{about['runs']:,}", f"{outcome.env_steps:,}", f"`{about['command']}`")
    for key in ("cycletime", "device"):
        yield ", ".join(sorted({str(each[key]) for each in about["machines"]}))
    yield "not known" if about.get("wall_s") is None else f"{about['wall_s']:.0f} s"


def _updates_per_s(cell: OutcomeCell) -> float:
    return float(cell.values["gradient_steps"] / cell.values["learning_period"] / float(cell.dt))


def _span(rate: str, cells: Sequence[OutcomeCell]) -> str:
    best, *others = (decay_in_seconds(cell.values[rate], float(cell.dt)) for cell in cells)
    every = (best, *others)
    around = f" ({min(every):.2g} to {max(every):.2g})" if min(every) < max(every) else ""
    return f"{best:.2g} s{around}"


def _short(found: Interval) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _ms(dt: Duration) -> str:
    return f"{float(dt) * 1e3:g} ms"
