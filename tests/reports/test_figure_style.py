from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import IdentityTransform, blended_transform_factory

from cycletime.reports.figure_style import (
    _COMPRESSION,
    _METADATA,
    STYLE,
    TITLE_PAD,
    add_seconds_axis,
    label_steps,
    save_figure,
)

FORMATS = ("pdf", "svg", "png")


def test_the_same_figure_gives_the_same_bytes_without_a_date(tmp_path: Path) -> None:
    for name, last_bits in (("one", 0.0), ("other", 1e-15)):  # as a layout's, which depend on addresses in memory
        with mpl.rc_context(STYLE):
            figure = Figure()
            figure.add_axes((0.125, 0.11, 0.775 + last_bits, 0.77)).plot([1, 2], [3, 4], label="line")
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
    add_seconds_axis(axes, 0.002)
    figure.draw_without_rendering()
    (above,) = axes.child_axes
    np.testing.assert_allclose(above.get_xlim(), np.array(axes.get_xlim()) * 0.002)
    assert above.get_xlabel() == "environment time (s)"


@pytest.mark.parametrize("dpi", [72, 150])
def test_labels_and_title_stand_where_matplotlib_would_put_them_by_itself(dpi: int) -> None:
    def places(*, by_itself: bool) -> list[float]:
        figure = Figure(figsize=(4, 3), dpi=dpi)
        axes = figure.add_axes((0.2, 0.2, 0.6, 0.5))
        axes.plot([0, 1000], [0, 1])
        label_steps(axes)
        add_seconds_axis(axes, 0.002)
        axes.set_title("16 ms", fontsize=9, pad=TITLE_PAD)
        (above,) = axes.child_axes
        if by_itself:
            axes.set_title("16 ms", fontsize=9)
            for each in (axes, above):
                each.xaxis.label.set_transform(blended_transform_factory(each.transAxes, IdentityTransform()))
                each.xaxis._autolabelpos = True  # type: ignore[attr-defined]
        figure.draw_without_rendering()
        texts = (axes.xaxis.label, above.xaxis.label, axes.title)
        return [end for text in texts for end in text.get_window_extent().extents]

    with mpl.rc_context(STYLE):
        ours = places(by_itself=False)
    with mpl.rc_context(STYLE | {"axes.titley": None}):
        theirs = places(by_itself=True)
    np.testing.assert_allclose(ours, theirs, atol=1.5)  # pixels, since letters are rounded to whole ones


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
        (axes,) = theirs.axes
        axes.set_position(tuple(round(each, 9) for each in axes.get_position(original=True).bounds))
        for suffix in FORMATS:
            options: dict[str, Any] = {**_COMPRESSION.get(suffix, {}), "metadata": _METADATA[suffix]}
            theirs.savefig(tmp_path / f"theirs.{suffix}", **options)
        draws, draw = [], Figure.draw

        def counted(self: Figure, renderer: Any) -> None:  # noqa: ANN401
            draws.append(renderer)
            draw(self, renderer)

        monkeypatch.setattr(Figure, "draw", counted)
        paths = save_figure(figure(), tmp_path, "ours", FORMATS)
    assert len(draws) == len(FORMATS)
    for path in paths:
        assert path.read_bytes() == (tmp_path / f"theirs{path.suffix}").read_bytes()
