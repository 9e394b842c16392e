"""How often `cycletime advise` is wrong, by simulated studies of which the truth is known: the table in docs/advise.md.

    python benchmarks/advise.py          # about six minutes on one core
    python benchmarks/advise.py 100 10   # of 100 studies each, with 10 seeds at the first look instead of 5

Five candidates and eight looks, by default at 5 to 86 seeds each. 'Equal': all have the same mean; wrong is a study
that drops any. 'One better': the last has a mean that is one standard deviation higher; lost is a study that drops it,
found one in which it is the only one left, and runs are what a study took (eight looks at all candidates are 430).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.statistics import Judgement, SequentialDesign

Scores: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[np.random.Generator, int], Scores]
CANDIDATES, LOOKS = 5, 8


def normal(rng: np.random.Generator, runs: int) -> Scores:
    """As t assumes it."""
    return rng.normal(size=runs)


def exponential(rng: np.random.Generator, runs: int) -> Scores:
    """A long tail below."""
    return 1 - rng.exponential(size=runs)


def fails(rng: np.random.Generator, runs: int) -> Scores:
    """One run in five learns nothing; mean 0 and standard deviation 1."""
    return np.where(rng.random(runs) < 0.2, -1.97, 0.49) + 0.18 * rng.normal(size=runs)


def steady(rng: np.random.Generator, runs: int) -> Scores:
    """Hardly any spread."""
    return 0.18 * rng.normal(size=runs)


SHAPES: dict[str, Sequence[Draw]] = {
    "normal": [normal] * CANDIDATES,
    "exponential": [exponential] * CANDIDATES,
    "all fail at times": [fails] * CANDIDATES,
    "one fails at times": [*[steady] * (CANDIDATES - 1), fails],
}


def study(
    draws: Sequence[Draw], means: Sequence[float], rng: np.random.Generator, plan: SequentialDesign
) -> list[Judgement[int]]:
    """What is judged until one is left, or at all looks."""
    made = list[Judgement[int]]()
    runs = {
        label: mean + draw(rng, plan.runs(LOOKS)) for label, (draw, mean) in enumerate(zip(draws, means, strict=True))
    }
    left: tuple[int, ...] = tuple(runs)
    for look in range(1, LOOKS + 1):
        made.append(Judgement.of(plan, look, {label: runs[label][: plan.runs(look)].tolist() for label in left}))
        left = made[-1].left
        if len(left) == 1:
            break
    return made


def runs_of(made: Sequence[Judgement[int]]) -> int:
    """Of all candidates, each as far as it was judged."""
    most = {label: len(scores) for each in made for label, scores in each.scores.items()}
    return sum(most.values())


def main(studies: int = 1000, first_runs: int = 5) -> None:
    """Print the table."""
    print("| scores | equal: wrong % | one better: lost % | found % | runs |\n|---|---|---|---|---|")
    best, plan = CANDIDATES - 1, SequentialDesign(CANDIDATES, first_runs=first_runs)
    for name, draws in SHAPES.items():
        rng = np.random.default_rng(0)
        equal = [study(draws, [0.0] * CANDIDATES, rng, plan) for _ in range(studies)]
        better = [study(draws, [*[0.0] * best, 1.0], rng, plan) for _ in range(studies)]
        wrong = np.mean([any(each.dropped for each in made) for made in equal])
        lost = np.mean([any(best in each.dropped for each in made) for made in better])
        found = np.mean([made[-1].left == (best,) for made in better])
        runs = np.mean([runs_of(made) for made in better])
        print(f"| {name} | {100 * wrong:.1f} | {100 * lost:.1f} | {100 * found:.0f} | {runs:.0f} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
