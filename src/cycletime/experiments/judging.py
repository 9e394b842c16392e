"""Claims with their criteria: conditions on means over runs, and the verdict that they amount to.

A condition holds where its interval of 95 % is wholly on the right side of its bound, and fails where it is wholly on
the other: one-sided tests at 2.5 %, so that whoever reads an interval sees the verdict. A claim is confirmed where
every condition holds: since all must, none needs a correction (an intersection-union test). It is refuted where one
fails after Holm's correction for their number. Else the data do not decide. Where 'almost all' must hold, some may
fail, and both directions are corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Literal, TypeAlias

from cycletime.experiments.outcome import NotRunError, Results
from cycletime.statistics import Contrast, Estimate, holm_corrected

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
Verdict: TypeAlias = Literal["confirmed", "refuted", "not decided", "not run"]
BySeed: TypeAlias = Mapping[int, float]
"""A number for each run by its seed, so that runs with equal seeds are compared in pairs; one that diverged is NaN."""
ContrastTerms: TypeAlias = list[tuple[float, BySeed]]
"""A contrast: means over runs, each with its weight, that are added up."""


@dataclass(frozen=True)
class Condition:
    """A contrast of means over runs, and the bound that it must keep to."""

    name: str
    """What is measured, such as 'final return at 4 ms'."""
    estimate: Estimate
    """With its interval of 95 %."""
    bound: float
    is_above: bool
    p_holds: float
    """How probable such data are if it does not hold."""
    p_fails: float
    """How probable such data are if it holds."""

    def __str__(self) -> str:
        """In words, such as 'final return at 4 ms: 0.71 (-0.6 to 2.0; n = 30; required: < 2)'."""
        low, high = self.estimate.low, self.estimate.high
        ends = "no interval" if low is None or high is None else f"{low:,.4g} to {high:,.4g}"
        return (
            f"{self.name}: {self.estimate.value:,.4g} ({ends}; n = {self.estimate.runs}; "
            f"required: {'>' if self.is_above else '<'} {self.bound:,.4g})"
        )

    def as_json(self) -> dict[str, Any]:
        estimate = self.estimate
        return {
            "name": self.name,
            "value": None if isnan(estimate.value) else estimate.value,
            "interval": [estimate.low, estimate.high],
            "n": list(estimate.cells),
            "astray": estimate.n_failed,
            "must_be": "above" if self.is_above else "below",
            "bound": self.bound,
            "p_holds": self.p_holds,
            "p_fails": self.p_fails,
        }


def above(name: str, bound: float, terms: ContrastTerms, *, is_above: bool = True) -> Condition:
    """A contrast must be above a bound: in pairs where seeds are equal; what diverged is left out and counted."""
    found = Contrast.of(terms)
    inside = (found.value - bound) * (1 if is_above else -1)
    tails = found.tail(inside), found.tail(-inside)
    return Condition(name, found.estimate(CONFIDENCE), bound, is_above, *tails)


def below(name: str, bound: float, terms: ContrastTerms) -> Condition:
    return above(name, bound, terms, is_above=False)


def within(name: str, bound: float, terms: ContrastTerms) -> list[Condition]:
    """A contrast must be nearer to zero than a bound: two one-sided tests."""
    return [above(name, -bound, terms), below(name, bound, terms)]


def each_above(name: str, bound: float, pairs: Mapping[tuple[Any, ...], tuple[BySeed, BySeed]]) -> list[Condition]:
    """The difference of each pair must be above a bound; braces in the name stand for the parts of the pair's key."""
    return [above(name.format(*key), bound, difference(*pair)) for key, pair in pairs.items()]


def mean_of(runs: BySeed) -> ContrastTerms:
    return [(1.0, runs)]


def difference(runs: BySeed, *others: BySeed) -> ContrastTerms:
    """The contrast of a mean with that of others, or with the mean of several such."""
    return [(1.0, runs), *((-1.0 / len(others), each) for each in others)]


def mean_difference(pairs: Sequence[tuple[BySeed, BySeed]]) -> ContrastTerms:
    return [(weight / len(pairs), runs) for pair in pairs for weight, runs in zip((1.0, -1.0), pair, strict=True)]


def verdict_of(conditions: Sequence[Condition], may_fail: int = 0) -> Verdict:
    holds = [each.p_holds for each in conditions]
    holding = sum(p < TAIL for p in (holm_corrected(holds) if may_fail else holds))
    failing = sum(p < TAIL for p in holm_corrected([each.p_fails for each in conditions]))
    if failing > may_fail:
        return "refuted"
    return "confirmed" if holding >= len(conditions) - may_fail else "not decided"


ConditionGroup: TypeAlias = Callable[[Any], Sequence[Condition]]
"""Conditions that need the same studies: they can be asked together, or not at all."""


@dataclass(frozen=True)
class OtherSetting:
    """A claim judged where the paper did not: on the other task, or with a variant of the released code."""

    where: str
    parts: tuple[ConditionGroup, ...]
    may_fail: int = 0
    is_claimed: bool = False
    """Whether the paper says it of this setting: else a claim that does not hold here is not refuted by it."""

    def word(self, verdict: Verdict | None) -> str | None:
        carried = {"confirmed": "carries over", "refuted": "does not carry over"}
        return verdict if self.is_claimed or verdict is None else carried.get(verdict, verdict)


@dataclass(frozen=True)
class Claim:
    number: str
    statement: str
    criterion: str
    """What must hold, in words: statistic, margin, test. The conditions are the same in code."""
    figure: str | None
    parts: tuple[ConditionGroup, ...]
    refuted_by: str = "One of these on the other side."
    may_fail: int = 0
    elsewhere: tuple[OtherSetting, ...] = ()


@dataclass(frozen=True)
class JudgedClaim:
    verdict: Verdict
    conditions: tuple[Condition, ...] = ()
    may_fail: int = 0
    missing: tuple[str, ...] = ()
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
        decisive = None if self.decisive is None else self.decisive.as_json()
        return {
            "verdict": self.verdict,
            "statistic": decisive and {"name": decisive["name"], "value": decisive["value"]},
            "interval": decisive and decisive["interval"],
            "n": decisive and decisive["n"],
            "missing": list(self.missing),
            "scale": self.scale,
            "sources": list(self.sources),
            "with_plain_mean": self.with_plain_mean,
            "conditions": [each.as_json() for each in self.conditions],
        }


def judge(data: Results, asked: Claim | OtherSetting) -> JudgedClaim:
    """Judge a claim by what there is: a part of it can refute it already, and all of it must be there to confirm it."""
    found, plain = _judge_once(data, asked), _judge_once(data.with_plain_means(), asked)
    return replace(found, with_plain_mean=plain.verdict if plain.conditions != found.conditions else None)


def _judge_once(data: Results, asked: Claim | OtherSetting) -> JudgedClaim:
    data, found, missing = replace(data, used=set()), list[Condition](), list[str]()
    for part in asked.parts:
        try:
            found += part(data)
        except NotRunError as error:
            missing += error.needed
    verdict = verdict_of(found, asked.may_fail)
    if missing and verdict != "refuted":
        verdict = "not run"
    used = [data.outcomes[name] for name in data.used]
    scale = min((outcome.scale for outcome in used), default=None)
    sources = tuple(sorted({where for outcome in used for where in outcome.sources}))
    return JudgedClaim(verdict, tuple(found), asked.may_fail, tuple(dict.fromkeys(missing)), scale, sources)


def claim_as_json(claim: Claim, data: Results) -> dict[str, Any]:
    elsewhere = []
    for setting in claim.elsewhere:
        found = judge(data, setting)
        words = {"verdict": setting.word(found.verdict), "with_plain_mean": setting.word(found.with_plain_mean)}
        elsewhere.append({"where": setting.where, **found.as_json(), **words})
    return {
        "number": claim.number,
        "statement": claim.statement,
        **judge(data, claim).as_json(),
        "figure": claim.figure,
        "criterion": claim.criterion,
        "refuted_by": claim.refuted_by,
        "elsewhere": elsewhere,
    }
