"""A claim of the paper: its statement, its criterion, and what the data say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cycletime.paper.claims.conditions import Condition, Verdict, judged
from cycletime.paper.claims.sources import Data, NotRunError

Conditions: TypeAlias = Callable[[Data], Sequence[Condition]]


@dataclass(frozen=True)
class Elsewhere:
    """A claim asked where the paper did not ask it: on the other task, or with the released code's ways."""

    where: str
    conditions: Conditions
    at_least: int | None = None


@dataclass(frozen=True)
class Claim:
    """A claim, and the criterion by which it is judged."""

    number: str
    statement: str
    """The paper's, in short."""
    criterion: str
    """What must hold, in words: statistic, margin, test. The conditions are the same in code."""
    refuted_by: str
    """What would refute it."""
    figure: str | None
    """Ours that shows it."""
    conditions: Conditions
    at_least: int | None = None
    """How many conditions must hold; by default all."""
    elsewhere: tuple[Elsewhere, ...] = ()


@dataclass(frozen=True)
class Judged:
    """What the data say of a claim, at one place."""

    verdict: Verdict
    conditions: tuple[Condition, ...] = ()
    missing: str | None = None
    """What was not run, if something was not."""

    @property
    def decisive(self) -> Condition | None:
        """The condition with the least slack, in standard errors: what the verdict hangs on."""
        return max(self.conditions, key=lambda each: each.p_holds, default=None)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        decisive = self.decisive
        estimate = decisive.estimate if decisive else None
        return {
            "verdict": self.verdict,
            "statistic": {"name": decisive.name, "value": decisive.estimate.value} if decisive else None,
            "interval": [estimate.low, estimate.high] if estimate else None,
            "n": list(estimate.cells) if estimate else None,
            "missing": self.missing,
            "conditions": [
                {
                    "name": each.name,
                    "value": each.estimate.value,
                    "interval": [each.estimate.low, each.estimate.high],
                    "n": list(each.estimate.cells),
                    "astray": each.estimate.n_failed,
                    "must_be": "above" if each.is_above else "below",
                    "bound": each.bound,
                    "p_holds": each.p_holds,
                    "p_fails": each.p_fails,
                }
                for each in self.conditions
            ],
        }


def judge(data: Data, conditions: Conditions, at_least: int | None = None) -> Judged:
    """Judge conditions by what there is."""
    try:
        found = tuple(conditions(data))
    except NotRunError as missing:
        return Judged("not run", missing=str(missing))
    return Judged(judged(found, at_least), found)


def claim_as_json(claim: Claim, data: Data) -> dict[str, Any]:
    """A claim with its verdict, for programs."""
    told = {"number": claim.number, "statement": claim.statement}
    found = judge(data, claim.conditions, claim.at_least).as_json()
    return {
        **told,
        **found,
        "figure": claim.figure,
        "criterion": claim.criterion,
        "refuted_by": claim.refuted_by,
        "elsewhere": [
            {"where": each.where, **judge(data, each.conditions, each.at_least).as_json()} for each in claim.elsewhere
        ],
    }
