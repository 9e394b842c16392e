"""A report for programs: plain numbers under names that stay."""

from __future__ import annotations

from typing import Any

from cycletime.reports.report import Report
from cycletime.reports.savings import Saving
from cycletime.reports.summary import Best, Place, Summary
from cycletime.studies.statistics import Comparison, Estimate, iqm

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
        "hyperparameters": {
            name: list(value) if isinstance(value, tuple) else value for name, value in panel.hyperparameters.items()
        },
        "where": panel.where,
        "rules": panel.rules,
        "dts_s": [float(dt) for dt in panel.dts],
        "cells": [_cell(summary, (rule, dt)) for dt in panel.dts for rule in panel.rules],
        "frequency_averaged": {rule: _estimate(each) for rule, each in summary.averages.items()},
        "advantage": {rule: _estimate(each) for rule, each in summary.advantages.items()},
        "best": {rule: _best(each) for rule, each in summary.best.items()},
    }


def _cell(summary: Summary, place: Place) -> dict[str, Any]:
    rule, dt = place
    scores = summary.panel.scores(rule, dt)
    counts = summary.counts(place)
    return {
        "rule": rule,
        "dt_s": float(dt),
        "runs": {"planned": counts.total(), **dict(sorted(counts.items()))},
        "scores": scores,
        "estimate": _estimate(summary.estimates[place]),
        "iqm": _estimate(iqm(scores) if scores else None),
        "verdict": summary.verdict(place) or None,
        "comparison": _comparison(summary.comparisons[place]) if place in summary.comparisons else None,
    }


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
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
        "difference": _estimate(comparison.difference),
        "p_value": comparison.p_value,
        "comparisons": comparison.comparisons,
        "verdict": comparison.verdict,
    }


def _best(best: Best | None) -> dict[str, Any] | None:
    if best is None:
        return None
    return {
        "dt_s": float(best.dt),
        "mean": _estimate(best.mean),
        "runner_up_dt_s": None if best.runner_up is None else float(best.runner_up),
        "undecided_dts_s": [float(dt) for dt in best.undecided],
        "against": {str(dt): _comparison(each) for dt, each in best.against.items()},
    }


def _saving(saving: Saving) -> dict[str, Any]:
    return {
        "task": saving.task,
        "algorithm": saving.algorithm,
        "grid_points": saving.points,
        "grid": saving.grid,
        "cycle_times": saving.dts,
        "seeds": saving.seeds,
        "hours_per_run": saving.run_h,
        "runs": {
            "tuning_each": saving.each_runs,
            "tuning_once": saving.once_runs,
            "study": saving.study_runs,
            "saved": saving.saved_runs,
        },
        "hours": {
            "tuning_each": saving.hours(saving.each_runs),
            "tuning_once": saving.hours(saving.once_runs),
            "study": saving.hours(saving.study_runs),
            "saved": saving.hours(saving.saved_runs),
        },
    }
