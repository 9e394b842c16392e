"""Claims 1 to 7 and 12, about PPO.

Margins are those of `sources.SCALES`. 'Score' is the paper's measure, the mean return over learning; 'final' is the
mean over the last tenth of learning, 'early' that over the first quarter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np

from cycletime.paper.claims.claim import Claim, Elsewhere
from cycletime.paper.claims.conditions import Condition, Runs, above, below, difference, mean_of, within
from cycletime.paper.claims.sources import BATCHES, Data, PPORuns, paper_pendulum, pendulum, reacher, released

EARLY = (0.0, 0.25)
Source = Callable[[Data], PPORuns]
_SHORT, _LONG = ("4ms", "8ms"), ("32ms", "64ms")
_AWAY = 0.75
"""A fingertip that ends farther away than this share of where it began was not led to the target."""
_FALLEN = 0.25
"""Of an episode's time: who stands less long has fallen."""


def fails_at_4ms(source: Source, data: Data) -> list[Condition]:
    """Claim 1."""
    runs = source(data)
    final = below("final return at 4 ms", runs.scale.near_zero, mean_of(runs.runs("baseline", "4ms").final))
    return [final, failing_behaviour(runs, "baseline", "4ms")]


def failing_behaviour(runs: PPORuns, rule: str, dt: str) -> Condition:
    """What failing looks like on the task."""
    seen = runs.behaviour(rule).of(rule, dt)
    if runs.task == "reacher":
        return above(f"{rule} at {dt}: final distance, as a share of the first", _AWAY, mean_of(seen))
    return below(f"{rule} at {dt}: time upright, as a share of the longest", _FALLEN, mean_of(seen))


def slower_either_side(source: Source, data: Data) -> list[Condition]:
    """Claim 2."""
    runs = source(data)
    margin = runs.scale.margin
    cells = {dt: runs.runs("baseline", dt) for dt in runs.dts}
    return [
        *(
            above(
                f"final return, {longer} less {shorter}", margin, difference(cells[longer].final, cells[shorter].final)
            )
            for shorter, longer in (("4ms", "8ms"), ("8ms", "16ms"))
        ),
        *(
            above(
                f"early return, {shorter} less {longer}",
                margin,
                difference(cells[shorter].part(*EARLY), cells[longer].part(*EARLY)),
            )
            for shorter, longer in (("16ms", "32ms"), ("32ms", "64ms"))
        ),
    ]


def tuned_is_better(source: Source, data: Data) -> list[Condition]:
    """Claim 3."""
    runs = source(data)
    margin = runs.scale.margin
    better = [
        above(
            f"score at {dt}, tuned less baseline",
            margin,
            difference(runs.tuned(dt).scores, runs.runs("baseline", dt).scores),
        )
        for dt in runs.dts
    ]
    first, last = runs.dts[0], runs.dts[-1]
    across = [
        above(
            f"score at {dt}, values tuned there less those tuned at {other}",
            margin,
            difference(runs.grid(dt, dt).scores, runs.grid(dt, other).scores),
        )
        for dt, other in ((first, last), (last, first))
    ]
    return [*better, *across]


def batch_times_line_up(source: Source, data: Data) -> list[Condition]:
    """Claim 4."""
    runs = source(data)
    scores = {(dt, batch): runs.runs("dt-aware", dt, batch).scores for dt in runs.dts for batch in BATCHES}
    means = {place: float(np.nanmean(each)) for place, each in scores.items()}
    best = {dt: max(BATCHES, key=lambda batch: means[dt, batch]) for dt in runs.dts}
    found = [
        above(
            f"score at {dt}, batch time {_batch_s(best['16ms'])} s (best at 16 ms) less its best, "
            f"{_batch_s(best[dt])} s",
            -runs.scale.margin,
            difference(scores[dt, best["16ms"]], scores[dt, best[dt]]),
        )
        for dt in runs.dts
        if best[dt] != best["16ms"]
    ]
    for batch, dt in product(BATCHES, runs.dts):
        others = [scores[other, batch] for other in runs.dts if other != dt]
        name = f"score at {dt}, batch time {_batch_s(batch)} s, less the mean of the other cycle times"
        found += within(name, 2 * runs.scale.margin, difference(scores[dt, batch], *others))
    return found


def dt_aware_beats_baseline(source: Source, data: Data) -> list[Condition]:
    """Claim 5; at 16 ms both have the same values."""
    runs = source(data)
    return [
        above(
            f"score at {dt}, dt-aware less baseline",
            0.0,
            difference(runs.runs("dt-aware", dt).scores, runs.runs("baseline", dt).scores),
        )
        for dt in runs.dts
        if dt != "16ms"
    ]


def scaling_hurts(source: Source, data: Data) -> list[Condition]:
    """Claim 6."""
    runs = source(data)
    return [
        above(
            f"score at {dt}, batch time {_batch_s(batch)} s, dt-aware less scaled",
            0.0,
            difference(runs.runs("dt-aware", dt, batch).scores, runs.runs("scaled", dt, batch).scores),
        )
        for dt in _SHORT
        for batch in BATCHES
    ]


def keeping_hurts(source: Source, data: Data) -> list[Condition]:
    """Claim 7: the mean over batch times, each seed's by itself."""
    runs = source(data)
    return [
        above(
            f"score at {dt}, mean over batch times, dt-aware less constant",
            0.0,
            difference(_over_batches(runs, "dt-aware", dt), _over_batches(runs, "constant", dt)),
        )
        for dt in _LONG
    ]


def dt_aware_never_fails(source: Source, data: Data) -> list[Condition]:
    """Claim 12."""
    runs = source(data)
    failed = runs.scale.failed
    return [
        *dt_aware_beats_baseline(source, data),
        *(
            above(f"final return at {dt}, dt-aware", failed, mean_of(runs.runs("dt-aware", dt).final))
            for dt in runs.dts
        ),
        below("final return at 4 ms, baseline", failed, mean_of(runs.runs("baseline", "4ms").final)),
        failing_behaviour(runs, "baseline", "4ms"),
    ]


def at_least_as_good(source: Source, data: Data) -> list[Condition]:
    """Of the headline: dt-aware is not worse at any cycle time, and fails at none."""
    runs = source(data)
    cells = {(rule, dt): runs.runs(rule, dt) for rule in ("baseline", "dt-aware") for dt in runs.dts}
    return [
        *(
            above(
                f"{runs.task} PPO: score at {dt}, dt-aware less baseline",
                -runs.scale.margin,
                difference(cells["dt-aware", dt].scores, cells["baseline", dt].scores),
            )
            for dt in runs.dts
        ),
        *(
            above(
                f"{runs.task} PPO: final return at {dt}, dt-aware",
                runs.scale.failed,
                mean_of(cells["dt-aware", dt].final),
            )
            for dt in runs.dts
        ),
    ]


def _over_batches(runs: PPORuns, rule: str, dt: str) -> Runs:
    """[seeds] the mean score over batch times."""
    means: Runs = np.mean([runs.runs(rule, dt, batch).scores for batch in BATCHES], axis=0)
    return means


def _batch_s(batch: int) -> int:
    return batch * 16 // 1000


def _released(task: str, criterion: Callable[[Source, Data], Sequence[Condition]]) -> tuple[Elsewhere, ...]:
    """A claim asked with the released code's ways, at the cycle times that were run with them."""
    ways = {
        "learning at episodes' ends": ("episode_end", "released"),
        "PyTorch's initial weights": ("batch", "pytorch"),
        "both": ("episode_end", "pytorch"),
    }
    return tuple(
        Elsewhere(f"{task}, {name}", partial(criterion, partial(_with, task, when, weights)))
        for name, (when, weights) in ways.items()
    )


def _with(task: str, learn_when: str, initial_weights: str, data: Data) -> PPORuns:
    return released(data, task, learn_when=learn_when, initial_weights=initial_weights)


def _final_at_4ms(source: Source, data: Data) -> list[Condition]:
    """Claim 1's return alone, where no policies were kept."""
    runs = source(data)
    return [below("final return at 4 ms", runs.scale.near_zero, mean_of(runs.runs("baseline", "4ms").final))]


def _on_pendulum(criterion: Callable[[Source, Data], Sequence[Condition]], at_least: int | None = None) -> Elsewhere:
    return Elsewhere("double-pendulum", partial(criterion, pendulum), at_least)


CLAIMS = (
    Claim(
        "1",
        "Baseline PPO on Reacher fails at 4 ms: return near zero, no goal-directed behaviour.",
        "The final return is below 2 (a tenth of a perfect policy's), and the learned policies leave the fingertip at "
        "more than 75 % of its first distance from the target.",
        "A final return above 2, or a distance below 75 %.",
        "ppo-baseline",
        partial(fails_at_4ms, reacher),
        elsewhere=(
            Elsewhere("double-pendulum", partial(fails_at_4ms, paper_pendulum)),
            *_released("reacher", _final_at_4ms),
        ),
    ),
    Claim(
        "2",
        "Baseline PPO: asymptotic performance declines with smaller dt; larger dt learns more slowly.",
        "Final returns rise by more than 1 from 4 to 8 and from 8 to 16 ms; early returns fall by more than 1 from 16 "
        "to 32 and from 32 to 64 ms.",
        "One of the four differences below 1.",
        "ppo-baseline",
        partial(slower_either_side, reacher),
        elsewhere=(Elsewhere("double-pendulum", partial(slower_either_side, paper_pendulum)),),
    ),
    Claim(
        "3",
        "PPO tuned per cycle time is substantially better than the baseline at every dt, and the tuned b and m differ "
        "from the baseline's and across dt.",
        "With fresh seeds the tuned values score more than 1 above the baseline at every cycle time; and at 4 and 64 "
        "ms each the values tuned there score more than 1 above those tuned at the other.",
        "One of the seven differences below 1.",
        "ppo-tuned",
        partial(tuned_is_better, reacher),
        elsewhere=(_on_pendulum(tuned_is_better),),
    ),
    Claim(
        "4",
        "With dt-aware hyper-parameters, curves of performance against batch time line up across cycle times.",
        "The batch time that is best at 16 ms scores at most 1 below each cycle time's own best; and at every batch "
        "time each cycle time scores within 2 of the mean of the others.",
        "A loss above 1, or a distance above 2.",
        "ppo-batch-time",
        partial(batch_times_line_up, reacher),
        elsewhere=(_on_pendulum(batch_times_line_up),),
    ),
    Claim(
        "5",
        "dt-aware values computed from the baseline (batch time 32 s) beat the baseline at every dt.",
        "The score is above the baseline's at 4, 8, 32 and 64 ms; at 16 ms both have the same values.",
        "A score below the baseline's at one of them.",
        "ppo-batch-time",
        partial(dt_aware_beats_baseline, reacher),
        elsewhere=(
            Elsewhere("double-pendulum", partial(dt_aware_beats_baseline, paper_pendulum)),
            *_released("reacher", dt_aware_beats_baseline),
            *_released("double-pendulum", dt_aware_beats_baseline),
        ),
    ),
    Claim(
        "6",
        "Scaling gamma and lambda without the min hurts small cycle times (4, 8 ms) at almost all batch times.",
        "The score is below that of dt-aware in at least 8 of the 10 combinations of 4 and 8 ms with five batch times, "
        "by tests that are corrected for their number.",
        "A score above that of dt-aware in at least 3 of them.",
        "ppo-scaled",
        partial(scaling_hurts, reacher),
        at_least=8,
        elsewhere=(_on_pendulum(scaling_hurts, 8),),
    ),
    Claim(
        "7",
        "Keeping gamma and lambda constant hurts large cycle times (32, 64 ms).",
        "The score, averaged over the five batch times, is below that of dt-aware at 32 and at 64 ms.",
        "An average above that of dt-aware at one of them.",
        "ppo-constant",
        partial(keeping_hurts, reacher),
        elsewhere=(_on_pendulum(keeping_hurts),),
    ),
    Claim(
        "12",
        "Double Pendulum, PPO: dt-aware improves on the baseline and fails at no dt; the baseline fails at 4 ms.",
        "dt-aware scores above the baseline at 4, 8, 32 and 64 ms; its final return is above 2,340 (a quarter of a "
        "perfect policy's) everywhere; the baseline's at 4 ms is below that, and its learned policies stand for less "
        "than a quarter of the longest time.",
        "One of these on the other side.",
        "three-part",
        partial(dt_aware_never_fails, paper_pendulum),
        elsewhere=(Elsewhere("reacher", partial(dt_aware_never_fails, reacher)),),
    ),
)
