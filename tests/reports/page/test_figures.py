"""Figures as data: the numbers that a page draws are those of the runs."""

import numpy as np
import pytest
from scipy.stats import sem, trim_mean

from cycletime.reports.figure import FigureCell, FigureSpec, LineSpec, PanelSpec
from cycletime.reports.page.figures import FigureData, plain_text


def cell(runs: int = 8, bins: int = 100) -> FigureCell:
    rng = np.random.default_rng(1)
    curves = np.cumsum(rng.normal(size=(runs, bins)), axis=1)
    return FigureCell(curves.mean(axis=1).tolist(), curves, 4800)


def shown_data(shown: FigureCell) -> FigureData:
    """A figure with the curve of a cell."""
    panels = (PanelSpec("", (LineSpec("x", ("one",)),)),)
    return FigureData([FigureSpec("b", "B", "curves", panels, {"one": shown}, "", "", "return", pack="b")])


def test_a_score_is_the_mean_with_its_error_and_the_interquartile_mean() -> None:
    shown = cell()
    told = shown_data(shown).as_json()["cells"]["one"]
    scores = np.array(shown.scores)
    error = scores.std(ddof=1) / np.sqrt(len(scores))
    assert told["n"] == 8
    assert told["mean"] == pytest.approx([scores.mean(), scores.mean() - error, scores.mean() + error], rel=1e-4)
    assert told["iqm"][0] == pytest.approx(trim_mean(scores, 0.25), rel=1e-4)
    assert told["iqm"][1] <= told["iqm"][0] <= told["iqm"][2]


def test_curves_of_means_and_of_interquartile_means_have_a_band_in_each_bin() -> None:
    shown = cell()
    told = shown_data(shown).as_json()["curves"]["one"]
    assert told is not None
    assert shown.curves is not None
    error = sem(shown.curves, axis=0)
    means = shown.curves.mean(axis=0)
    for found, expected in zip(told["mean"], (means, means - error, means + error), strict=True):
        assert found == pytest.approx(expected, rel=1e-4)
    middle, low, high = map(np.array, told["iqm"])
    assert middle == pytest.approx(trim_mean(shown.curves, 0.25, axis=0), rel=1e-4)
    assert ((low < middle) & (middle < high)).all()
    assert told["env_steps"] == 4800


def test_a_single_run_has_no_interval() -> None:
    told = shown_data(FigureCell([3.0], np.full((1, 10), 3.0), 100)).as_json()
    assert told["cells"]["one"]["mean"] == [3.0, None, None]
    curve = told["curves"]["one"]
    assert curve["mean"] == curve["iqm"] == [[3.0] * 10, None, None]


@pytest.mark.parametrize(("runs", "every"), [(8, 1), (300, 2)])
def test_single_curves_come_back_within_half_a_step(runs: int, every: int) -> None:
    shown = cell(runs)
    told = shown_data(shown).seeds("b")["one"]
    assert told is not None
    assert shown.curves is not None
    back = np.cumsum(told["deltas"], axis=1) * told["step"]
    kept = shown.curves[:, every - 1 :: every]
    assert told["every"] == every
    assert np.abs(back - kept).max() <= told["step"] / 2 + 1e-12
    assert told["step"] <= np.ptp(shown.curves) / 400


def test_curves_that_never_change_can_be_told() -> None:
    told = shown_data(FigureCell([1.0, 1.0], np.ones((2, 4)), 100)).seeds("b")["one"]
    assert told is not None
    assert np.cumsum(told["deltas"], axis=1).tolist() == [[1] * 4] * 2


def test_cells_of_several_figures_are_told_once_and_curves_of_those_that_draw_them() -> None:
    points = (PanelSpec("", (LineSpec("x", ("one", None)),), (1.0, 2.0)),)
    curves = (PanelSpec("", (LineSpec("x", ("two",)),)),)
    figures = [
        FigureSpec("a", "A", "points", points, {"one": cell()}, "", "", "score"),
        FigureSpec("b", "B", "curves", curves, {"two": cell()}, "", "", "return", pack="b"),
    ]
    data = FigureData(figures)
    told = data.as_json()
    assert set(told["cells"]) == {"one", "two"}
    assert set(told["curves"]) == {"two"} == set(data.seeds("b"))


def test_a_cell_without_scores_and_a_panel_that_was_not_run_are_left_out() -> None:
    lines = (LineSpec("x", ("one", "diverged", None)),)
    panels = (PanelSpec("run", lines, (1.0, 2.0, 3.0)), PanelSpec("not run", ()))
    data = FigureData([FigureSpec("a", "A", "points", panels, {"one": cell()}, "", "", "score")])
    (panel,) = data.as_json()["figures"]["a"]["panels"]
    assert panel["lines"][0]["cells"] == ("one", None, None)


@pytest.mark.parametrize(
    ("tex", "plain"),
    [
        (r"$\gamma$ = .99$^{\delta t / 16\,\mathrm{ms}}$", "γ = .99^(δt / 16 ms)"),  # noqa: RUF001
        (r"$\gamma_{\delta t, 1}$ = .9227$^3$", "γ₁ = .9227^3"),
        ("a_study {of} mine^2", "a_study {of} mine^2"),
    ],
)
def test_tex_is_written_as_plain_text(tex: str, plain: str) -> None:
    assert plain_text(tex) == plain
