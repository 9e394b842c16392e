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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from cycletime.experiments.horizons.preregistration import comparison_key, planned_comparisons, sign_of
from cycletime.experiments.horizons.ranking import START_KINDS, Interval, Measure, RuleComparison
from cycletime.rules.hyperparameters import align_columns

Verdict: TypeAlias = Literal["better", "no worse", "worse"]


@dataclass(frozen=True)
class Objection:
    """A condition in which the winner is less than the default for sure."""

    where: str
    less: Interval


@dataclass(frozen=True)
class JudgedTrial:
    """A comparison on tasks that the candidates were not chosen on."""

    comparison: RuleComparison

    @property
    def candidates(self) -> tuple[str, ...]:
        """By name, the best average from tuned values first."""
        return tuple(name for name in self.comparison.ranked("tuned", "average") if name in self.comparison.candidates)

    @property
    def winner(self) -> str:
        return self.candidates[0]

    @property
    def default(self) -> str:
        return self.comparison.spec.default

    def more(
        self, name: str, than: str, kind: str = "tuned", measure: Measure = "average", task: str | None = None
    ) -> Interval:
        """A candidate minus a reference rule; the intervals hold for all candidates together."""
        together = len(self.candidates)
        return self.comparison.interval(name, kind, measure, less=than, task=task, together=together)

    def verdict(self, name: str) -> Verdict:
        signs = {sign_of(self.more(name, reference)) for reference in self.comparison.spec.references}
        return "worse" if "less" in signs else "better" if signs == {"more"} else "no worse"

    @property
    def changes_default(self) -> bool:
        return sign_of(self.more(self.winner, self.default)) == "more" and not any(self.objections())

    @property
    def conditions(self) -> Mapping[str, tuple[str, Measure, str | None]]:
        """By name, the arguments of `more` at which the winner is compared with the default."""
        return {
            "the average from tuned values": ("tuned", "average", None),
            "the average from untuned values": ("untuned", "average", None),
            "the worst cycle time from tuned values": ("tuned", "worst", None),
            "the worst cycle time from untuned values": ("untuned", "worst", None),
            **{f"the average from tuned values on {task}": ("tuned", "average", task) for task in self.comparison.dts},
        }

    def objections(self) -> Iterator[Objection]:
        for where, what in self.conditions.items():
            found = self.more(self.winner, self.default, *what)
            if sign_of(found) == "less":
                yield Objection(where, found)

    def of_predictions(self, predictions: Mapping[str, Any], name: str) -> dict[str, str]:
        """By comparison with a predicted sign: 'held', 'refuted' or 'not decided'."""
        found = {}
        for kind, measure, reference in planned_comparisons(self.comparison.spec):
            key = comparison_key(kind, measure, reference)
            predicted = predictions[name][key]["predicted"]
            sign = sign_of(self.more(name, reference, kind, measure))
            if predicted != "undecided":
                found[key] = "held" if sign == predicted else "not decided" if sign == "undecided" else "refuted"
        return found


def ranking_text(comparison: RuleComparison) -> str:
    """A table of all rules for each kind of starting points, the best average first."""
    lines: list[str] = []
    header = (
        "rule",
        "average",
        "worst cycle time",
        *(f"average over {each}'s" for each in _other_references(comparison)),
        "lowest at",
    )
    for kind in START_KINDS:
        runs = " or ".join(map(str, sorted({n for outcome in comparison.outcomes.values() for n in outcome.n})))
        lines += [
            f"From {kind} values: {len(comparison.begun(kind))} starting points on {', '.join(comparison.dts)}, {runs} "
            "runs of each cell; 0 is doing nothing and 1 tuning at each cycle time; [95 % intervals].",
            "",
            *align_columns([header, *_rows(comparison, kind)]),
            "",
        ]
    return "\n".join(lines)


def verdicts_text(trial: JudgedTrial, predictions: Mapping[str, Any]) -> str:
    """The verdict on each candidate, on its predictions, and on the default."""
    lines = [excluded_text(trial.comparison), ""]
    for name in trial.candidates:
        differences = [f"{trial.more(name, other)} more than {other}" for other in trial.comparison.spec.references]
        counts = Counter(trial.of_predictions(predictions, name).values())
        became = ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"
        lines += [
            f"{name}: {trial.verdict(name)} than the paper's rules.",
            f"    From tuned values it has on average {'; '.join(differences)}. Predictions: {became}.",
        ]
    return "\n".join([*lines, "", decision_text(trial)])


def decision_text(trial: JudgedTrial) -> str:
    """The winner, and whether it becomes the default."""
    against = "; ".join(f"{each.where} is less, {each.less}" for each in trial.objections()) or "none"
    decision = "replaces" if trial.changes_default else "does not replace"
    default = f"As the default it {decision} {trial.default}. Objections: {against}."
    return f"The winner is {trial.winner}. {default}"


def excluded_text(comparison: RuleComparison) -> str:
    """Tasks and cycle times that do not count."""
    sentences = []
    for task, scale in comparison.scales.items():
        counted = comparison.dts.get(task)
        if counted is None:
            sentences.append(f"{task} says nothing: tuning has not learned there at enough cycle times.")
        elif missing := [str(dt) for dt in scale.retuned if dt not in counted]:
            sentences.append(f"{task} counts without {', '.join(missing)}, where tuning has not learned.")
    return " ".join(sentences) or "All tasks and cycle times count."


def _rows(comparison: RuleComparison, kind: str) -> Iterator[tuple[str, ...]]:
    for rule in comparison.ranked(kind, "average"):
        yield (
            rule,
            str(comparison.interval(rule, kind, "average")),
            str(comparison.interval(rule, kind, "worst")),
            *(
                "" if rule == other else str(comparison.interval(rule, kind, "average", less=other))
                for other in _other_references(comparison)
            ),
            _lowest_text(comparison, rule, kind),
        )


def _other_references(comparison: RuleComparison) -> tuple[str, ...]:
    return tuple(name for name in comparison.spec.references if name != "baseline")


def _lowest_text(comparison: RuleComparison, rule: str, kind: str) -> str:
    found = (
        (float(score), start, dt)
        for start in comparison.begun(kind)
        for score, dt in zip(comparison.scores(rule, start)[0], comparison.targets(start), strict=True)
    )
    score, start, dt = min(found, key=lambda each: each[0])
    return f"{score:.2f} on {start.task} from {start.values.dt} to {dt}"
