from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from cycletime.experiments.paper.data import BATCHES, PaperResults
from tests.experiments.paper.figures.conftest import words_in
from tests.experiments.paper.figures.test_against_dt import lines_of
from tests.experiments.paper.figures.test_curves import DTS

TIMES = (8, 16, 32, 64, 128)


def circles_of(axes: Axes) -> list[np.ndarray]:
    """[circles, 2] where those with a dashed border stand, and then where those with a solid one do."""
    found = [each for each in axes.collections if isinstance(each, PathCollection)]
    places = {dashed: [each.get_offsets() for each in found if is_dashed(each) == dashed] for dashed in (True, False)}
    return [np.concatenate(each) for each in places.values() if any(np.size(offsets) for offsets in each)]


def is_dashed(circles: PathCollection) -> bool:
    ((_, dashes),) = cast(list[tuple[float, list[float] | None]], circles.get_linestyle())
    return dashes is not None


def test_a_line_for_each_cycle_time(data: PaperResults, drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["ppo-batch-time"].axes
    vertical, *lines = lines_of(axes)
    at_16ms = [data.outcome("ppo-dt-aware").cell(dt="16ms", batch=batch).scores.mean() for batch in BATCHES]
    assert vertical.get_xdata() == [TIMES[int(np.argmax(at_16ms))]] * 2  # tuned there
    for dt, line in zip(DTS, lines, strict=True):
        means = [data.outcome("ppo-dt-aware").cell(dt=dt, batch=batch).scores.mean() for batch in BATCHES]
        np.testing.assert_allclose(np.asarray(line.get_xydata()), np.stack([TIMES, means], axis=1))
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == [str(time) for time in TIMES]
    assert axes.get_xlabel() == "batch time (s)"


def test_baseline_points_are_dash_bordered_at_their_batch_times(data: PaperResults, drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["ppo-batch-time"].axes
    dashed, solid = circles_of(axes)
    baseline = [data.outcome("ppo-baseline").cell(dt=dt).scores.mean() for dt in DTS]
    np.testing.assert_allclose(dashed, np.stack([TIMES, baseline], axis=1))
    aware = [data.outcome("ppo-dt-aware").cell(dt=dt, batch=2000).scores.mean() for dt in DTS]
    np.testing.assert_allclose(solid, [(32, mean) for mean in aware])
    assert {"baseline", "dt-aware from the baseline (32 s)"} <= words_in(drawn["ppo-batch-time"])


def test_another_rule_is_dashed_at_its_cycle_times(data: PaperResults, drawn: dict[str, Figure]) -> None:
    for rule, dts in (("scaled", DTS[:2]), ("constant", DTS[3:])):
        (axes,) = drawn[f"ppo-{rule}"].axes
        dashed = [line for line in lines_of(axes) if line.get_linestyle() == "--"]
        for dt, line in zip(dts, dashed, strict=True):
            means = [data.outcome(f"ppo-{rule}").cell(dt=dt, batch=batch).scores.mean() for batch in BATCHES]
            np.testing.assert_allclose(np.asarray(line.get_ydata()), means)
        assert not circles_of(axes)
        assert {"dt-aware", rule} <= words_in(drawn[f"ppo-{rule}"])


def test_the_pendulum_has_a_panel_for_each_rule(drawn: dict[str, Figure]) -> None:
    aware, scaled, constant = drawn["pendulum-batch-time"].axes
    assert len(circles_of(aware)) == 2
    assert [len(lines_of(axes)) for axes in (aware, scaled, constant)] == [6, 8, 8]
    assert {"dt-aware and scaled", "scaled", "constant"} <= words_in(drawn["pendulum-batch-time"])
