import numpy as np
import pytest
from matplotlib.figure import Figure

from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.figure_kinds import discount_text
from tests.experiments.paper.figures.test_against_batch_time import circles_of
from tests.experiments.paper.figures.test_against_dt import lines_of, scores
from tests.experiments.paper.figures.test_curves import DTS


def test_discounts_of_the_sweep_are_evenly_spaced_with_1_at_the_end(
    data: PaperResults, drawn: dict[str, Figure]
) -> None:
    (axes,) = drawn["sac-gamma"].axes
    lines = lines_of(axes)
    for dt, line in zip(DTS, lines, strict=True):
        cells = data.outcome("sac-gamma-sweep").where(dt=dt)
        means = [cell.scores.mean() for cell in sorted(cells, key=lambda cell: float(cell.labels["discount"]))]
        np.testing.assert_allclose(np.asarray(line.get_ydata()), means)
        np.testing.assert_allclose(np.asarray(line.get_xdata()), np.arange(-7, 5), atol=1e-3)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == [".276", ".526", ".725", ".851", ".923", ".961", ".980", ".990", ".995", ".997", ".9987", "1"]


def test_baseline_and_scaled_points_are_marked(data: PaperResults, drawn: dict[str, Figure]) -> None:
    baseline, scaled = circles_of(drawn["sac-gamma"].axes[0])
    expected = np.stack([np.zeros(5), scores(data, "sac-baseline")], axis=1)
    np.testing.assert_allclose(baseline, expected, atol=1e-9)
    # .99^(dt / 16 ms): a cycle time twice as long has half the place.
    expected = np.stack([[2, 1, 0, -1, -2], scores(data, "sac-scaled")], axis=1)
    np.testing.assert_allclose(scaled, expected, atol=1e-9)


def test_the_robot_s_discounts_at_120_ms_stand_beside_the_sweep_at_40_ms(
    data: PaperResults, drawn: dict[str, Figure]
) -> None:
    (axes,) = drawn["sac-robot"].axes
    sweep, longer = (data.outcome(name) for name in ("sac-robot-sweep", "sac-robot-120ms"))
    at_120ms = {gamma: longer.cell(discount=gamma).scores.mean() for gamma in (0.785678, 0.922745, 0.99)}
    expected = [[cell.scores.mean() for cell in sweep.cells], [*at_120ms.values()]]
    for line, means in zip(lines_of(axes), expected, strict=True):
        np.testing.assert_allclose(np.asarray(line.get_ydata()), means)
    baseline, aware = circles_of(axes)
    np.testing.assert_allclose(baseline, [[0, at_120ms[0.99]]], atol=1e-9)
    np.testing.assert_allclose(aware[:, 0], [-np.log2(24), -3], atol=1e-3)
    assert axes.get_xlabel().endswith("axis of $e$")


@pytest.mark.parametrize(
    ("discount", "words"), [(0.276252, ".276"), (0.9801, ".980"), (0.998744, ".9987"), (0.9987, ".9987"), (1.0, "1")]
)
def test_discounts_are_written_as_in_the_paper(discount: float, words: str) -> None:
    assert discount_text(discount) == words
