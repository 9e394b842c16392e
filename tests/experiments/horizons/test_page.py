"""The page's parts that are made, and what stands around them."""

from dataclasses import replace
from pathlib import Path

import pytest

from cycletime.errors import InputError
from cycletime.experiments.horizons import figures
from cycletime.experiments.horizons.declaration import HORIZONS
from cycletime.experiments.horizons.page import PARTS, fill_page, write_page
from cycletime.experiments.horizons.results import Evidence, all_evidence
from cycletime.experiments.outcome import read_results

PAGE = "\n".join(["# Words", *(f"<!-- made: {name} -->\nbefore\n<!-- end -->\n" for name in PARTS), "More words"])


def test_all_parts_are_made_and_the_words_stay(evidence: Evidence) -> None:
    text = fill_page(PAGE, [evidence])
    assert "before" not in text
    assert text.startswith("# Words\n<!-- made: tuned-horizons -->\n\n| task |")
    assert text.endswith("<!-- end -->\n\nMore words")
    assert f"The winner is {evidence.trial.winner}." in text
    assert fill_page(text, [evidence]) == text


def test_what_is_made_of_runs_that_are_scaled_down_says_so(evidence: Evidence) -> None:
    outcomes = dict(evidence.results.outcomes)
    tuning = outcomes["tuning-pendulum"]
    outcomes["tuning-pendulum"] = replace(tuning, about={**tuning.about, "scale": 0.01})
    scaled = replace(evidence.results, outcomes=outcomes)
    label = "(scaled down to 1 % of the environment steps)"
    assert fill_page(PAGE, [Evidence(scaled)]).count(f"\n\n{label}\n\n<!-- end -->") == len(PARTS)
    assert f"3 runs of each cell {label}; 0 is" in HORIZONS.verdicts["ppo"](scaled)
    assert f"3 runs of each cell {label}; 0 is" in HORIZONS.tables["search"](scaled)
    assert label not in fill_page(PAGE, [evidence]) + HORIZONS.verdicts["ppo"](evidence.results)
    drawn = figures.FIGURES["trial"](Evidence(scaled))
    assert any(label in " ".join(text.get_text().split()) for text in drawn.texts)


def test_a_part_that_nobody_makes_is_refused(evidence: Evidence) -> None:
    with pytest.raises(InputError, match="The page has a part 'nothing': there are tuned-horizons, "):
        fill_page("<!-- made: nothing -->\n<!-- end -->", [evidence])


def test_figures_are_written_beside_the_page(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FORMATS", ("svg",))  # PNG takes as long as the rest
    page = tmp_path / "page.md"
    page.write_text("<!-- made: decision -->\n<!-- end -->\n")
    assert write_page(evidence.results, page) == [page], "no figures where none is shown"
    page.write_text(page.read_text() + "<!-- made: trial-figure -->\n<!-- end -->\n")
    page_again, *paths = write_page(evidence.results, page)
    assert page_again == page
    assert "The winner is " in page.read_text()
    names = {path.relative_to(tmp_path / "figures" / "horizons").as_posix() for path in paths}
    assert names == {"tuned-horizons.svg", "search.svg", "trial.svg"}
    svg = (tmp_path / "figures" / "horizons" / "trial.svg").read_text()
    for words in ("untuned 512", "dt-aware", "Means of 3 seeds", "cycle time (ms)"):
        assert words in svg


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^tuning-reacher: this has not been run; 'cycletime experiment run' runs it, "
    ):
        fill_page(PAGE, all_evidence(read_results(tmp_path)))
