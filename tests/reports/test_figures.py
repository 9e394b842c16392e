import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from cycletime.reports.drawing import draw_figure, save_figures
from cycletime.reports.figures import study_figures
from cycletime.reports.summary import Statistics, Summary
from cycletime.studies.scores import Panel, read_scores
from cycletime.studies.study_folder import StudyFolder

MakeStudy = Callable[..., StudyFolder]


def panel_of(folder: StudyFolder) -> Panel:
    (panel,) = read_scores(folder).panels
    return panel


def texts(folder: StudyFolder, statistics: Statistics | None = None) -> tuple[set[str], set[str]]:
    """The lines of text in the figure of the performance, and in that of the curves."""
    performance, curves = drawn_of(folder, statistics)
    return _lines(performance), _lines(curves)


def drawn_of(folder: StudyFolder, statistics: Statistics | None = None) -> list[Figure]:
    """The figures of the performance and of the curves."""
    summary = Summary.of(panel_of(folder), statistics or Statistics())
    return [draw_figure(spec) for spec in study_figures(summary, "x", "average", "a command")]


def _lines(figure: Figure) -> set[str]:
    texts = [each for each in figure.findobj(lambda artist: isinstance(artist, Text)) if isinstance(each, Text)]
    return {line for text in texts for line in text.get_text().splitlines()}


def test_figures_name_their_axes_seeds_interval_and_origin(decided: StudyFolder, tmp_path: Path) -> None:
    specs = study_figures(Summary.of(panel_of(decided), Statistics()), "x", "average", "a command")
    paths = save_figures({spec.name: draw_figure(spec) for spec in specs}, tmp_path, ("svg", "png"))
    assert [path.name for path in paths[1::2]] == ["x-performance.png", "x-curves.png"]
    drawn = ((tmp_path / f"x-{kind}.svg").read_text() for kind in ("performance", "curves"))
    performance, curves = (set(re.findall(r"<text[^>]*>([^<]*)</text>", svg)) for svg in drawn)
    legend = {"baseline (n = 3 seeds)", "dt-aware (n = 3 seeds)"}
    assert performance >= legend | {
        "reacher, ppo: mean return over learning against the cycle time",
        "means ± one standard error; data: closed form",
        "cycle time (ms)",
        "mean return over learning",
        "16",
        "32",
    }
    assert curves >= legend | {
        "reacher, ppo: learning curves",
        "means, bands ± one standard error; data: closed form",
        "environment steps",
        "environment time (s)",
        "episodic return",
        "16 ms",
        "32 ms",
    }
    assert (tmp_path / "x-performance.png").read_bytes().startswith(b"\x89PNG")


def test_an_interval_is_named_as_it_is(decided: StudyFolder) -> None:
    performance, _ = texts(decided, Statistics("t"))
    assert "means [95 % t interval]; data: closed form" in performance


def test_unequal_numbers_of_seeds_are_told(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: None if seed == 2 and str(labels["dt"]) == "32ms" else float(seed))
    performance, curves = texts(folder)
    assert {"baseline (n = 2 to 3 seeds)", "dt-aware (n = 2 to 3 seeds)"} <= performance & curves


def test_points_and_bars_stand_where_the_numbers_are(decided: StudyFolder) -> None:
    (axes,) = drawn_of(decided)[0].axes
    drawn = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
    baseline, aware = (np.asarray(each.lines[0].get_xydata()) for each in drawn)
    np.testing.assert_allclose(baseline[:, 1], [-22, -41])
    np.testing.assert_allclose(aware[:, 1], [-22, -26])
    np.testing.assert_allclose(baseline[:, 0], [16, 32], rtol=0.02)
    assert (baseline[:, 0] < aware[:, 0]).all()
    (bars,) = drawn[0].lines[2]
    np.testing.assert_allclose(bars.get_segments()[0][:, 1], [-22 - 2 / 3**0.5, -22 + 2 / 3**0.5])


def test_rules_of_a_cycle_time_stand_nearer_to_it_than_to_its_neighbours(make_study: MakeStudy) -> None:
    dts = [2.0, 10.0, 12.0, 128.0]
    rules = ["baseline", "dt-aware", "scaled", "constant"]
    folder = make_study(lambda labels, seed: 1.0, dts=[f"{dt:g}ms" for dt in dts], seeds=1, rules=rules)
    (axes,) = drawn_of(folder)[0].axes
    drawn = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
    places = np.log([np.asarray(each.lines[0].get_xydata())[:, 0] for each in drawn])
    distances = np.abs(places[:, :, np.newaxis] - np.log(dts))
    assert (distances.argmin(-1) == np.arange(4)).all()


@pytest.mark.parametrize("keys", [{"seeds": 1}, {"dts": ["16ms"]}, {"rules": ["baseline"]}])
def test_one_of_a_kind_can_be_drawn(make_study: MakeStudy, keys: dict[str, Any]) -> None:
    performance, curves = texts(make_study(lambda labels, seed: float(seed), **keys))
    assert "reacher, ppo: learning curves" in curves
    assert ("no bands from 1 run; data: closed form" in curves) == (keys == {"seeds": 1})
    assert ("no intervals from 1 run; data: closed form" in performance) == (keys == {"seeds": 1})
    assert ("baseline (n = 1 seed)" in performance & curves) == (keys == {"seeds": 1})


def test_crowded_cycle_times_are_written_aslant(make_study: MakeStudy) -> None:
    for dts, slant in ((["8ms", "16ms", "32ms"], 0.0), (["2ms", "10ms", "12ms", "128ms"], 60.0)):
        folder = make_study(lambda labels, seed: 1.0, dts=dts, seeds=1, name=str(slant), rules=["baseline"])
        (axes,) = drawn_of(folder)[0].axes
        assert {label.get_rotation() for label in axes.get_xticklabels()} == {slant}
        shutil.rmtree(folder.path)


def test_seven_cycle_times_have_a_part_each_and_no_empty_one(make_study: MakeStudy) -> None:
    dts = ["2ms", "4ms", "8ms", "16ms", "32ms", "64ms", "128ms"]
    _, figure = drawn_of(make_study(lambda labels, seed: float(seed), dts=dts, seeds=1, rules=["baseline"]))
    assert [axes.get_title() for axes in figure.axes] == [dt.replace("ms", " ms") for dt in dts]


def test_curves_are_means_of_bins_of_runs_that_are_scored(make_study: MakeStudy) -> None:
    comes = [1.0, 3.0, "astray", None]
    summary = Summary.of(panel_of(make_study(lambda labels, seed: comes[seed], seeds=4)), Statistics())
    curve = study_figures(summary, "x", "average", "")[1].cells["x/baseline/16ms"].mean_curve()
    assert curve is not None
    assert (curve.n, len(curve.mean), curve.env_steps[-1]) == (2, 100, 4800)
    np.testing.assert_allclose(curve.mean, 2.0)
    assert curve.high is not None
    np.testing.assert_allclose(curve.high, 3.0)
