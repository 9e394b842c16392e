"""Prints the tables of docs/retime.md: ``python docs/retime_tables.py [ID ...]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import zip_longest
from math import sqrt
from statistics import fmean, stdev

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.tasks.retime import BUILT_IN, RETIMINGS, WorldComparison, compare_worlds, own_time_limit, own_time_step

SEEDS = range(30)


def terms_table(env_ids: Sequence[str]) -> str:
    """Own time steps and reward terms, one row per term."""
    lines = [
        "| environment | physics_dt x frame skip | episode | reward term | kind | in `info` |",
        "|---|---|---|---|---|---|",
    ]
    for env_id in env_ids:
        step = own_time_step(env_id)
        head = f"{env_id} | {step.physics_dt} x {step.frame_skip} = {step.env_dt} | {own_time_limit(env_id)}"
        for term in RETIMINGS[env_id].terms:
            formula = term.formula.replace("|", "\\|")
            lines.append(f"| {head} | {formula} | {term.kind.value} | {f'`{term.info}`' if term.info else 'no'} |")
            head = " | |"
    return "\n".join(lines)


def worlds_table(env_ids: Sequence[str]) -> str:
    """Returns of the same random torques at three time steps: mean and standard error, one row per time step."""
    lines = ["| environment | env_dt | physics_dt | return | apart | lasted |", "|---|---|---|---|---|---|"]
    for env_id in env_ids:
        own = own_time_step(env_id)
        finer = [Duration(own.physics_dt.exact_s / parts) for parts in (1, 4)]
        env_dts = dict.fromkeys([own.env_dt, *finer])
        rows = [_row([compare_worlds(env_id, env_dt, seed=seed) for seed in SEEDS]) for env_dt in env_dts]
        lines += [f"| {head} | {row} |" for head, row in zip_longest([env_id], rows, fillvalue="")]
    return "\n".join(lines)


def _row(worlds: Sequence[WorldComparison]) -> str:
    step = worlds[0].retimed.time_step
    returns = [world.retimed.total_reward for world in worlds]
    apart = fmean(abs(world.retimed.total_reward - world.own.total_reward) for world in worlds)
    lasted = fmean(float(world.retimed.lasted) for world in worlds)
    cells = f"{fmean(returns):.2f} +- {stdev(returns) / sqrt(len(returns)):.2f} | {apart:.2f} | {lasted:.3f} s"
    return f"{step.env_dt} | {step.physics_dt} | {cells}"


if __name__ == "__main__":
    chosen = sys.argv[1:] or BUILT_IN
    try:
        print(terms_table(chosen), worlds_table(chosen), sep="\n\n")
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
