"""The ranking and the verdicts for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cycletime.horizons.judging import JudgedTrial
from cycletime.horizons.ranking import KINDS, RuleComparison
from cycletime.rules.explain import aligned


def ranking_in_words(comparison: RuleComparison) -> str:
    """For each kind of starting points a table of all rules, the best average first."""
    lines: list[str] = []
    header = (
        "rule",
        "average",
        "worst cycle time",
        *(f"average over {each}'s" for each in _others(comparison)),
        "lowest at",
    )
    for kind in KINDS:
        runs = " or ".join(map(str, sorted({n for outcome in comparison.outcomes.values() for n in outcome.n})))
        lines += [
            f"From {kind} values: {len(comparison.begun(kind))} starting points on {', '.join(comparison.dts)}, {runs} "
            "runs of each cell; 0 is doing nothing and 1 tuning at each cycle time; [95 % intervals].",
            "",
            *aligned([header, *_rows(comparison, kind)]),
            "",
        ]
    return "\n".join(lines)


def verdicts_in_words(trial: JudgedTrial, predictions: Mapping[str, Any]) -> str:
    """What the trial says of each candidate, of what was predicted of it, and of the default."""
    lines = [left_out_in_words(trial.comparison), ""]
    for name in trial.candidates:
        told = [f"{trial.more(name, other)} more than {other}" for other in trial.comparison.subject.references]
        counts = Counter(trial.of_predictions(predictions, name).values())
        became = ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"
        lines += [
            f"{name}: {trial.verdict(name)} than the paper's rules.",
            f"    From tuned values it has on average {'; '.join(told)}. Predictions: {became}.",
        ]
    return "\n".join([*lines, "", decision_in_words(trial)])


def decision_in_words(trial: JudgedTrial) -> str:
    """Who has won, and whether that changes the default."""
    against = "; ".join(f"{each.where} is less, {each.less}" for each in trial.objections()) or "nothing"
    decision = "replaces" if trial.changes_default else "does not replace"
    default = f"As the default it {decision} {trial.default}; what speaks against it: {against}."
    return f"The winner is {trial.winner}. {default}"


def left_out_in_words(comparison: RuleComparison) -> str:
    """Which tasks and cycle times do not count."""
    told = []
    for task, scale in comparison.scales.items():
        counted = comparison.dts.get(task)
        if counted is None:
            told.append(f"{task} says nothing: tuning has not learned there at enough cycle times.")
        elif missing := [str(dt) for dt in scale.retuned if dt not in counted]:
            told.append(f"{task} counts without {', '.join(missing)}, where tuning has not learned.")
    return " ".join(told) or "All tasks and cycle times count."


def _rows(comparison: RuleComparison, kind: str) -> Iterator[tuple[str, ...]]:
    for rule in comparison.ranked(kind, "average"):
        yield (
            rule,
            str(comparison.interval(rule, kind, "average")),
            str(comparison.interval(rule, kind, "worst")),
            *(_over(comparison, rule, kind, other) for other in _others(comparison)),
            _lowest(comparison, rule, kind),
        )


def _others(comparison: RuleComparison) -> tuple[str, ...]:
    """The paper's rules that change something."""
    return tuple(name for name in comparison.subject.references if name != "baseline")


def _over(comparison: RuleComparison, rule: str, kind: str, other: str) -> str:
    return "" if rule == other else str(comparison.interval(rule, kind, "average", less=other))


def _lowest(comparison: RuleComparison, rule: str, kind: str) -> str:
    """Where a rule does worst of all."""
    found = (
        (float(score), start, dt)
        for start in comparison.begun(kind)
        for score, dt in zip(comparison.scores(rule, start)[0], comparison.dts[start.task], strict=True)
    )
    score, start, dt = min(found, key=lambda each: each[0])
    return f"{score:.2f} on {start.task} from {start.values.dt} to {dt}"
