"""What the page of the paper's results says first, in a few sentences: what the rules are worth, and the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.paper.claims import CLAIMS
from cycletime.paper.claims.claim import Judged
from cycletime.paper.claims.conditions import Verdict
from cycletime.paper.claims.sources import DTS, Data, PPORuns, learned, paper_pendulum, reacher
from cycletime.reports.words import rough, several, span
from cycletime.statistics import compare
from cycletime.tasks.references import references

_TUNED_AT = "16ms"
_SAC = (
    ("sac-baseline", "sac-dt-aware", "Reacher"),
    ("sac-pendulum-baseline", "sac-pendulum-dt-aware", "the Double Pendulum"),
)
"""The studies of .99 and of a tuned gamma, and their task."""


def answer_of(data: Data, judged: dict[str, Judged]) -> Iterator[str]:
    """What the rule is worth on each task, then how the claims came out."""
    if {"ppo-baseline", "ppo-dt-aware"} <= set(data.outcomes):
        yield _worth(reacher(data), "Reacher")
    if "ppo-pendulum" in data.outcomes:
        yield _worth(paper_pendulum(data), "the Double Pendulum")
    yield from _with_tuned_gamma(data)
    if "ppo-robot" in data.outcomes:
        yield _on_robot(data)
    counts = Counter(found.verdict for found in judged.values())
    verdicts: tuple[Verdict, ...] = ("confirmed", "refuted", "not decided", "not run")
    known = [(counts[name], name) for name in verdicts if counts[name]]
    told = several([f"{count} {'is' if count == 1 else 'are'} {name}" for count, name in known])
    yield f"Of the paper's {len(CLAIMS)} claims, each judged by a written criterion, {told}."


def _worth(runs: PPORuns, task: str) -> str:
    """Where values that the rule carries from 16 ms are better than the same values kept, and what a return means."""
    others = [dt for dt in DTS if dt != _TUNED_AT]
    better = _better({dt: [runs.runs(rule, dt).scores for rule in ("dt-aware", "baseline")] for dt in others})
    known = [f"{each.name} gets {rough(each.mean)}" for each in references(runs.task, _TUNED_AT)]
    scale = f" (For scale, at 16 ms: {several(known)}.)" if known else ""
    if not better:
        return (
            f"On {task} PPO's values for 16 ms do better carried than kept at none of {len(others)} cycle times.{scale}"
        )
    where = "each of the four other" if len(better) == len(others) else several([span(Duration(dt)) for dt in better])
    low, high = min(better.values()), max(better.values())
    return (
        f"On {task}, PPO's values for 16 ms do better at {where} cycle times when the dt-aware rule carries them than "
        f"when they are kept: by {rough(low)} to {rough(high)} in mean return over learning.{scale}"
    )


def _with_tuned_gamma(data: Data) -> Iterator[str]:
    """What SAC's tuned gamma is worth, on each task that was run."""
    here = [each for each in _SAC if {*each[:2]} <= set(data.outcomes)]
    found = [_gained(data, kept, carried, task) for kept, carried, task in here]
    if gained := [told for told in found if told]:
        yield f"SAC's gamma, tuned at 16 ms and scaled from there, does better than .99 at {', and at '.join(gained)}."


def _gained(data: Data, kept: str, carried: str, task: str) -> str:
    """Where a tuned gamma that is scaled beats .99; '' where it does at no cycle time."""
    cells = {dt: (data.outcome(carried).cell(rule="tuned-scaled", dt=dt), data.outcome(kept).cell(dt=dt)) for dt in DTS}
    better = _better({dt: [cell.scores for cell in pair] for dt, pair in cells.items()})
    if not better:
        return ""
    where = "all five cycle times" if len(better) == len(DTS) else several([span(Duration(dt)) for dt in better])
    return f"{where} on {task}, by {rough(min(better.values()))} to {rough(max(better.values()))}"


def _better(pairs: Mapping[str, Sequence[NDArray[np.float64]]]) -> dict[str, float]:
    """By cycle time, how much better the first of two sets of runs is, where it is better."""
    gains = {dt: compare(*scores, failed="exclude") for dt, scores in pairs.items()}
    return {dt: each.difference.value for dt, each in gains.items() if each.verdict == "better"}


def _on_robot(data: Data) -> str:
    """What became of values from 40 ms at 10 ms, in the end."""
    outcome = data.outcomes["ppo-robot"]
    places = (("dt-aware", "10ms"), ("baseline", "10ms"), ("baseline", "40ms"))
    aware, kept, start = (outcome.cell(rule=rule, dt=dt) for rule, dt in places)
    ends = [f"{learned(cell).mean():,.3g}" for cell in (start, kept, aware)]
    return (
        f"On a simulated robot PPO's values for 40 ms end at a return of {ends[0]} there, at {ends[1]} when they are "
        f"kept at 10 ms, and at {ends[2]} when the rule carries them (n = {len(aware.seeds)})."
    )
