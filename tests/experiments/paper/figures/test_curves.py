import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.figures import draw_figures
from tests.experiments.paper.figures.conftest import score, words_in
from tests.experiments.paper.synthetic import synthetic_data

DTS = ("4ms", "8ms", "16ms", "32ms", "64ms")


def means_of(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_ydata(), float)


def lines_of(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if len(means_of(line)) > 1]


def test_lines_are_means_over_runs_at_the_ends_of_bins(data: PaperResults, drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["ppo-baseline"].axes
    outcome = data.outcome("ppo-baseline")
    for dt, line in zip(DTS, lines_of(axes), strict=True):
        np.testing.assert_allclose(means_of(line), outcome.cell(dt=dt).curves.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(np.asarray(line.get_xdata()), np.arange(1, 101) * 100_000)


def test_bands_are_one_standard_error(data: PaperResults, drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["ppo-baseline"].axes
    curves = data.outcome("ppo-baseline").cell(dt="4ms").curves
    edges = axes.collections[0].get_paths()[0].vertices
    top = float(np.asarray(edges)[np.asarray(edges)[:, 0] == 10_000_000][:, 1].max())
    assert top == pytest.approx(curves[:, -1].mean() + curves[:, -1].std(ddof=1) / 3**0.5)


def test_seconds_stand_above_environment_steps(drawn: dict[str, Figure]) -> None:
    for stem, seconds in (
        *(("ppo-baseline", 0.002), ("pendulum-baseline-curves", 0.004)),
        *(("ppo-robot", 0.01), ("sac-robot-120ms-curves", 0.04)),  # whose study has a time step of its own
    ):
        axes = drawn[stem].axes[0]
        (above,) = axes.child_axes
        assert above.get_xlabel() == "environment time (s)"
        assert axes.get_xlabel() == "environment steps"
        drawn[stem].draw_without_rendering()
        np.testing.assert_allclose(above.get_xlim(), np.array(axes.get_xlim()) * seconds)


def test_a_cycle_time_has_one_colour_and_marker_everywhere(drawn: dict[str, Figure]) -> None:
    looks: dict[str, set[tuple[object, object]]] = {}
    for figure in drawn.values():
        for legend in figure.legends:
            for handle in legend.legend_handles:
                assert handle is not None
                if isinstance(handle, Line2D) and str(handle.get_label()).startswith(r"$\delta t$"):
                    looks.setdefault(str(handle.get_label()), set()).add((handle.get_color(), handle.get_marker()))
    for dts in (DTS, ("10ms", "40ms", "120ms")):  # the robot's, which are in no figure with the others
        found = [looks.pop(rf"$\delta t$ = {dt.removesuffix('ms')} ms") for dt in dts]
        assert all(len(each) == 1 for each in found)
        assert len({colour for each in found for colour, _ in each}) == len(dts)
        assert len({marker for each in found for _, marker in each}) == len(dts)
    assert not looks


def test_the_second_rule_is_dashed(data: PaperResults, drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["pendulum-dt-aware-curves"].axes
    outcome = data.outcome("ppo-pendulum")
    for rule, dash in (("dt-aware", "-"), ("baseline", "--")):
        lines = [line for line in lines_of(axes) if line.get_linestyle() == dash]
        for dt, line in zip(DTS, lines, strict=True):
            np.testing.assert_allclose(means_of(line), outcome.cell(rule=rule, dt=dt).curves.mean(axis=0), atol=1e-9)
    assert {"dt-aware", "baseline"} <= words_in(drawn["pendulum-dt-aware-curves"])


def test_batch_times_have_a_panel_each(data: PaperResults, drawn: dict[str, Figure]) -> None:
    times = {8: 500, 16: 1000, 32: 2000, 64: 4000, 128: 8000}
    for stem, lines in (("ppo-batch-time-curves", 5), ("ppo-scaled-curves", 4), ("ppo-constant-curves", 4)):
        assert [axes.get_title() for axes in drawn[stem].axes] == [f"batch time {time} s" for time in times]
        assert {len(lines_of(axes)) for axes in drawn[stem].axes} == {lines}
    for axes, batch in zip(drawn["ppo-scaled-curves"].axes, times.values(), strict=True):
        cells = [
            data.outcome(f"ppo-{rule}").cell(dt=dt, batch=batch) for rule in ("dt-aware", "scaled") for dt in DTS[:2]
        ]
        for line, cell in zip(lines_of(axes), cells, strict=True):
            np.testing.assert_allclose(means_of(line), cell.curves.mean(axis=0), atol=1e-9)


def test_discounts_have_a_panel_each(drawn: dict[str, Figure]) -> None:
    titles = [axes.get_title() for axes in drawn["sac-gamma-curves"].axes]
    discounts = [".276", ".526", ".725", ".851", ".923", ".961", ".980", ".990", ".995", ".997", ".9987", "1"]
    assert titles == [rf"$\gamma$ = {discount}" for discount in discounts]


def test_runs_that_went_astray_are_left_out_of_curves_and_counted() -> None:
    def astray(labels: object, curves: np.ndarray) -> np.ndarray:
        lost = curves.copy()
        lost[0, 50:] = np.nan
        return lost

    data = synthetic_data(score, seeds=3, only=["ppo-baseline"], curves=astray)
    figure = draw_figures(data)["ppo-baseline"]
    cell = data.outcome("ppo-baseline").cell(dt="4ms")
    np.testing.assert_allclose(means_of(lines_of(figure.axes[0])[0]), cell.curves[1:].mean(axis=0), atol=1e-9)
    assert any("5 runs of 15 diverged, left out." in line for line in words_in(figure))


def test_a_single_seed_has_no_band() -> None:
    figure = draw_figures(synthetic_data(score, seeds=1, only=["ppo-baseline"]))["ppo-baseline"]
    assert not figure.axes[0].collections
    assert "n = 1 seed, so without standard errors. Data: made up." in words_in(figure)


def test_the_robot_s_values_at_40_ms_are_drawn_once(data: PaperResults, drawn: dict[str, Figure]) -> None:
    outcome = data.outcome("ppo-robot")
    places = (("dt-aware", "10ms"), ("dt-aware", "40ms"), ("baseline", "10ms"))
    expected = [outcome.cell(rule=rule, dt=dt).curves.mean(axis=0) for rule, dt in places]
    lines = drawn["ppo-robot"].axes[0].lines
    for line, mean in zip(lines, expected, strict=True):
        np.testing.assert_allclose(np.asarray(line.get_ydata()), mean)
    assert [line.get_linestyle() for line in lines] == ["-", "-", "--"]


def test_runs_for_twice_the_time_are_drawn_twice_as_far(drawn: dict[str, Figure]) -> None:
    ends = [[float(np.max(line.get_xdata())) for line in axes.lines] for axes in drawn["sac-robot-120ms-curves"].axes]
    assert ends == [[50_000, 100_000], [50_000], [50_000, 100_000]]
