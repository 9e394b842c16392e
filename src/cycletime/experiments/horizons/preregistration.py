"""The frozen list: the file that says which candidates went to the trial, and what was predicted of them there.

Who went was decided by criteria, of which all but the last were fixed before the search was run:

1. the best average from tuned values,
2. the best worst cycle time from tuned values,
3. the best average from untuned values,
4. of the candidates with the fewest numbers that are not behind the first for sure, the best,
5. what users have already, which is so of SAC alone: PPO's trial has given it its name,
6. what the search of the others suggested, which is so of SAC alone, too, and stands back in the others.

What the search had found of their differences from the paper's rules, the trial was predicted to find too: 'more' or
'less' where the interval excludes zero, 'undecided' elsewhere. `tests/experiments/horizons/freezing.py` makes the list
of the search's results once more, by these criteria.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from cycletime.experiments.horizons.candidates import AlgorithmSpec
from cycletime.experiments.horizons.ranking import MEASURES, START_KINDS, Measure
from cycletime.experiments.outcome import NotRunError
from cycletime.rules import Rule
from cycletime.training.toml_files import read_own_rules, read_toml


def preregistration_file(spec: AlgorithmSpec) -> str:
    return f"{spec.prefix}candidates.toml"


def preregistered_rules(results: Path | None, spec: AlgorithmSpec) -> dict[str, Rule]:
    return read_own_rules(_preregistration(results, spec))


def preregistered_predictions(results: Path | None, spec: AlgorithmSpec) -> dict[str, Any]:
    return dict(read_toml(_preregistration(results, spec))["predictions"])


def _preregistration(results: Path | None, spec: AlgorithmSpec) -> Path:
    file = (results or Path()) / preregistration_file(spec)
    if not file.exists():
        raise NotRunError(file.name, remedy=f"{file} is not there: the list that was frozen is in results/horizons.")
    return file


def planned_comparisons(spec: AlgorithmSpec) -> tuple[tuple[str, Measure, str], ...]:
    """Kinds of starting points, measures and reference rules that every candidate is compared by."""
    return tuple(product(START_KINDS, MEASURES, spec.references))


def comparison_key(kind: str, measure: Measure, other: str) -> str:
    return f"{measure}_from_{kind}_than_{other.replace('-', '_')}"
