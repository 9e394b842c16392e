"""The frozen list made once more of a search's results, by the criteria of `horizons.preregistration`.

So the list that is kept can be held against the search that it was made of. Of SAC, what users had already and what
the search of the others suggested goes to the trial as well.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from cycletime.experiments.horizons.candidates import ALGORITHM_SPECS, SAC_SUGGESTED
from cycletime.experiments.horizons.preregistration import (
    comparison_key,
    planned_comparisons,
    preregistration_file,
)
from cycletime.experiments.horizons.ranking import START_KINDS, Measure, RuleComparison
from cycletime.experiments.horizons.results import Evidence
from cycletime.experiments.outcome import read_results
from cycletime.rules import Rule, laws
from cycletime.rules.rule import own_rules_as_table
from cycletime.training.toml_files import toml_text

IN_USE, SUGGESTED = {"sac": "floor-6"}, {"sac": SAC_SUGGESTED}
_MEASURE_TEXT: Mapping[Measure, str] = {"average": "on average", "worst": "at the worst cycle time"}
_DIGITS = 3
_WITHOUT_NUMBER = (laws.KEPT, laws.COUNT, laws.POWER, laws.SMOOTHING, laws.PROPORTIONAL, laws.GROWN)


def freeze(folder: Path, algorithm: str) -> Path:
    """Write the list of a search whose results are in a folder, beside them."""
    return write_preregistration(Evidence(read_results(folder), ALGORITHM_SPECS[algorithm]).search, folder)


def count_parameters(rule: Rule) -> int:
    """How many free numbers a candidate has."""
    return len({law for law in rule.laws.values() if law not in _WITHOUT_NUMBER})


def chosen_candidates(comparison: RuleComparison) -> dict[str, str]:
    """By candidate, the criteria by which it goes to the trial."""
    chosen: dict[str, str] = {}

    def choose(name: str, why: str) -> None:
        chosen[name] = f"{chosen[name]}; {why}" if name in chosen else why

    best = _ranked_candidates(comparison, "tuned", "average")[0]
    choose(best, "the best average from tuned values")
    choose(_ranked_candidates(comparison, "tuned", "worst")[0], "the best worst cycle time from tuned values")
    choose(_ranked_candidates(comparison, "untuned", "average")[0], "the best average from untuned values")
    choose(_simplest(comparison, best), "the best of those with the fewest numbers that are not behind for sure")
    algorithm = comparison.spec.algorithm
    if algorithm in IN_USE:
        choose(IN_USE[algorithm], "what users have already")
        choose(SUGGESTED[algorithm], "suggested by the search of the others")
    return chosen


def write_preregistration(comparison: RuleComparison, results: Path) -> Path:
    """Write candidates, their laws and predictions; the file."""
    chosen = chosen_candidates(comparison)
    spec = comparison.spec
    own = own_rules_as_table({name: comparison.candidates[name] for name in chosen})
    tables: dict[str, dict[str, Any]] = {f"own_rules.{name}": table for name, table in own.items()}
    for name, why in chosen.items():
        tables[f"predictions.{name}"] = {
            "chosen": why,
            "words": list(prediction_sentences(comparison, name)),
            **dict(predictions(comparison, name)),
        }
    file = results / preregistration_file(spec)
    file.write_text(toml_text(tables), encoding="utf-8")
    return file


def predictions(comparison: RuleComparison, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """By the comparison's key, the predicted difference of a candidate from each reference rule."""
    for kind, measure, other in planned_comparisons(comparison.spec):
        more = comparison.interval(name, kind, measure, less=other)
        numbers = [round(number, _DIGITS) for number in (more.value, more.low, more.high)]
        yield comparison_key(kind, measure, other), {"predicted": more.sign, "search": numbers}


def prediction_sentences(comparison: RuleComparison, name: str) -> Iterator[str]:
    """The predictions of a candidate, a sentence for each kind of starting points and each measure."""
    for kind, (measure, what) in product(START_KINDS, _MEASURE_TEXT.items()):
        references = comparison.spec.references
        signs = {other: comparison.interval(name, kind, measure, less=other).sign for other in references}
        by_sign = {sign: [other for other, each in signs.items() if each == sign] for sign in ("more", "less")}
        parts = [f"{sign} than {', '.join(others)}" for sign, others in by_sign.items() if others]
        yield f"From {kind} values {what}: {' and '.join(parts) or 'nothing that can be told from the others'}."


def _simplest(comparison: RuleComparison, best: str) -> str:
    near = [
        name
        for name in _ranked_candidates(comparison, "tuned", "average")
        if comparison.interval(best, "tuned", "average", less=name).low <= 0
    ]
    # The first of those with the fewest, which is the best.
    return min(near, key=lambda name: count_parameters(comparison.candidates[name]))


def _ranked_candidates(comparison: RuleComparison, kind: str, measure: Measure) -> list[str]:
    """The candidates that were there before the search, the best first."""
    candidates = comparison.candidates.keys() - {SUGGESTED.get(comparison.spec.algorithm)}
    return [name for name in comparison.ranked(kind, measure) if name in candidates]
