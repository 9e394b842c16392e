"""The answer in sentences: the best cycle time, what a rule changes and saves, and what the data do not decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cycletime.reports.power import MOST_SEEDS, POWER, seeds_needed
from cycletime.reports.savings import Price, Saving
from cycletime.reports.scores import AS_GIVEN, Ending, StudyScores
from cycletime.reports.summary import Best, Summary
from cycletime.reports.words import difference, hours, several, span, value_and_interval
from cycletime.statistics import Comparison, Estimate

_OUTCOMES: Mapping[Ending, str] = {
    "unfinished": "{} not done yet",
    "failed": "{} failed and given up ('cycletime study status' says why)",
    "astray": "{} without a finite score, since learning diverged or no episode ended",
}


@dataclass(frozen=True)
class Answer:
    """Sentences about a panel."""

    best: tuple[str, ...]
    """The best cycle time of each rule."""
    against: tuple[str, ...]
    """Where rules differ from the first."""
    undecided: tuple[str, ...]
    """What was not decided."""

    @classmethod
    def of(cls, summary: Summary) -> Answer:
        """Tell what a panel says."""
        best = [_best_of(rule, best) for rule, best in summary.best.items() if best is not None]
        against = [each for rule in summary.panel.rules[1:] for each in _against(summary, rule)]
        undecided = [*_undecided_rules(summary), *_undecided_dts(summary)]
        if undecided:
            undecided.append(
                f"Numbers of seeds are rough estimates: for a verdict in {100 * POWER:.0f} % of such studies, if the "
                "true differences and spreads are those seen here, which few seeds measure badly."
            )
        return cls(tuple(best), tuple(against), tuple(undecided))


def completeness(scores: StudyScores) -> tuple[str, ...]:
    """How many runs there are, and what became of the others."""
    counts, remarks = scores.counts(), [run for run in scores.runs() if run.result.get("remarks")]
    if counts["scored"] == counts.total():
        told = [f"All {counts.total():,} runs have a score."]
    else:
        others = [text.format(f"{counts[outcome]:,}") for outcome, text in _OUTCOMES.items() if counts[outcome]]
        told = [f"{counts['scored']:,} of {counts.total():,} runs have a score; the others: {several(others)}."]
    if counts["unfinished"]:
        told.append("The study is not complete: what follows is what there is so far.")
    if counts["astray"] + counts["failed"]:
        told.append(
            "Runs without a score are left out of means, so that rules which have some look better than they are."
        )
    told += scores.folder.damage()
    if remarks:
        told.append(f"Resumed in a way that may have changed their last bits: {len(remarks):,} of the runs.")
    return tuple(told)


def saving_text(saving: Saving) -> tuple[str, ...]:
    """What a rule saves."""
    once = (
        f"This study, which contains that grid where it is tuned, takes {_priced(saving.study)}"
        if saving.contains_tuning
        else f"Tuning at one of them and carrying the values by a rule takes {_priced(saving.once)}, and measuring "
        f"that as this study does {_priced(saving.study)}"
    )
    saved = (
        f"; so the rule saves {_priced(saving.saved)}."
        if saving.saved.is_positive
        else ", which is not less: measuring rules costs more here than tuning each would."
    )
    told = (
        f"Tuning each of {saving.dts} cycle times {saving.how}, {saving.points} points with {saving.seeds} seeds, "
        f"would take {_priced(saving.each)}; hours are of the environment's time, on a robot those of the robot. "
        f"{once}{saved}"
    )
    caution = (
        "Whether carried values are as good as those is another question: this study does not tune each cycle time."
    )
    return (told,) if saving.contains_tuning else (told, caution)


def _priced(price: Price) -> str:
    return f"{price.runs:,} runs ({hours(price.hours)})"


def _best_of(rule: str, best: Best) -> str:
    mean = f"a mean of {value_and_interval(best.mean)} (n = {best.mean.n})"
    name = "The best cycle time" if rule == AS_GIVEN else f"The best cycle time of {rule}"
    if best.runner_up is None:
        return f"Only {span(best.dt)} has scores{'' if rule == AS_GIVEN else f' of {rule}'}: {mean}."
    told = difference(best.against[best.runner_up].difference)
    if not best.undecided:
        decided = "decided against all others"
    elif best.runner_up in best.undecided:
        decided = f"not decided against {several([span(dt) for dt in best.undecided])}"
    else:
        decided = f"decided against the runner-up, but not against {several([span(dt) for dt in best.undecided])}"
    return f"{name} is {span(best.dt)} with {mean}; the runner-up is {span(best.runner_up)}, {told}: {decided}."


def _against(summary: Summary, rule: str) -> list[str]:
    panel, first = summary.panel, summary.panel.rules[0]
    places = {verdict: [dt for dt in panel.dts if summary.verdict((rule, dt)) == verdict] for verdict in
              ("better", "worse", "undecided", "same runs")}  # fmt: skip
    parts = [
        f"{verdict} than {first} at {several([span(dt) for dt in places[verdict]])}"
        for verdict in ("better", "worse")
        if places[verdict]
    ]
    if not parts and places["undecided"]:
        parts.append(f"neither better nor worse than {first} at any cycle time as far as the data decide")
    if places["undecided"] and (places["better"] or places["worse"]):
        parts.append(f"undecided at {several([span(dt) for dt in places['undecided']])}")
    if places["same runs"]:
        parts.append(
            f"the same as {first} at {several([span(dt) for dt in places['same runs']])}, with the same values"
        )
    told = [f"{rule} is {'; '.join(parts)}."] if parts else []
    if (gain := summary.advantages[rule]) is not None:
        told.append(f"Over all cycle times, {rule} minus {first} is {difference(gain)}: {_sign(gain)}.")
    return told


def _sign(gain: Estimate) -> str:
    if gain.low is None or gain.high is None or gain.low <= 0 <= gain.high:
        return "undecided"
    return "better" if gain.low > 0 else "worse"


def _undecided_rules(summary: Summary) -> list[str]:
    panel, first, told = summary.panel, summary.panel.rules[0], []
    for (rule, dt), each in summary.comparisons.items():
        alike = [other for other in panel.rules[1:] if panel.shares_runs(rule, other, dt)]
        if summary.verdict((rule, dt)) == "undecided" and rule == alike[0]:
            needed = _needed(panel.scores(rule, dt), panel.scores(first, dt), each)
            told.append(
                f"{several(alike)} against {first} at {span(dt)}: {difference(each.difference)}{_p(each)}; {needed}."
            )
    return told


def _undecided_dts(summary: Summary) -> list[str]:
    told = []
    for rule, best in summary.best.items():
        if best is not None and best.runner_up in best.undecided:
            each = best.against[best.runner_up]
            x, y = (summary.panel.scores(rule, dt) for dt in (best.dt, best.runner_up))
            what = f"{span(best.dt)} against {span(best.runner_up)}{'' if rule == AS_GIVEN else f' with {rule}'}"
            told.append(f"{what}: {difference(each.difference)}{_p(each)}; {_needed(x, y, each)}.")
    return told


def _p(each: Comparison) -> str:
    if each.p_value is None:
        return ""
    return f", p = {each.p_value:.2g}{f' after {each.comparisons} comparisons' if each.comparisons > 1 else ''}"


def _needed(x: Sequence[float], y: Sequence[float], each: Comparison) -> str:
    n = min(len(x), len(y))
    if n < 2:
        return "one run says nothing of the spread, so at least 2 seeds are needed"
    seeds = seeds_needed(x, y, each.comparisons, each.confidence)
    if seeds is None:
        return f"so small a difference would take more than {MOST_SEEDS:,} seeds to decide"
    return f"about {seeds} seeds would decide it, {seeds - n} more"
