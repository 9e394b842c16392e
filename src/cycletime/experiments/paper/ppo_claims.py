"""Claims 1 to 7 and 12, about PPO; the paper's words are in quotation marks.

Margins are those of `data.TASK_SCALES`: what the paper calls substantial, near zero or failing is held against them,
and what it calls better or worse against zero. 'Score' is the paper's measure, the mean return over learning; 'final'
is the mean over the last tenth of learning, 'early' that over the first quarter. At 16 ms baseline and dt-aware
values are the same, and so are their runs: there is nothing to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np

from cycletime.duration import Duration
from cycletime.experiments.judging import (
    BySeed,
    Claim,
    Condition,
    ConditionGroup,
    OtherSetting,
    above,
    below,
    difference,
    mean_difference,
    mean_of,
    within,
)
from cycletime.experiments.paper.data import (
    BATCHES,
    PaperResults,
    PPORuns,
    final_or_zero,
    paper_pendulum_runs,
    pendulum_runs,
    reacher_runs,
    released_code_runs,
)

EARLY = (0.0, 0.25)
RunSource: TypeAlias = Callable[[PaperResults], PPORuns]
Criterion: TypeAlias = Callable[[PPORuns], Sequence[Condition]]
_TUNED_AT = "16ms"
_AWAY_SHARE = 0.5
"""A fingertip that ends farther away than this share of where it began was not led half of the way to the target."""
FALLEN_SHARE = 0.25
"""Of an episode's time: who stands less long has fallen."""


def near_zero_at_4ms(runs: PPORuns) -> list[Condition]:
    """Claim 1b: on Reacher with the further seeds that were prespecified for it."""
    if "further" in runs.names:
        runs.need("baseline", "further")
    final = final_or_zero(runs.runs("baseline", "4ms"))
    if "further" in runs.names:
        further = runs.data.prespecified(runs.names["further"]).cell(rule="baseline", dt="4ms")
        final = {**final, **final_or_zero(further)}
    return within("final return at 4ms", runs.scale.near_zero, mean_of(final))


def ineffective_at_4ms(runs: PPORuns) -> list[Condition]:
    """Claims 1a and 12: what failing looks like on the task."""
    seen = mean_of(runs.behaviour("baseline", "4ms"))
    if runs.task == "reacher":
        return [above("baseline at 4ms: final distance, as a share of the first", _AWAY_SHARE, seen)]
    return [below("baseline at 4ms: time upright, as a share of the longest", FALLEN_SHARE, seen)]


def worse_either_side(runs: PPORuns) -> list[Condition]:
    """Claim 2."""
    final = {dt: runs.runs("baseline", dt).seed_finals for dt in ("4ms", "8ms", "16ms")}
    early = {dt: runs.runs("baseline", dt).seed_part(*EARLY) for dt in ("16ms", "32ms", "64ms")}
    return [
        *(above(f"final return, {b} minus {a}", 0.0, difference(final[b], final[a])) for a, b in pairwise(final)),
        *(above(f"early return, {a} minus {b}", 0.0, difference(early[a], early[b])) for a, b in pairwise(early)),
    ]


def tuned_is_better(runs: PPORuns) -> list[Condition]:
    """Claim 3: tuned values against the baseline, with fresh seeds."""
    runs.need("tuned", "baseline")
    pairs = {dt: (runs.tuned(dt).seed_scores, runs.runs("baseline", dt).seed_scores) for dt in runs.dts}
    return [
        above(f"score at {dt}, tuned minus baseline", runs.scale.margin, difference(*pair))
        for dt, pair in pairs.items()
    ]


def tuned_differs_across(runs: PPORuns) -> list[Condition]:
    """Claim 3: what was tuned at either end against what was tuned at the other, with fresh seeds for the winner."""
    runs.need("tuned", "grid")
    first, last = runs.dts[0], runs.dts[-1]
    return [
        above(
            f"score at {dt}, values tuned there minus those tuned at {other}",
            runs.scale.margin,
            difference(runs.tuned(dt).seed_scores, runs.grid(dt, other).seed_scores),
        )
        for dt, other in ((first, last), (last, first))
    ]


def best_batch_time_carries(runs: PPORuns) -> list[Condition]:
    """Claim 4a: what is best at 16 ms is as good as any other batch time, at every cycle time."""
    best = max(BATCHES, key=lambda batch: float(np.nanmean(runs.runs("dt-aware", _TUNED_AT, batch).scores)))
    return [
        above(
            f"score at {dt}, batch time {_batch_time(best)} (best at {_TUNED_AT}) minus {_batch_time(batch)}",
            -runs.scale.margin,
            difference(_dt_aware_scores(runs, dt, best), _dt_aware_scores(runs, dt, batch)),
        )
        for dt, batch in product(runs.dts, BATCHES)
        if dt != _TUNED_AT and batch != best
    ]


def batch_times_line_up(runs: PPORuns) -> list[Condition]:
    """Claim 4b: at every batch time, each cycle time is near the mean of the others."""
    found = []
    for batch, dt in product(BATCHES, runs.dts):
        others = [_dt_aware_scores(runs, other, batch) for other in runs.dts if other != dt]
        name = f"score at {dt}, batch time {_batch_time(batch)}, minus the mean of the other cycle times"
        found += within(name, 2 * runs.scale.margin, difference(_dt_aware_scores(runs, dt, batch), *others))
    return found


def dt_aware_beats_baseline(runs: PPORuns) -> list[Condition]:
    """Claim 5."""
    return [
        above(f"score at {dt}, dt-aware minus baseline", 0.0, difference(*pair))
        for dt, pair in scores_by_dt(runs).items()
    ]


def scaling_hurts(runs: PPORuns) -> list[Condition]:
    """Claim 6."""
    runs.need("dt-aware", "scaled")
    return [
        above(
            f"score at {dt}, batch time {_batch_time(batch)}, dt-aware minus scaled",
            0.0,
            difference(_dt_aware_scores(runs, dt, batch), runs.runs("scaled", dt, batch).seed_scores),
        )
        for dt in ("4ms", "8ms")
        for batch in BATCHES
    ]


def keeping_hurts(runs: PPORuns) -> list[Condition]:
    """Claim 7."""
    runs.need("dt-aware", "constant")
    return [
        above(
            f"score at {dt}, mean over batch times, dt-aware minus constant",
            0.0,
            mean_difference(
                [(_dt_aware_scores(runs, dt, batch), runs.runs("constant", dt, batch).seed_scores) for batch in BATCHES]
            ),
        )
        for dt in ("32ms", "64ms")
    ]


def improves_on_average(runs: PPORuns) -> list[Condition]:
    """Claim 12: the paper says of no single cycle time that it improves."""
    pairs = scores_by_dt(runs)
    return [
        above(f"score, mean over {', '.join(pairs)}, dt-aware minus baseline", 0.0, mean_difference([*pairs.values()]))
    ]


def at_least_as_good(runs: PPORuns) -> list[Condition]:
    """Claim 12 and the headline: dt-aware is worse at no cycle time, by more than matters."""
    return [
        above(f"{runs.task} PPO: score at {dt}, dt-aware minus baseline", -runs.scale.margin, difference(*pair))
        for dt, pair in scores_by_dt(runs).items()
    ]


def never_fails(runs: PPORuns) -> list[Condition]:
    """Claim 12 and the headline."""
    finals = {dt: mean_of(final_or_zero(runs.runs("dt-aware", dt))) for dt in runs.dts}
    return [
        above(f"{runs.task} PPO: final return at {dt}, dt-aware", runs.scale.failed, final)
        for dt, final in finals.items()
    ]


def baseline_fails_at_4ms(runs: PPORuns) -> list[Condition]:
    """Claim 12."""
    return [
        below("final return at 4ms, baseline", runs.scale.failed, mean_of(final_or_zero(runs.runs("baseline", "4ms"))))
    ]


def _dt_aware_scores(runs: PPORuns, dt: str, batch: int) -> BySeed:
    return runs.runs("dt-aware", dt, batch).seed_scores


def scores_by_dt(runs: PPORuns) -> dict[str, tuple[BySeed, BySeed]]:
    """By cycle time, scores of dt-aware and of baseline values where they differ."""
    runs.need("dt-aware", "baseline")
    return {
        dt: (runs.runs("dt-aware", dt).seed_scores, runs.runs("baseline", dt).seed_scores)
        for dt in runs.dts
        if dt != _TUNED_AT
    }


def condition_groups(source: RunSource, *criteria: Criterion) -> tuple[ConditionGroup, ...]:
    return tuple(partial(_apply_criterion, source, criterion) for criterion in criteria)


def _apply_criterion(source: RunSource, criterion: Criterion, data: PaperResults) -> Sequence[Condition]:
    return criterion(source(data))


def _batch_time(batch: int) -> str:
    return f"{batch * Duration(_TUNED_AT).exact_s} s"


def _on_pendulum(*criteria: Criterion, source: RunSource = pendulum_runs, may_fail: int = 0) -> OtherSetting:
    return OtherSetting("double-pendulum", condition_groups(source, *criteria), may_fail)


def _with_released_code(task: str, criterion: Criterion) -> tuple[OtherSetting, ...]:
    """A claim asked with the released code's ways, at the cycle times that were run with them."""
    ways = {
        "learning at episodes' ends": ("episode_end", "released"),
        "PyTorch's initial weights": ("batch", "pytorch"),
        "both": ("episode_end", "pytorch"),
    }
    return tuple(
        OtherSetting(
            f"{task}, {name}",
            condition_groups(
                partial(released_code_runs, task=task, learn_when=when, initial_weights=weights), criterion
            ),
        )
        for name, (when, weights) in ways.items()
    )


_PENDULUM_CRITERIA = (
    *(improves_on_average, at_least_as_good, never_fails),
    *(baseline_fails_at_4ms, ineffective_at_4ms),
)
PPO_CLAIMS = (
    Claim(
        "1a",
        "Baseline PPO on Reacher fails to learn at 4 ms: what it learns is not 'an effective goal-oriented behavior'.",
        "The final return is below 5 (a quarter of a perfect policy's, the bound of failing everywhere), and the "
        "learned policies leave the fingertip at more than half of its first distance from the target.",
        "A final return above 5, or a distance below a half.",
        "ppo-baseline",
        condition_groups(reacher_runs, baseline_fails_at_4ms, ineffective_at_4ms),
        elsewhere=(
            _on_pendulum(baseline_fails_at_4ms, ineffective_at_4ms, source=paper_pendulum_runs),
            *_with_released_code("reacher", baseline_fails_at_4ms),
        ),
    ),
    Claim(
        "1b",
        "Baseline PPO on Reacher has a 'near zero return' at 4 ms.",
        "With 300 seeds (the first 100, and 200 further ones that were prespecified when these had left it open) the "
        "final return is within 2 (a tenth of a perfect policy's) of zero.",
        "A final return above 2 or below -2.",
        "ppo-baseline",
        condition_groups(reacher_runs, near_zero_at_4ms),
        elsewhere=(
            _on_pendulum(near_zero_at_4ms, source=paper_pendulum_runs),
            *_with_released_code("reacher", near_zero_at_4ms),
        ),
    ),
    Claim(
        "2",
        "Baseline PPO: asymptotic performance declines with smaller dt; larger dt learns more slowly.",
        "Final returns rise from 4 to 8 and from 8 to 16 ms; early returns (the first quarter of learning) fall from "
        "16 to 32 and from 32 to 64 ms.",
        "One of the four differences of the other sign.",
        "ppo-baseline",
        condition_groups(reacher_runs, worse_either_side),
        elsewhere=(_on_pendulum(worse_either_side, source=paper_pendulum_runs),),
    ),
    Claim(
        "3",
        "PPO tuned per cycle time is substantially better than the baseline at every dt, and the tuned b and m differ "
        "from the baseline's and across dt.",
        "With fresh seeds the tuned values score more than 1 (a twentieth of a perfect policy's return) above the "
        "baseline at every cycle time; and at 4 and 64 ms each the values tuned there score more than 1 above those "
        "tuned at the other.",
        "One of the seven differences below 1.",
        "ppo-tuned",
        condition_groups(reacher_runs, tuned_is_better, tuned_differs_across),
        elsewhere=(_on_pendulum(tuned_is_better, tuned_differs_across),),
    ),
    Claim(
        "4a",
        "With dt-aware hyper-parameters a batch time that is best at one cycle time 'performs the best' at others.",
        "At every cycle time the batch time that is best at 16 ms scores at most 1 below each other batch time.",
        "A loss above 1.",
        "ppo-batch-time",
        condition_groups(reacher_runs, best_batch_time_carries),
        elsewhere=(_on_pendulum(best_batch_time_carries),),
    ),
    Claim(
        "4b",
        "With dt-aware hyper-parameters curves of performance against batch time 'aligned with each other well'.",
        "At every batch time each cycle time scores within 2 of the mean of the others.",
        "A distance above 2.",
        "ppo-batch-time",
        condition_groups(reacher_runs, batch_times_line_up),
        elsewhere=(_on_pendulum(batch_times_line_up),),
    ),
    Claim(
        "5",
        "dt-aware values computed from the baseline (batch time 32 s) beat the baseline at every dt.",
        "The score is above the baseline's at 4, 8, 32 and 64 ms; at 16 ms both have the same values.",
        "A score below the baseline's at one of them.",
        "ppo-batch-time",
        condition_groups(reacher_runs, dt_aware_beats_baseline),
        elsewhere=(
            _on_pendulum(dt_aware_beats_baseline, source=paper_pendulum_runs),
            *_with_released_code("reacher", dt_aware_beats_baseline),
            *_with_released_code("double-pendulum", dt_aware_beats_baseline),
        ),
    ),
    Claim(
        "6",
        "Scaling gamma and lambda without the min hurts small cycle times (4, 8 ms) at almost all batch times.",
        "The score is below that of dt-aware in at least 8 of the 10 combinations of 4 and 8 ms with five batch times, "
        "by tests that are corrected for their number.",
        "A score above that of dt-aware in at least 3 of them.",
        "ppo-scaled",
        condition_groups(reacher_runs, scaling_hurts),
        may_fail=2,
        elsewhere=(_on_pendulum(scaling_hurts, may_fail=2),),
    ),
    Claim(
        "7",
        "Keeping gamma and lambda constant hurts large cycle times (32, 64 ms).",
        "The score, averaged over the five batch times, is below that of dt-aware at 32 and at 64 ms.",
        "An average above that of dt-aware at one of them.",
        "ppo-constant",
        condition_groups(reacher_runs, keeping_hurts),
        elsewhere=(_on_pendulum(keeping_hurts),),
    ),
    Claim(
        "12",
        "Double Pendulum, PPO: dt-aware improves on the baseline and fails at no dt; the baseline fails at 4 ms.",
        "dt-aware scores above the baseline on average over 4, 8, 32 and 64 ms, and at none of them more than 468 (a "
        "twentieth of a perfect policy's return) below it; its final return is above 2,340 (a quarter) everywhere; the "
        "baseline's at 4 ms is below that, and its learned policies stand for less than a quarter of the longest time.",
        "One of these on the other side.",
        "three-part",
        condition_groups(paper_pendulum_runs, *_PENDULUM_CRITERIA),
        elsewhere=(
            OtherSetting("reacher", condition_groups(reacher_runs, *_PENDULUM_CRITERIA)),
            *_with_released_code("double-pendulum", baseline_fails_at_4ms),
        ),
    ),
)
