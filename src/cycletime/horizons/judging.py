"""What the trial says of the candidates, by criteria that were fixed before it was run.

- **Better**, **no worse** or **worse** is a candidate than the paper's rules if, from tuned values, its average is more
  than that of each of them, less than that of none, or less than that of one. What counts is what is sure: intervals of
  differences that exclude zero, and that hold for all candidates together (95 %).
- **The winner** has the best average from tuned values. Its rule gets the name 'horizons'.
- **The default** becomes the winner's rule if its average from tuned values is more than that of the default, which is
  'dt-aware' for PPO and 'scaled' (of tuned values, 'tuned-scaled') for SAC, and nothing speaks against it: from untuned
  values the average, from either the worst cycle time, and from tuned values the average on each task that judges are
  not less than the default's.
- **A prediction** of the frozen list, 'more' or 'less', has held if the trial finds the same sign, is refuted if it
  finds the other, and else is not decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from cycletime.horizons.freezing import compared, comparison_key, sign_of
from cycletime.horizons.ranking import Interval, Measure, RuleComparison

Verdict: TypeAlias = Literal["better", "no worse", "worse"]


@dataclass(frozen=True)
class Objection:
    """Something in which a rule is less than the default for sure."""

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
        """The candidate that is called 'horizons'."""
        return self.candidates[0]

    @property
    def default(self) -> str:
        """The rule that would be replaced."""
        return self.comparison.subject.default

    def more(
        self, name: str, than: str, kind: str = "tuned", measure: Measure = "average", task: str | None = None
    ) -> Interval:
        """What a candidate has more than a rule of the paper, for all candidates together."""
        together = len(self.candidates)
        return self.comparison.interval(name, kind, measure, less=than, task=task, together=together)

    def verdict(self, name: str) -> Verdict:
        """On a candidate."""
        signs = {sign_of(self.more(name, reference)) for reference in self.comparison.subject.references}
        return "worse" if "less" in signs else "better" if signs == {"more"} else "no worse"

    @property
    def changes_default(self) -> bool:
        """Whether the winner should be what users get who name no rule."""
        return sign_of(self.more(self.winner, self.default)) == "more" and not any(self.objections())

    @property
    def conditions(self) -> Mapping[str, tuple[str, Measure, str | None]]:
        """In words and as `more` takes them, where the winner is compared with the default."""
        return {
            "the average from tuned values": ("tuned", "average", None),
            "the average from untuned values": ("untuned", "average", None),
            "the worst cycle time from tuned values": ("tuned", "worst", None),
            "the worst cycle time from untuned values": ("untuned", "worst", None),
            **{f"the average from tuned values on {task}": ("tuned", "average", task) for task in self.comparison.dts},
        }

    def objections(self) -> Iterator[Objection]:
        """What speaks against the winner as the default."""
        for where, what in self.conditions.items():
            found = self.more(self.winner, self.default, *what)
            if sign_of(found) == "less":
                yield Objection(where, found)

    def of_predictions(self, predictions: Mapping[str, Any], name: str) -> dict[str, str]:
        """By comparison of a candidate for which the frozen list predicts a sign, what became of that."""
        found = {}
        for kind, measure, reference in compared(self.comparison.subject):
            key = comparison_key(kind, measure, reference)
            predicted = predictions[name][key]["predicted"]
            sign = sign_of(self.more(name, reference, kind, measure))
            if predicted != "undecided":
                found[key] = "held" if sign == predicted else "not decided" if sign == "undecided" else "refuted"
        return found
