"""The page of the paper's results: claims with their verdicts, figures with the numbers of the runs, films, origins."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cycletime.experiments.paper.claims import CLAIMS
from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.figures import FIGURES, describe_figures, missing_figures
from cycletime.experiments.paper.report import judge_all, paper_page
from cycletime.reports.page.document import render
from cycletime.reports.page.figures import plain_text
from tests.experiments.paper.synthetic import synthetic_data
from tests.reports.page.unpacking import blocks, unpacked

ABOUT = {
    "command": "cycletime experiment run paper x",
    "runs": 10,
    "wall_s": 27.4,
    "machines": [{"cycletime": "0.2.0", "device": "H200"}],
}


def small_data(*only: str) -> PaperResults:
    """dt-aware runs score 7 and others 5, with ten seeds each."""
    data = synthetic_data(lambda labels: 7.0 if labels["rule"] == "dt-aware" else 5.0, seeds=10, only=only)
    return PaperResults({name: replace(each, about={**each.about, **ABOUT}) for name, each in data.outcomes.items()})


@pytest.fixture(scope="module")
def html() -> str:
    data = small_data("ppo-baseline", "ppo-dt-aware")
    return render(paper_page(data, judge_all(data)))


def test_every_claim_has_its_verdict_and_its_criterion(html: str) -> None:
    assert html.count("<summary>Criterion</summary>") == len(CLAIMS)
    assert 'class="verdict bad">refuted' in html
    assert 'class="verdict none">not run' in html


def test_figures_that_can_be_drawn_have_the_numbers_of_the_runs(html: str) -> None:
    data = small_data("ppo-baseline", "ppo-dt-aware")
    told, missing = unpacked(html), missing_figures(data)
    assert set(told["figures"]) == {stem for stem in FIGURES if stem not in missing}
    outcome = data.outcomes["ppo-baseline"]
    line = next(line for line in told["figures"]["ppo-baseline"]["panels"][0]["lines"] if line["name"] == "4 ms")
    (name,) = line["cells"]
    assert told["cells"][name]["scores"] == pytest.approx(outcome.cell(dt="4ms").scores.tolist(), rel=1e-4)
    means = outcome.cell(dt="4ms").curves.mean(axis=0).tolist()
    assert told["curves"][name]["mean"][0] == pytest.approx(means, rel=1e-4)


def test_every_way_of_drawing_has_its_data() -> None:
    """Of all studies that there are, also those of SAC, so that no figure is forgotten."""
    data = synthetic_data(lambda labels: 5.0, seeds=2)
    figures = describe_figures(data)
    assert {figure.name for figure in figures} == set(FIGURES)
    for figure in figures:
        assert not set(plain_text(figure.title)) & set("$\\{}"), figure.title
        for panel in figure.panels:
            for line in panel.lines:
                assert line.values or any(name is not None for name in line.cells), (figure.name, line.name)
                assert figure.kind == "curves" or len(line.values or line.cells) == len(panel.places)


def test_a_cell_of_which_all_runs_went_astray_is_left_out() -> None:
    data = small_data("ppo-baseline")
    outcome = data.outcomes["ppo-baseline"]
    first, *others = outcome.cells
    astray = replace(first, scores=np.full(10, np.nan), curves=np.full_like(first.curves, np.nan))
    data = PaperResults({"ppo-baseline": replace(outcome, cells=(astray, *others))})
    (figure,) = describe_figures(data, ["ppo-baseline"])
    shown = [line.name for line in figure.panels[0].lines if set(line.cells) & set(figure.cells)]
    assert shown == ["8 ms", "16 ms", "32 ms", "64 ms"]


def test_films_are_in_the_page_where_there_are_some(tmp_path: Path) -> None:
    clips = tmp_path / "clips"
    clips.mkdir()
    told = {
        "algorithm": "ppo",
        "task": "reacher",
        "rule": "baseline",
        "dt": "4ms",
        "seed": 3,
        "score": 1.5,
        "median_of": 9,
    }
    (clips / "a.gif").write_bytes(b"GIF89a")
    kept = [{**told, "file": "a.gif"}, {**told, "file": "missing.gif"}, {**told, "file": "../outside.gif"}]
    (clips / "clips.json").write_text(json.dumps(kept))
    (tmp_path / "outside.gif").write_bytes(b"GIF89a")
    data = replace(small_data("ppo-baseline"), folder=tmp_path)
    html = render(paper_page(data, judge_all(data)))
    assert [name for name in blocks(html) if name.startswith("film")] == ["film-0"]
    assert "PPO on Reacher at 4 ms, baseline" in html
