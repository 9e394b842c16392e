"""The frozen list: which candidates go to the trial, what is predicted of them there, and the file that says so.

Who goes is decided by criteria, of which all but the last were fixed before the search was run:

1. the best average from tuned values,
2. the best worst cycle time from tuned values,
3. the best average from untuned values,
4. of the candidates with the fewest numbers that are not behind the first for sure, the best,
5. what users have already, which is so of SAC alone: PPO's trial has given it its name,
6. what the search of the others suggested, which is so of SAC alone, too, and stands back in the others.

What the search has found of their differences from the paper's rules, the trial is predicted to find too: 'more' or
'less' where the interval excludes zero, 'undecided' elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from cycletime.experiments.horizons.candidates import AlgorithmSpec, count_parameters
from cycletime.experiments.horizons.ranking import MEASURES, START_KINDS, Interval, Measure, RuleComparison
from cycletime.experiments.outcome import NotRunError
from cycletime.rules import Rule
from cycletime.rules.rule import own_rules_as_table
from cycletime.training.atomic_files import make_folder, write_whole
from cycletime.training.toml_files import read_own_rules, read_toml, toml_text

_MEASURE_TEXT: Mapping[Measure, str] = {"average": "on average", "worst": "at the worst cycle time"}
_DIGITS = 3


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
    if comparison.spec.in_use is not None:
        choose(comparison.spec.in_use, "what users have already")
    if comparison.spec.suggested is not None:
        choose(comparison.spec.suggested, "suggested by the search of the others")
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
    head = f"# Candidates for the trial, frozen before it. Made by: {preregistration_command(spec)}\n\n"
    file = results / preregistration_file(spec)
    make_folder(results)
    write_whole(file, lambda unfinished: unfinished.write_text(head + toml_text(tables), encoding="utf-8"))
    return file


def preregistration_file(spec: AlgorithmSpec) -> str:
    """The file's name."""
    return f"{spec.prefix}candidates.toml"


def preregistration_command(spec: AlgorithmSpec) -> str:
    """The command that writes it."""
    return f"cycletime experiment preregister horizons {spec.algorithm}"


def preregistered_rules(results: Path | None, spec: AlgorithmSpec) -> dict[str, Rule]:
    """The preregistered candidates."""
    return read_own_rules(_require_preregistration(results, spec))


def preregistered_predictions(results: Path | None, spec: AlgorithmSpec) -> dict[str, Any]:
    """By preregistered candidate, its predictions."""
    return dict(read_toml(_require_preregistration(results, spec))["predictions"])


def _require_preregistration(results: Path | None, spec: AlgorithmSpec) -> Path:
    file = (results or Path()) / preregistration_file(spec)
    if not file.exists():
        makes = f"'{preregistration_command(spec)}' makes it, once the search has been run."
        raise NotRunError(file.name, remedy=f"{file} is not there: {makes}")
    return file


def planned_comparisons(spec: AlgorithmSpec) -> tuple[tuple[str, Measure, str], ...]:
    """Kinds of starting points, measures and reference rules that every candidate is compared by."""
    return tuple(product(START_KINDS, MEASURES, spec.references))


def predictions(comparison: RuleComparison, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """By the comparison's key, the predicted difference of a candidate from each reference rule."""
    for kind, measure, other in planned_comparisons(comparison.spec):
        more = comparison.interval(name, kind, measure, less=other)
        numbers = [round(number, _DIGITS) for number in (more.value, more.low, more.high)]
        yield comparison_key(kind, measure, other), {"predicted": sign_of(more), "search": numbers}


def prediction_sentences(comparison: RuleComparison, name: str) -> Iterator[str]:
    """The predictions of a candidate, a sentence for each kind of starting points and each measure."""
    for kind, (measure, what) in product(START_KINDS, _MEASURE_TEXT.items()):
        references = comparison.spec.references
        signs = {other: sign_of(comparison.interval(name, kind, measure, less=other)) for other in references}
        by_sign = {sign: [other for other, each in signs.items() if each == sign] for sign in ("more", "less")}
        parts = [f"{sign} than {', '.join(others)}" for sign, others in by_sign.items() if others]
        yield f"From {kind} values {what}: {' and '.join(parts) or 'nothing that can be told from the others'}."


def comparison_key(kind: str, measure: Measure, other: str) -> str:
    """The key of a comparison in the file."""
    return f"{measure}_from_{kind}_than_{other.replace('-', '_')}"


def sign_of(difference: Interval) -> str:
    """'more', 'less' or 'undecided', by whether the interval of a difference excludes zero."""
    return "more" if difference.low > 0 else "less" if difference.high < 0 else "undecided"


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
    candidates = comparison.candidates.keys() - {comparison.spec.suggested}
    return [name for name in comparison.ranked(kind, measure) if name in candidates]
