"""The frozen list: which candidates go to the trial, what is predicted of them there, and the file that says so.

Who goes is decided by criteria that were fixed before the search was run:

1. the best average from tuned values,
2. the best worst cycle time from tuned values,
3. the best average from untuned values,
4. of the candidates with the fewest numbers that are not behind the first for sure, the best.

What the search has found of their differences from the paper's rules, the trial is predicted to find too: 'more' or
'less' where the interval excludes zero, 'undecided' elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cycletime.errors import InputError
from cycletime.horizons.candidates import CANDIDATES, REFERENCES, numbers_of
from cycletime.horizons.ranking import MEASURES, Comparison, Interval, Measure
from cycletime.rules import Rule
from cycletime.rules.own import own_rules_table
from cycletime.runs.files import disk_errors, write_whole
from cycletime.runs.own_rules import read_own_rules
from cycletime.runs.tables import toml_text

FILE = "candidates.toml"
_DIGITS = 3


def frozen(comparison: Comparison) -> dict[str, str]:
    """By candidate, why it goes to the trial."""
    chosen: dict[str, str] = {}

    def choose(name: str, why: str) -> None:
        chosen[name] = f"{chosen[name]}; {why}" if name in chosen else why

    best = _best(comparison, "tuned", "average")
    choose(best, "the best average from tuned values")
    choose(_best(comparison, "tuned", "worst"), "the best worst cycle time from tuned values")
    choose(_best(comparison, "untuned", "average"), "the best average from untuned values")
    choose(_simplest(comparison, best), "the best of those with the fewest numbers that are not behind for sure")
    return chosen


def write_frozen(comparison: Comparison, results: Path) -> Path:
    """Write the list, with laws and predictions; the file."""
    chosen = frozen(comparison)
    own = own_rules_table({name: CANDIDATES[name] for name in chosen})
    tables: dict[str, dict[str, Any]] = {f"own_rules.{name}": table for name, table in own.items()}
    for name, why in chosen.items():
        tables[f"predictions.{name}"] = {"chosen": why, **dict(predictions(comparison, name))}
    head = "# Candidates for the trial, frozen before it. Made by: cycletime horizons freeze\n\n"
    with disk_errors(results):
        results.mkdir(parents=True, exist_ok=True)
    write_whole(results / FILE, lambda file: file.write_text(head + toml_text(tables), encoding="utf-8"))
    return results / FILE


def frozen_rules(results: Path) -> dict[str, Rule]:
    """The candidates of the frozen list.

    Raises:
        InputError: if it is not there.
    """
    file = results / FILE
    if not file.exists():
        raise InputError(f"{file} is not there: 'cycletime horizons freeze' makes it, once the search has been run.")
    return read_own_rules(file)


def predictions(comparison: Comparison, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a candidate has more than each of the paper's rules, by the name of the comparison."""
    for kind in comparison.kinds:
        for measure in MEASURES:
            for other in REFERENCES:
                found = comparison.interval(name, kind, measure, less=other)
                numbers = [round(number, _DIGITS) for number in (found.value, found.low, found.high)]
                key = f"{measure}_from_{kind}_than_{other.replace('-', '_')}"
                yield key, {"predicted": sign_of(found), "search": numbers}


def sign_of(found: Interval) -> str:
    """What an interval says of a difference."""
    return "more" if found.low > 0 else "less" if found.high < 0 else "undecided"


def _best(comparison: Comparison, kind: str, measure: Measure) -> str:
    return next(name for name in comparison.ranked(kind, measure) if name in CANDIDATES)


def _simplest(comparison: Comparison, best: str) -> str:
    near = [
        name
        for name in comparison.ranked("tuned", "average")
        if name in CANDIDATES and comparison.interval(best, "tuned", "average", less=name).low <= 0
    ]
    return min(near, key=lambda name: numbers_of(CANDIDATES[name]))  # the first of them, which is the best
