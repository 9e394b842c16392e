"""A claim of the paper: its statement, its criterion, and what the data say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, TypeAlias

from cycletime.paper.claims.conditions import Condition, Verdict, judged
from cycletime.paper.claims.sources import Data, NotRunError

Part: TypeAlias = Callable[[Data], Sequence[Condition]]
"""Conditions that need the same studies: they can be asked together, or not at all."""


@dataclass(frozen=True)
class Elsewhere:
    """A claim asked where the paper did not ask it: on the other task, or with the released code's ways."""

    where: str
    parts: tuple[Part, ...]
    may_fail: int = 0


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
    parts: tuple[Part, ...]
    """The conditions that must hold."""
    may_fail: int = 0
    """How many of them need not."""
    elsewhere: tuple[Elsewhere, ...] = ()


@dataclass(frozen=True)
class Judged:
    """What the data say of a claim, at one place."""

    verdict: Verdict
    conditions: tuple[Condition, ...] = ()
    may_fail: int = 0
    missing: tuple[str, ...] = ()
    """What was not run, if something was not."""
    scale: float | None = None
    """The least share of the paper's environment steps among the studies that it rests on."""
    sources: tuple[str, ...] = ()
    """Where the runs of these studies come from: closed form, or a simulated robot."""
    with_plain_mean: Verdict | None = None
    """By the plain mean over episodes, where the claim is about scores."""

    @property
    def decisive(self) -> Condition | None:
        """The condition that the verdict hangs on: the last that must hold, the surest first."""
        if self.verdict == "not run":
            return None
        needed = len(self.conditions) - self.may_fail
        return sorted(self.conditions, key=lambda each: each.p_holds)[needed - 1]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        decisive = None if self.decisive is None else _as_json(self.decisive)
        return {
            "verdict": self.verdict,
            "statistic": decisive and {"name": decisive["name"], "value": decisive["value"]},
            "interval": decisive and decisive["interval"],
            "n": decisive and decisive["n"],
            "missing": list(self.missing),
            "scale": self.scale,
            "sources": list(self.sources),
            "with_plain_mean": self.with_plain_mean,
            "conditions": [_as_json(each) for each in self.conditions],
        }


def judge(data: Data, asked: Claim | Elsewhere) -> Judged:
    """Judge a claim by what there is: a part of it can refute it already, and all of it must be there to confirm it."""
    found, plain = _judged_once(data, asked), _judged_once(data.with_plain_means(), asked)
    return replace(found, with_plain_mean=plain.verdict if plain.conditions != found.conditions else None)


def _judged_once(data: Data, asked: Claim | Elsewhere) -> Judged:
    """By the measure that the data have."""
    data, found, missing = replace(data, used=set()), list[Condition](), list[str]()
    for part in asked.parts:
        try:
            found += part(data)
        except NotRunError as error:
            missing += error.needed
    verdict = judged(found, asked.may_fail)
    if missing and verdict != "refuted":
        verdict = "not run"
    used = [data.outcomes[name] for name in data.used]
    scale = min((outcome.scale for outcome in used), default=None)
    sources = tuple(sorted({where for outcome in used for where in outcome.sources}))
    return Judged(verdict, tuple(found), asked.may_fail, tuple(dict.fromkeys(missing)), scale, sources)


def claims_as_json(claims: Sequence[Claim], data: Data) -> list[dict[str, Any]]:
    """Claims with their verdicts, for programs."""
    return [claim_as_json(claim, data) for claim in claims]


def claim_as_json(claim: Claim, data: Data) -> dict[str, Any]:
    """A claim with its verdict, for programs."""
    return {
        "number": claim.number,
        "statement": claim.statement,
        **judge(data, claim).as_json(),
        "figure": claim.figure,
        "criterion": claim.criterion,
        "refuted_by": claim.refuted_by,
        "elsewhere": [{"where": each.where, **judge(data, each).as_json()} for each in claim.elsewhere],
    }


def _as_json(condition: Condition) -> dict[str, Any]:
    estimate = condition.estimate
    return {
        "name": condition.name,
        "value": None if isnan(estimate.value) else estimate.value,
        "interval": [estimate.low, estimate.high],
        "n": list(estimate.cells),
        "astray": estimate.n_failed,
        "must_be": "above" if condition.is_above else "below",
        "bound": condition.bound,
        "p_holds": condition.p_holds,
        "p_fails": condition.p_fails,
    }
