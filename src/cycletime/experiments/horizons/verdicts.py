"""What the trial says of the candidates, by criteria that were fixed before it was run; and the ranking as text.

- **Better**, **no worse** or **worse** is a candidate than the paper's rules if, from tuned values, its average is more
  than that of each of them, less than that of none, or less than that of one. What counts is what is sure: intervals of
  differences that exclude zero, and that hold for all candidates together (95 %).
- **The winner** has the best average from tuned values. Its rule gets the name 'horizons'.
- **The default** becomes the winner's rule if its average from tuned values is more than that of the default, which is
  'dt-aware' for PPO and 'scaled' (of tuned values, 'tuned-scaled') for SAC, and there is no objection: from untuned
  values the average, from either the worst cycle time, and from tuned values the average on each task that judges are
  not less than the default's.
- **A prediction** of the preregistration, 'more' or 'less', has held if the trial finds the same sign, is refuted if it
  finds the other, and else is not decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from cycletime.experiments.horizons.preregistration import comparison_key, planned_comparisons
from cycletime.experiments.horizons.ranking import MEASURES, START_KINDS, RuleComparison
from cycletime.rules.hyperparameters import align_columns


def judged_predictions(trial: RuleComparison, predictions: Mapping[str, Any], name: str) -> dict[str, str]:
    """By comparison with a predicted sign: 'held', 'refuted' or 'not decided'."""
    found = {}
    for kind, measure, reference in planned_comparisons(trial.spec):
        key = comparison_key(kind, measure, reference)
        predicted, sign = predictions[name][key]["predicted"], trial.advantage(name, reference, kind, measure).sign
        if predicted != "undecided":
            found[key] = "held" if sign == predicted else "not decided" if sign == "undecided" else "refuted"
    return found


def ranking_text(comparison: RuleComparison, scale: str = "") -> str:
    lines: list[str] = []
    others = [name for name in comparison.spec.references if name != "baseline"]
    header = ("rule", "average", "worst cycle time", *(f"average over {each}'s" for each in others), "lowest at")
    for kind in START_KINDS:
        rows = []
        for rule in comparison.ranked(kind, "average"):
            found = [comparison.interval(rule, kind, measure) for measure in MEASURES]
            more = ("" if rule == other else comparison.interval(rule, kind, "average", other) for other in others)
            rows.append((rule, *map(str, found), *map(str, more), _lowest_text(comparison, rule, kind)))
        lines += [
            f"From {kind} values: {len(comparison.starts_of(kind))} starting points on {', '.join(comparison.dts)}, "
            f"{comparison.seeds} runs of each cell{scale}; 0 is doing nothing and 1 tuning at each cycle time; [95 % "
            "intervals].",
            "",
            *align_columns([header, *rows]),
            "",
        ]
    return "\n".join(lines)


def verdicts_text(trial: RuleComparison, predictions: Mapping[str, Any]) -> str:
    lines = [excluded_text(trial), ""]
    for name in trial.judged:
        differences = [f"{trial.advantage(name, other)} more than {other}" for other in trial.spec.references]
        counts = Counter(judged_predictions(trial, predictions, name).values())
        became = ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"
        lines += [
            f"{name}: {trial.verdict(name)} than the paper's rules.",
            f"    From tuned values it has on average {'; '.join(differences)}. Predictions: {became}.",
        ]
    return "\n".join([*lines, "", decision_text(trial)])


def decision_text(trial: RuleComparison) -> str:
    against = "; ".join(f"{where} is less, {less}" for where, less in trial.objections().items()) or "none"
    decision = "replaces" if trial.changes_default else "does not replace"
    default = f"As the default it {decision} {trial.spec.default}. Objections: {against}."
    return f"The winner is {trial.winner}. {default}"


def excluded_text(comparison: RuleComparison) -> str:
    sentences = []
    for task, scale in comparison.scales.items():
        counted = comparison.dts.get(task)
        if counted is None:
            sentences.append(f"{task} says nothing: tuning has not learned there at enough cycle times.")
        elif missing := [str(dt) for dt in scale.retuned if dt not in counted]:
            sentences.append(f"{task} counts without {', '.join(missing)}, where tuning has not learned.")
    return " ".join(sentences) or "All tasks and cycle times count."


def _lowest_text(comparison: RuleComparison, rule: str, kind: str) -> str:
    found = (
        (float(score), start, dt)
        for start in comparison.starts_of(kind)
        for score, dt in zip(comparison.scores(rule, start)[0], comparison.targets(start), strict=True)
    )
    score, start, dt = min(found, key=lambda each: each[0])
    return f"{score:.2f} on {start.task} from {start.values.dt} to {dt}"
