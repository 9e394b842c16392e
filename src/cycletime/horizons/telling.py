"""The ranking as a table for people."""

from __future__ import annotations

from collections.abc import Iterator

from cycletime.horizons.ranking import Comparison
from cycletime.rules.explain import aligned

_HEADER = ("rule", "average", "worst cycle time", "average over dt-aware's", "average over scaled's", "lowest at")


def ranking_in_words(comparison: Comparison) -> str:
    """For each kind of starting points a table of all rules, the best average first."""
    lines: list[str] = []
    for kind in comparison.kinds:
        begun = [start for start in comparison.starts if start.kind == kind]
        runs = " or ".join(map(str, sorted({n for outcome in comparison.outcomes.values() for n in outcome.n})))
        lines += [
            f"From {kind} values: {len(begun)} starting points on {', '.join(comparison.outcomes)}, {runs} runs of "
            "each cell; 0 is doing nothing and 1 tuning at each cycle time; [95 % intervals].",
            "",
            *aligned([_HEADER, *_rows(comparison, kind)]),
            "",
        ]
    return "\n".join(lines)


def _rows(comparison: Comparison, kind: str) -> Iterator[tuple[str, ...]]:
    for rule in comparison.ranked(kind, "average"):
        yield (
            rule,
            str(comparison.interval(rule, kind, "average")),
            str(comparison.interval(rule, kind, "worst")),
            *(_over(comparison, rule, kind, other) for other in ("dt-aware", "scaled")),
            _lowest(comparison, rule, kind),
        )


def _over(comparison: Comparison, rule: str, kind: str, other: str) -> str:
    return "" if rule == other else str(comparison.interval(rule, kind, "average", less=other))


def _lowest(comparison: Comparison, rule: str, kind: str) -> str:
    """Where a rule does worst of all."""
    begun = [start for start in comparison.starts if start.kind == kind]
    scores = comparison.scores(rule, kind)[0]
    index, at = divmod(int(scores.argmin()), scores.shape[1])
    dt = list(comparison.scales[begun[index].task].retuned)[at]
    return f"{scores.min():.2f} on {begun[index].task} from {begun[index].values.dt} to {dt}"
