"""A report for programs: plain numbers under names that stay."""

from __future__ import annotations

from typing import Any

from cycletime.reports.choices import Choices
from cycletime.reports.report import Report
from cycletime.reports.savings import Saving
from cycletime.reports.scores import Panel
from cycletime.reports.summary import Best, Place, Summary
from cycletime.statistics import Comparison, Estimate, iqm, probability_of_improvement

FORMAT = 1


def as_json(report: Report) -> dict[str, Any]:
    """The whole report."""
    counts = report.scores.counts()
    return {
        "format": FORMAT,
        "study": report.name,
        "measure": report.scores.measure,
        "statistic": "iqm" if report.statistics.iqm else "mean",
        "interval": report.statistics.interval,
        "runs": {"planned": counts.total(), **dict(sorted(counts.items()))},
        "panels": [
            {
                **_panel(summary),
                "text": {"best": answer.best, "against": answer.against, "undecided": answer.undecided},
            }
            for summary, answer in zip(report.summaries, report.answers, strict=True)
        ],
        "choices": [_choices(choices) for choices in report.choices],
        "savings": [_saving(saving) for saving in report.savings],
        "text": [*report.completeness, *report.saving_sentences],
        "command": report.command,
        "made_by": [{"runs": count, "machine": told} for told, count in report.machines()],
    }


def _panel(summary: Summary) -> dict[str, Any]:
    panel = summary.panel
    return {
        "task": panel.task,
        "algorithm": panel.algorithm,
        "hyperparameters": _hyperparameters(panel),
        "where": panel.where,
        "rules": panel.rules,
        "dts_s": [float(dt) for dt in panel.dts],
        "cells": [_cell(summary, (rule, dt)) for dt in panel.dts for rule in panel.rules],
        "frequency_averaged": {rule: estimate_as_json(each) for rule, each in summary.averages.items()},
        "advantage": {rule: estimate_as_json(each) for rule, each in summary.advantages.items()},
        "best": {rule: _best(each) for rule, each in summary.best.items()},
    }


def _choices(choices: Choices) -> dict[str, Any]:
    first = choices.panels[0]
    ((rule, dt),) = first.cells
    return {
        "task": first.task,
        "algorithm": first.algorithm,
        "where": first.where,
        "rule": rule,
        "dt_s": float(dt),
        "ranking": [
            {
                "hyperparameters": _hyperparameters(panel),
                "scores": panel.scores(rule, dt),
                "estimate": estimate_as_json(estimate),
                "verdict": choices.verdict(index) or None,
                "comparison": _comparison(choices.against[index]) if index in choices.against else None,
            }
            for index, (panel, estimate) in enumerate(zip(choices.panels, choices.estimates, strict=True))
        ],
        "text": choices.sentences(),
    }


def _hyperparameters(panel: Panel) -> dict[str, Any]:
    return {name: list(each) if isinstance(each, tuple) else each for name, each in panel.hyperparameters.items()}


def _cell(summary: Summary, place: Place) -> dict[str, Any]:
    rule, dt = place
    scores = summary.panel.scores(rule, dt)
    counts = summary.panel.counts(place)
    return {
        "rule": rule,
        "dt_s": float(dt),
        "runs": {"planned": counts.total(), **dict(sorted(counts.items()))},
        "scores": scores,
        "estimate": estimate_as_json(summary.estimates[place]),
        "iqm": estimate_as_json(iqm(scores) if scores else None),
        "verdict": summary.verdict(place) or None,
        "comparison": _comparison(summary.comparisons[place]) if place in summary.comparisons else None,
        "probability_of_improvement": _improvement(summary, place),
    }


def _improvement(summary: Summary, place: Place) -> dict[str, Any] | None:
    """How probable a run of a cell is to beat one of the first rule's."""
    if place not in summary.comparisons:
        return None
    ours, theirs = summary.panel.scores(*place), summary.panel.scores(summary.panel.rules[0], place[1])
    return estimate_as_json(probability_of_improvement(ours, theirs))


def estimate_as_json(estimate: Estimate | None) -> dict[str, Any] | None:
    """A number with its interval and its runs."""
    if estimate is None:
        return None
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "interval": estimate.interval,
        "n": estimate.n,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "difference": estimate_as_json(comparison.difference),
        "p_value": comparison.p_value,
        "comparisons": comparison.comparisons,
        "verdict": comparison.verdict,
    }


def _best(best: Best | None) -> dict[str, Any] | None:
    if best is None:
        return None
    return {
        "dt_s": float(best.dt),
        "mean": estimate_as_json(best.mean),
        "runner_up_dt_s": None if best.runner_up is None else float(best.runner_up),
        "undecided_dts_s": [float(dt) for dt in best.undecided],
        "against": {str(dt): _comparison(each) for dt, each in best.against.items()},
    }


def _saving(saving: Saving) -> dict[str, Any]:
    prices = {"tuning_each": saving.each, "tuning_once": saving.once, "study": saving.study, "saved": saving.saved}
    return {
        "task": saving.task,
        "algorithm": saving.algorithm,
        "grid": saving.how,
        "grid_points": saving.points,
        "seeds": saving.seeds,
        "cycle_times": saving.dts,
        "runs": {name: price.runs for name, price in prices.items()},
        "hours": {name: price.hours for name, price in prices.items()},
    }
