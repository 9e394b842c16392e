import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cycletime.duration import Duration
from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.figure_kinds import DT_LOOKS
from cycletime.experiments.paper.figures import draw_figures
from cycletime.reports.figure import COLOURS
from tests.experiments.paper.figures.conftest import words_in
from tests.experiments.paper.figures.test_curves import DTS

MS = (4, 8, 16, 32, 64)


def lines_of(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if len(points_of(line)) > 1]


def points_of(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata(), float)


def scores(data: PaperResults, study: str, **labels: object) -> list[float]:
    return [float(data.outcome(study).cell(dt=dt, **labels).scores.mean()) for dt in DTS]


def test_a_line_for_each_rule_goes_through_its_mean_scores(data: PaperResults, drawn: dict[str, Figure]) -> None:
    expected = {
        "ppo-tuned": [scores(data, "ppo-grid-winners"), scores(data, "ppo-baseline")],
        "sac-tuned": [scores(data, study) for study in ("sac-gamma-sweep-winners", "sac-baseline", "sac-scaled")],
        "pendulum-tuned": [
            scores(data, "pendulum-grid-winners"),
            *(scores(data, "ppo-pendulum", rule=rule) for rule in ("baseline", "dt-aware")),
        ],
        "ppo-dt0": [*(scores(data, f"ppo-dt0-{dt}") for dt in DTS[::2]), scores(data, "ppo-grid-winners")],
    }
    for stem, every in expected.items():
        (axes,) = drawn[stem].axes
        for line, means in zip(lines_of(axes), every, strict=True):
            np.testing.assert_allclose(points_of(line), np.stack([MS, means], axis=1))
        assert len({line.get_linestyle() for line in lines_of(axes)}) == len(every)


def test_the_axis_is_logarithmic_with_a_tick_for_each_cycle_time(drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["ppo-tuned"].axes
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == [str(ms) for ms in MS]
    assert axes.get_xlabel() == "cycle time (ms)"


def test_a_rule_has_the_same_colour_in_all_figures(drawn: dict[str, Figure]) -> None:
    for stem, place in (("ppo-tuned", 1), ("sac-tuned", 1), ("three-part", 1), ("rule", 1)):
        assert lines_of(drawn[stem].axes[0])[place].get_color() == COLOURS[1], "the baseline's"


def test_lines_from_different_starts_have_the_colour_of_their_start(drawn: dict[str, Figure]) -> None:
    lines = lines_of(drawn["ppo-dt0"].axes[0])
    assert [line.get_color() for line in lines[:3]] == [DT_LOOKS[Duration(dt)][0] for dt in DTS[::2]]
    assert "dt-aware from 64 ms (b 1000, m 12)" in words_in(drawn["ppo-dt0"])


def test_three_parts(data: PaperResults, drawn: dict[str, Figure]) -> None:
    left, middle, right = drawn["three-part"].axes
    assert [axes.get_title() for axes in (left, middle, right)] == [
        "SAC on Reacher",
        "PPO on Double Pendulum",
        "SAC on Double Pendulum",
    ]
    for axes, baseline, aware in (
        (left, "sac-baseline", "sac-dt-aware"),
        (right, "sac-pendulum-baseline", "sac-pendulum-dt-aware"),
    ):
        means = [
            scores(data, aware, rule="tuned-scaled"),
            scores(data, baseline),
            scores(data, aware, rule="tuned"),
        ]
        np.testing.assert_allclose([points_of(line)[:, 1] for line in lines_of(axes)], means)
    means = [scores(data, "ppo-pendulum", rule=rule) for rule in ("dt-aware", "baseline")]
    np.testing.assert_allclose([points_of(line)[:, 1] for line in lines_of(middle)], means)


def test_parts_without_data_say_that_they_were_not_run(data: PaperResults) -> None:
    figure = draw_figures(PaperResults({"ppo-pendulum": data.outcome("ppo-pendulum")}))["three-part"]
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert texts == [["not run"], [], ["not run"]]
