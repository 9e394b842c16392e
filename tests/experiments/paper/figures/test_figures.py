from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.figures import FIGURES, describe_figures, draw_figures, missing_figures, save_figures
from tests.experiments.paper.figures.conftest import score, words_in
from tests.experiments.paper.synthetic import STUDIES, synthetic_data

OF_THE_PAPER = {
    *("ppo-baseline", "ppo-tuned", "ppo-batch-time", "ppo-scaled"),
    *("sac-baseline", "sac-tuned", "sac-gamma", "three-part", "ppo-robot", "sac-robot"),
}
OF_ITS_APPENDIX = {
    *("ppo-constant", "ppo-batch-time-curves", "ppo-scaled-curves", "ppo-constant-curves", "sac-gamma-curves"),
    *("sac-dt-aware-curves-1", "sac-dt-aware-curves-2", "pendulum-baseline-curves", "pendulum-dt-aware-curves"),
    *("sac-pendulum-curves-baseline", "sac-pendulum-curves-1", "sac-pendulum-curves-2"),
    *("ppo-robot-2000-curves", "sac-robot-40ms-curves", "sac-robot-120ms-curves"),
}
OURS = ["ppo-dt0", "pendulum-tuned", "pendulum-batch-time", "rule", "released-code"]


def test_every_figure_is_drawn_from_data_of_every_study(drawn: dict[str, Figure]) -> None:
    assert set(drawn) == set(FIGURES) == {*OF_THE_PAPER, *OF_ITS_APPENDIX, *OURS}


def test_every_figure_tells_its_seeds_its_errors_its_origin_and_its_axes(drawn: dict[str, Figure]) -> None:
    for stem, figure in drawn.items():
        words = " ".join(words_in(figure))
        assert "Means over n = 3 seeds ± one standard error. Data: made" in words, stem
        named = {axes.get_xlabel() for axes in figure.axes} | {axes.get_ylabel() for axes in figure.axes}
        assert named & {"episodic return", "performance: mean return over learning"}, stem
        assert figure.legends, stem


def test_no_two_lines_of_a_figure_look_alike(data: PaperResults) -> None:
    for figure in describe_figures(data):
        names: dict[tuple[str, str], set[str]] = {}
        for line in (line for panel in figure.panels for line in panel.lines if line.is_on_page):
            names.setdefault((line.colour, line.dash), set()).add(line.name)
        assert all(len(each) == 1 for each in names.values()), (figure.name, names)


def test_without_data_every_figure_is_missing_and_says_what_it_needs() -> None:
    missing = missing_figures(PaperResults({}))
    assert set(missing) == set(FIGURES)
    assert missing["ppo-tuned"] == "ppo-grid-winners, ppo-baseline"
    assert missing["sac-robot"] == "sac-robot-sweep, sac-robot-120ms"
    assert not draw_figures(PaperResults({}))


def test_figures_need_only_studies_of_the_paper() -> None:
    known = {*STUDIES, *(f"{study}-winners" for study in ("ppo-grid", "sac-gamma-sweep", "pendulum-grid"))}
    assert {study for drawing in FIGURES.values() for study in drawing.missing(PaperResults({}))} <= known


def test_what_is_wanted_and_missing_is_skipped(tmp_path: Path) -> None:
    assert not save_figures(PaperResults({}), tmp_path / "made", ["ppo-baseline"])


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        data = synthetic_data(score, seeds=2, only=("ppo-baseline", "ppo-grid-winners"))
        paths = save_figures(data, tmp_path / name, ["ppo-tuned"])
    names = ["ppo-tuned.pdf", "ppo-tuned.svg", "ppo-tuned.png"]
    assert paths == [tmp_path / "other" / name for name in names]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes(), name
    assert b"Date" not in (tmp_path / "one" / "ppo-tuned.pdf").read_bytes()


@pytest.mark.parametrize(
    "family",
    [
        ("ppo-batch-time", "ppo-scaled", "ppo-constant"),
        ("ppo-batch-time-curves", "ppo-scaled-curves", "ppo-constant-curves"),
        ("sac-baseline", "sac-dt-aware-curves-1", "sac-dt-aware-curves-2"),
        ("pendulum-baseline-curves", "pendulum-dt-aware-curves"),
        ("sac-pendulum-curves-baseline", "sac-pendulum-curves-1", "sac-pendulum-curves-2"),
        ("ppo-robot", "ppo-robot-2000-curves"),
        ("sac-robot-40ms-curves", "sac-robot-120ms-curves"),
    ],
)
def test_figures_that_the_paper_compares_have_the_same_scale(drawn: dict[str, Figure], family: tuple[str, ...]) -> None:
    assert len({axes.get_ylim() for stem in family for axes in drawn[stem].axes}) == 1


def test_a_figure_alone_has_the_scale_that_it_has_among_others(data: PaperResults, drawn: dict[str, Figure]) -> None:
    alone = draw_figures(data, ["ppo-scaled"])
    assert list(alone) == ["ppo-scaled"]
    assert alone["ppo-scaled"].axes[0].get_ylim() == drawn["ppo-scaled"].axes[0].get_ylim()


@pytest.mark.parametrize("stem", ["three-part", "ppo-batch-time", "ppo-dt0", "sac-robot"])
def test_axes_legends_and_caption_stand_apart(data: PaperResults, stem: str) -> None:
    figure = draw_figures(data, [stem])[stem]
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    boxes += [each.get_window_extent() for each in (*figure.legends, *figure.texts)]  # with title and caption
    places = [np.asarray(box.extents) for box in boxes if box is not None]
    for one, other in combinations(places, 2):
        apart = (one[2:] <= other[:2] + 0.5).any() or (other[2:] <= one[:2] + 0.5).any()
        assert apart, (one, other)
    assert np.min(places) >= 0
    assert (np.max(places, axis=0)[2:] <= np.asarray(figure.bbox.extents)[2:] + 0.5).all()
