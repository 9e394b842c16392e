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
    each_above,
    mean_difference,
    mean_of,
    within,
)
from cycletime.experiments.paper.data import (
    BATCHES,
    TUNED_AT,
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
_AWAY_SHARE = 0.5
"""A fingertip that ends farther away than this share of where it began was not led half of the way to the target."""
_FALLEN_SHARE = 0.25
"""Of an episode's time: who stands less long has fallen."""


def near_zero_at_4ms(runs: PPORuns) -> list[Condition]:
    """Claim 1b: on Reacher with the further seeds that were prespecified for it."""
    final: BySeed = {}
    if "further" in runs.names:
        runs.data.need(runs.names["baseline"], runs.names["further"])
        final = final_or_zero(runs.data.prespecified(runs.names["further"]).cell(rule="baseline", dt="4ms"))
    final = {**final_or_zero(runs.runs("baseline", "4ms")), **final}
    return within("final return at 4ms", runs.scale.full / 10, mean_of(final))


def ineffective_at_4ms(runs: PPORuns) -> list[Condition]:
    """Claims 1a and 12: what failing looks like on the task."""
    seen = mean_of(runs.data.behaviour(runs.names["baseline"], "baseline", "4ms"))
    if runs.task == "reacher":
        return [above("baseline at 4ms: final distance, as a share of the first", _AWAY_SHARE, seen)]
    return [below("baseline at 4ms: time upright, as a share of the longest", _FALLEN_SHARE, seen)]


def worse_either_side(runs: PPORuns) -> list[Condition]:
    final = {dt: runs.runs("baseline", dt).seed_finals for dt in ("4ms", "8ms", "16ms")}
    early = {dt: runs.runs("baseline", dt).seed_part(*EARLY) for dt in ("16ms", "32ms", "64ms")}
    return [
        *each_above("final return, {} minus {}", 0.0, {(b, a): (final[b], final[a]) for a, b in pairwise(final)}),
        *each_above("early return, {} minus {}", 0.0, {(a, b): (early[a], early[b]) for a, b in pairwise(early)}),
    ]


def tuned_is_better(runs: PPORuns) -> list[Condition]:
    pairs = runs.pairs("tuned", "baseline", runs.dts)
    return each_above("score at {}, tuned minus baseline", runs.scale.margin, pairs)


def tuned_differs_across(runs: PPORuns) -> list[Condition]:
    """Claim 3: what was tuned at either end against what was tuned at the other, with fresh seeds for the winner."""
    runs.data.need(runs.names["tuned"], runs.names["grid"])
    pairs = {}
    for dt, other in ((runs.dts[0], runs.dts[-1]), (runs.dts[-1], runs.dts[0])):
        best = {name: runs.runs("tuned", other).labels[name] for name in ("batch", "minibatch")}
        grid = runs.data.outcome(runs.names["grid"]).cell(dt=dt, **best)
        pairs[dt, other] = (runs.scores("tuned", dt), grid.seed_scores)
    return each_above("score at {}, values tuned there minus those tuned at {}", runs.scale.margin, pairs)


def best_batch_time_carries(runs: PPORuns) -> list[Condition]:
    """Claim 4a: what is best at 16 ms is as good as any other batch time, at every cycle time."""
    best = max(BATCHES, key=lambda batch: float(np.nanmean(runs.runs("dt-aware", TUNED_AT, batch).scores)))
    pairs = {
        (dt, _batch_time(batch)): (runs.scores("dt-aware", dt, best), runs.scores("dt-aware", dt, batch))
        for dt, batch in product(runs.dts, BATCHES)
        if dt != TUNED_AT and batch != best
    }
    name = f"score at {{}}, batch time {_batch_time(best)} (best at {TUNED_AT}) minus {{}}"
    return each_above(name, -runs.scale.margin, pairs)


def batch_times_line_up(runs: PPORuns) -> list[Condition]:
    """Claim 4b: at every batch time, each cycle time is near the mean of the others."""
    found = []
    for batch, dt in product(BATCHES, runs.dts):
        others = [runs.scores("dt-aware", other, batch) for other in runs.dts if other != dt]
        name = f"score at {dt}, batch time {_batch_time(batch)}, minus the mean of the other cycle times"
        found += within(name, 2 * runs.scale.margin, difference(runs.scores("dt-aware", dt, batch), *others))
    return found


def dt_aware_beats_baseline(runs: PPORuns) -> list[Condition]:
    return each_above("score at {}, dt-aware minus baseline", 0.0, runs.gains())


def scaling_hurts(runs: PPORuns) -> list[Condition]:
    pairs = runs.pairs("dt-aware", "scaled", ("4ms", "8ms"), BATCHES)
    by_time = {(dt, _batch_time(batch)): pair for (dt, batch), pair in pairs.items()}
    return each_above("score at {}, batch time {}, dt-aware minus scaled", 0.0, by_time)


def keeping_hurts(runs: PPORuns) -> list[Condition]:
    return [
        above(
            f"score at {dt}, mean over batch times, dt-aware minus constant",
            0.0,
            mean_difference([*runs.pairs("dt-aware", "constant", (dt,), BATCHES).values()]),
        )
        for dt in ("32ms", "64ms")
    ]


def improves_on_average(runs: PPORuns) -> list[Condition]:
    """Claim 12: the paper says of no single cycle time that it improves."""
    pairs = runs.gains()
    dts = ", ".join(dt for dt, _ in pairs)
    return [above(f"score, mean over {dts}, dt-aware minus baseline", 0.0, mean_difference([*pairs.values()]))]


def better_by(bound: float, runs: PPORuns) -> list[Condition]:
    """The abstract's: scores above the baseline's by a bound in margins, which may be negative."""
    name = f"{runs.task} PPO: score at {{}}, dt-aware minus baseline"
    return each_above(name, bound * runs.scale.margin, runs.gains())


at_least_as_good = partial(better_by, -1)
"""Claim 12 and the headline: dt-aware is worse at no cycle time, by more than matters."""


def never_fails(runs: PPORuns) -> list[Condition]:
    finals = {dt: mean_of(final_or_zero(runs.runs("dt-aware", dt))) for dt in runs.dts}
    return [
        above(f"{runs.task} PPO: final return at {dt}, dt-aware", runs.scale.failed, final)
        for dt, final in finals.items()
    ]


def baseline_fails_at_4ms(runs: PPORuns) -> list[Condition]:
    final = final_or_zero(runs.runs("baseline", "4ms"))
    return [below("final return at 4ms, baseline", runs.scale.failed, mean_of(final))]


def condition_groups(source: RunSource, *criteria: Criterion) -> tuple[ConditionGroup, ...]:
    def group(criterion: Criterion) -> ConditionGroup:
        return lambda data: criterion(source(data))

    return tuple(map(group, criteria))


def _batch_time(batch: int) -> str:
    return f"{batch * Duration(TUNED_AT).exact_s} s"


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
        "ppo-baseline",
        condition_groups(reacher_runs, baseline_fails_at_4ms, ineffective_at_4ms),
        refuted_by="A final return above 5, or a distance below a half.",
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
        "ppo-baseline",
        condition_groups(reacher_runs, near_zero_at_4ms),
        refuted_by="A final return above 2 or below -2.",
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
        "ppo-baseline",
        condition_groups(reacher_runs, worse_either_side),
        refuted_by="One of the four differences of the other sign.",
        elsewhere=(_on_pendulum(worse_either_side, source=paper_pendulum_runs),),
    ),
    Claim(
        "3",
        "PPO tuned per cycle time is substantially better than the baseline at every dt, and the tuned b and m differ "
        "from the baseline's and across dt.",
        "With fresh seeds the tuned values score more than 1 (a twentieth of a perfect policy's return) above the "
        "baseline at every cycle time; and at 4 and 64 ms each the values tuned there score more than 1 above those "
        "tuned at the other.",
        "ppo-tuned",
        condition_groups(reacher_runs, tuned_is_better, tuned_differs_across),
        refuted_by="One of the seven differences below 1.",
        elsewhere=(_on_pendulum(tuned_is_better, tuned_differs_across),),
    ),
    Claim(
        "4a",
        "With dt-aware hyper-parameters a batch time that is best at one cycle time 'performs the best' at others.",
        "At every cycle time the batch time that is best at 16 ms scores at most 1 below each other batch time.",
        "ppo-batch-time",
        condition_groups(reacher_runs, best_batch_time_carries),
        refuted_by="A loss above 1.",
        elsewhere=(_on_pendulum(best_batch_time_carries),),
    ),
    Claim(
        "4b",
        "With dt-aware hyper-parameters curves of performance against batch time 'aligned with each other well'.",
        "At every batch time each cycle time scores within 2 of the mean of the others.",
        "ppo-batch-time",
        condition_groups(reacher_runs, batch_times_line_up),
        refuted_by="A distance above 2.",
        elsewhere=(_on_pendulum(batch_times_line_up),),
    ),
    Claim(
        "5",
        "dt-aware values computed from the baseline (batch time 32 s) beat the baseline at every dt.",
        "The score is above the baseline's at 4, 8, 32 and 64 ms; at 16 ms both have the same values.",
        "ppo-batch-time",
        condition_groups(reacher_runs, dt_aware_beats_baseline),
        refuted_by="A score below the baseline's at one of them.",
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
        "ppo-scaled",
        condition_groups(reacher_runs, scaling_hurts),
        refuted_by="A score above that of dt-aware in at least 3 of them.",
        may_fail=2,
        elsewhere=(_on_pendulum(scaling_hurts, may_fail=2),),
    ),
    Claim(
        "7",
        "Keeping gamma and lambda constant hurts large cycle times (32, 64 ms).",
        "The score, averaged over the five batch times, is below that of dt-aware at 32 and at 64 ms.",
        "ppo-constant",
        condition_groups(reacher_runs, keeping_hurts),
        refuted_by="An average above that of dt-aware at one of them.",
        elsewhere=(_on_pendulum(keeping_hurts),),
    ),
    Claim(
        "12",
        "Double Pendulum, PPO: dt-aware improves on the baseline and fails at no dt; the baseline fails at 4 ms.",
        "dt-aware scores above the baseline on average over 4, 8, 32 and 64 ms, and at none of them more than 468 (a "
        "twentieth of a perfect policy's return) below it; its final return is above 2,340 (a quarter) everywhere; the "
        "baseline's at 4 ms is below that, and its learned policies stand for less than a quarter of the longest time.",
        "three-part",
        condition_groups(paper_pendulum_runs, *_PENDULUM_CRITERIA),
        elsewhere=(
            OtherSetting("reacher", condition_groups(reacher_runs, *_PENDULUM_CRITERIA)),
            *_with_released_code("double-pendulum", baseline_fails_at_4ms),
        ),
    ),
)
