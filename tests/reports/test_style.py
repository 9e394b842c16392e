from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cycletime.reports.style import STYLE, add_seconds, save_figure

FORMATS = ("pdf", "svg", "png")


def test_the_same_figure_gives_the_same_bytes_without_a_date(tmp_path: Path) -> None:
    for name in ("one", "other"):
        with mpl.rc_context(STYLE):
            figure = Figure()
            figure.add_subplot().plot([1, 2], [3, 4], label="line")
            (tmp_path / name).mkdir()
            paths = save_figure(figure, tmp_path / name, "x", FORMATS)
    assert paths == [tmp_path / "other" / f"x.{suffix}" for suffix in FORMATS]
    for path in paths:
        content = path.read_bytes()
        assert content == (tmp_path / "one" / path.name).read_bytes()
        assert b"Date" not in content
        assert b"atplotlib v" not in content


def test_seconds_stand_above_the_environment_steps_that_they_are() -> None:
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot([0, 1000], [0, 1])
    add_seconds(axes, 0.002)
    figure.draw_without_rendering()
    (above,) = axes.child_axes
    np.testing.assert_allclose(above.get_xlim(), np.array(axes.get_xlim()) * 0.002)
    assert above.get_xlabel() == "environment time (s)"
