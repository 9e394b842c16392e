"""Discount and trace decay tuned as horizons in seconds: 'horizons' in a tuning's file, or `tune --horizons`.

    horizons = true  # the usual ones

    [horizons]       # or one's own
    discount = ["0.5s", "2s", "8s"]
    trace_decay = ["0.1s", "0.4s"]

A horizon h is the rate exp(-dt / h) per agent step, so that these are lists in 'tuned' like any others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp

from cycletime.duration import Duration
from cycletime.errors import InputError, shown
from cycletime.runs.carried import TUNABLE
from cycletime.studies.spec.study import Study, Tuned

USUAL_STEPS: Mapping[str, tuple[float, ...]] = {
    "discount": tuple(6.25 * 2**each for each in range(7)),
    "trace_decay": tuple(5.0 * 2**each for each in range(4)),
}
"""By rate, the horizons that are tried unless others are given, in agent steps; of 16 ms, 0.1 to 6.4 s and 0.08 to
0.64 s, on which the rules were searched for."""


def with_horizons(study: Study, told: object) -> Study:
    """A study of one cycle time with a grid of horizons.

    Args:
        study: Without them.
        told: True, or by rate its horizons.

    Raises:
        InputError: if these are none, or a rate has values already.
    """
    algorithm, dt = study.algorithms[0], study.dts[0]
    known = [name for name in USUAL_STEPS if name in TUNABLE[algorithm]]
    if told is True:
        rates = {name: tuple(exp(-1 / steps) for steps in USUAL_STEPS[name]) for name in known}
    elif isinstance(told, Mapping) and told:
        rates = {name: _rates(name, horizons, dt, known, algorithm) for name, horizons in told.items()}
    else:
        raise InputError(
            f"horizons is {shown(told)}: it must be true, or a table such as [horizons] with discount = ['1s', '4s']."
        )
    tuned = study.tuned.get(algorithm, Tuned(None))
    for name in rates:
        if name in tuned.values:
            raise InputError(f"{name} has a value in 'tuned', and horizons are to be tried: leave one of them out.")
    grid = Tuned(tuned.dt, {**tuned.values, **rates})
    return replace(study, tuned={**study.tuned, algorithm: grid})


def _rates(name: str, horizons: object, dt: Duration, known: list[str], algorithm: str) -> tuple[float, ...]:
    if name not in known:
        raise InputError(f"horizons has {name!r}: {algorithm} has {', '.join(known)}.")
    if not isinstance(horizons, Sequence) or isinstance(horizons, str) or not horizons:
        raise InputError(f"horizons has {name} = {shown(horizons)}: give a list of times, such as ['1s', '4s'].")
    return tuple(exp(-float(dt / Duration(each))) for each in horizons)
