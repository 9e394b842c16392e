from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from cycletime.reports.style import _METADATA, STYLE, add_seconds, save_figure

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


def test_a_file_is_what_matplotlib_saves_to_the_byte_and_is_drawn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def figure() -> Figure:
        made = Figure(figsize=(3, 2), layout="constrained")
        made.add_subplot().plot([1, 2, 4], label="a line")
        made.legend(loc="outside lower center")
        return made

    with mpl.rc_context(STYLE):
        theirs = figure()
        theirs.draw_without_rendering()
        theirs.set_layout_engine("none")
        for suffix in FORMATS:
            theirs.savefig(tmp_path / f"theirs.{suffix}", metadata=_METADATA[suffix])
        draws, draw = [], Figure.draw

        def counted(self: Figure, renderer: Any) -> None:  # noqa: ANN401
            draws.append(renderer)
            draw(self, renderer)

        monkeypatch.setattr(Figure, "draw", counted)
        paths = save_figure(figure(), tmp_path, "ours", FORMATS)
    assert len(draws) == len(FORMATS)
    for path in paths:
        assert path.read_bytes() == (tmp_path / f"theirs{path.suffix}").read_bytes()
