"""The page's parts that are made from results; SAC's have names that begin with 'sac-'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median_low

from cycletime.agents import SACAgent
from cycletime.duration import Duration
from cycletime.experiments.horizons import sac_arms
from cycletime.experiments.horizons.ranking import MEASURES, START_KINDS, Interval, RuleComparison
from cycletime.experiments.horizons.results import Evidence, all_evidence
from cycletime.experiments.horizons.verdicts import decision_text, excluded_text, judged_predictions
from cycletime.experiments.outcome import NotRunError, Outcome, OutcomeCell, Results, winners
from cycletime.experiments.page_parts import PagePart, fill_parts, read_page
from cycletime.reports.formatting import TextTable, dt_text, estimate_text
from cycletime.reports.page.document import write_text
from cycletime.rules.quantities import decay_in_seconds
from cycletime.statistics import Estimate, mean_and_error

_MEASURE_NAMES = {"average": "average", "worst": "worst cycle time"}
_OVER = ("", ", over tasks")


def best_horizons_table(evidence: Evidence) -> str:
    rows = []
    for task, tuning in evidence.tunings.items():
        found = winners(tuning)
        for rate in evidence.spec.horizons:
            cells = [_horizon_range(rate, [each.cell, *each.as_good]) for each in found.values()]
            rows.append((task, rate.removesuffix("_decay"), f"{dt_text(min(found))} to {dt_text(max(found))}", *cells))
    names = ("task", "horizon", "cycle times")
    count = len(rows[0]) - len(names)
    dts = ["shortest", *[""] * (count - 2), "longest"]
    dts[median_low(range(count))] = "middle"
    return _markdown((*names, *dts), rows)


def measures_table(comparison: RuleComparison, rules: Iterable[str]) -> str:
    columns = list(product(START_KINDS, MEASURES))
    header = ("rule", *(f"{kind}, {_MEASURE_NAMES[measure]}" for kind, measure in columns))
    rows = []
    for rule in rules:
        tasks = (comparison.over_tasks(rule, *column) for column in columns)
        numbers = (_interval_text(comparison.interval(rule, *column)) for column in columns)
        if len(comparison.dts) > 2:  # two tasks have an interval as wide as the scale
            numbers = (f"{text}; [{each.low:.2f}, {each.high:.2f}]" for text, each in zip(numbers, tasks, strict=True))
        rows.append((f"`{rule}`", *numbers))
    return _markdown(header, rows)


def task_table(comparison: RuleComparison) -> str:
    rows = []
    for kind in START_KINDS:
        for rule in comparison.ranked(kind, "average"):
            means = (comparison.interval(rule, kind, "average", task=task) for task in comparison.dts)
            rows.append((kind, f"`{rule}`", *map(_interval_text, means)))
    return _markdown(("values", "rule", *comparison.dts), rows)


def updates_table(comparison: RuleComparison) -> str:
    """The return of the best discount by task, cycle time and updates per second of SAC, with its standard error."""
    best: dict[tuple[str, Duration], dict[float, Estimate]] = {}
    for task, outcome in comparison.outcomes.items():
        for cell in sorted(outcome.cells, key=lambda cell: cell.dt):
            if cell.values["target_smoothing"] == SACAgent.target_smoothing:
                row = best.setdefault((task, cell.dt), {})
                rate = float(cell.values["gradient_steps"] / cell.values["learning_period"] / float(cell.dt))
                found = mean_and_error(cell.scores, failed="exclude")
                row[rate] = max(row.get(rate, found), found, key=lambda each: each.value)
    rates = sorted({rate for row in best.values() for rate in row})
    header = ("task", "cycle time", *(f"{rate:.3g} updates/s" for rate in rates))
    rows = [
        (task, dt_text(dt), *(estimate_text(row[rate]) if rate in row else "" for rate in rates))
        for (task, dt), row in best.items()
    ]
    return _markdown(header, rows)


def verdicts_table(trial: RuleComparison) -> str:
    references = trial.spec.references
    header = ("candidate", "verdict", *(f"more than `{other}`{over}" for other in references for over in _OVER))
    rows = []
    for name in trial.judged:
        numbers = (
            (trial.advantage(name, other), trial.over_tasks(name, "tuned", "average", other)) for other in references
        )
        rows.append((f"`{name}`", f"**{trial.verdict(name)}**", *(str(each) for pair in numbers for each in pair)))
    return _markdown(header, rows)


def default_table(trial: RuleComparison) -> str:
    rows = [
        (where, str(trial.advantage(trial.winner, trial.spec.default, *what)))
        for where, what in trial.conditions.items()
    ]
    return _markdown(("", f"`{trial.winner}` more than `{trial.spec.default}`"), rows)


def predictions_table(evidence: Evidence) -> str:
    rows = []
    for name in evidence.trial.judged:
        found = judged_predictions(evidence.trial, evidence.predictions, name)
        counts = Counter(found.values())
        wrong = ", ".join(key.replace("_", " ") for key, became in found.items() if became != "held")
        rows.append((f"`{name}`", *(str(counts[word]) for word in ("held", "refuted", "not decided")), wrong))
    return _markdown(("candidate", "held", "refuted", "not decided", "which did not hold"), rows)


def post_hoc_table(evidence: Evidence) -> str:
    """The rule that the trial suggested minus the paper's rules and the winner, on all tasks."""
    trial, rule = evidence.trial, evidence.spec.post_hoc
    assert rule is not None, "of this algorithm, a trial has suggested one"
    others = (*evidence.spec.references, trial.winner)
    rows = []
    for comparison in (trial, evidence.search):
        beside = replace(comparison, rules={**comparison.rules, rule.name: rule})
        for kind, measure in product(START_KINDS, MEASURES):
            more = (str(beside.interval(rule.name, kind, measure, less=other)) for other in others)
            own = _interval_text(beside.interval(rule.name, kind, measure))
            rows.append((", ".join(comparison.dts), f"{kind}, {_MEASURE_NAMES[measure]}", own, *more))
    return _markdown(("tasks", "values", f"`{rule.name}`", *(f"more than `{other}`" for other in others)), rows)


def provenance_table(outcomes: Iterable[Outcome]) -> str:
    header = ("study", "runs", "environment steps", "made by", "code", "on", "wall time")
    rows = [
        (each.name, f"{each.about['runs']:,}", f"{each.env_steps:,}", f"`{each.about['command']}`", *each.made_by)
        for each in outcomes
    ]
    return _markdown(header, rows)


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(TextTable(header, list(rows)).markdown())


def _horizon_range(rate: str, cells: Sequence[OutcomeCell]) -> str:
    best, *others = (decay_in_seconds(cell.values[rate], float(cell.dt)) for cell in cells)
    every = (best, *others)
    around = f" ({min(every):.2g} to {max(every):.2g})" if min(every) < max(every) else ""
    return f"{best:.2g} s{around}"


def _interval_text(found: Interval) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


FIGURES = Path("figures", "horizons")
IMAGES = {
    "tuned-horizons": ("tunings", "Maps of discount horizons against the cycle time, one for each task"),
    "search": ("search", "Scores on Reacher and Double Pendulum, by starting point and cycle time"),
    "trial": ("trial", "Scores on the other tasks, by starting point and cycle time"),
}
"""By figure, the evidence that it needs, and what it is called for those who do not see it."""


def _image(name: str, evidence: Evidence) -> str:
    needed, words = IMAGES[name]
    getattr(evidence, needed)
    return f"![{words}]({(FIGURES / f'{evidence.spec.prefix}{name}.png').as_posix()})"


PARTS: Mapping[str, Callable[[Evidence], str]] = {
    "tuned-horizons": best_horizons_table,
    "search": lambda evidence: measures_table(evidence.search, evidence.search.ranked("tuned", "average")),
    "trial": lambda evidence: measures_table(evidence.trial, evidence.trial.ranked("tuned", "average")),
    "trial-by-task": lambda evidence: task_table(evidence.trial),
    "left-out": lambda evidence: excluded_text(evidence.trial),
    "verdicts": lambda evidence: verdicts_table(evidence.trial),
    "against-default": lambda evidence: default_table(evidence.trial),
    "decision": lambda evidence: decision_text(evidence.trial),
    "predictions": predictions_table,
    "origins": lambda evidence: provenance_table(evidence.outcomes),
    **{f"{name}-figure": partial(_image, name) for name in IMAGES},
}
SAC_PARTS: Mapping[str, Callable[[Evidence], str]] = {
    **PARTS,
    "search-updates": lambda evidence: updates_table(evidence.search),
    "trial-updates": lambda evidence: updates_table(evidence.trial),
    "afterwards": post_hoc_table,
    "arms": lambda evidence: sac_arms.verdicts_text(evidence.results.outcome(sac_arms.NAME)),
}
"""The same of SAC, whose candidates change how many updates there are, and whose trial has suggested one more."""


def save_figures(results: Results, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    from cycletime.experiments.horizons import figures  # with Matplotlib

    return figures.save_figures(results, folder, only)


def write_page(results: Results, page: Path) -> list[Path]:
    text = fill_page(read_page(page), all_evidence(results))
    figures = save_figures(results, page.parent / FIGURES) if f"({FIGURES.as_posix()}/" in text else []
    write_text(page, text)
    return [page, *figures]


def missing_figures(results: Results) -> dict[str, str]:
    missing = {}
    for evidence, name in product(all_evidence(results), IMAGES):
        try:
            _image(name, evidence)
        except NotRunError as error:
            missing[evidence.spec.prefix + name] = ", ".join(error.needed)
    return missing


def fill_page(text: str, evidence: Sequence[Evidence]) -> str:
    parts = {
        each.spec.prefix + name: PagePart(each.spec.algorithm, partial(_labelled, make, each))
        for each in evidence
        for name, make in (PARTS if each.spec.algorithm == "ppo" else SAC_PARTS).items()
    }
    return fill_parts(text, parts)


def _labelled(make: Callable[[Evidence], str], evidence: Evidence) -> str:
    label = "" if make is SAC_PARTS["arms"] else evidence.scale_label  # which says its own
    return f"{make(evidence)}\n\n{label.strip()}".rstrip()
