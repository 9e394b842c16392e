"""The page of a study: complete without a network, with the numbers of the report."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cycletime.reports.output import write_report
from cycletime.reports.page.document import Page, render
from cycletime.reports.page.study_page import study_page
from cycletime.reports.report import Report
from cycletime.studies.study_folder import StudyFolder
from tests.reports.conftest import MakeStudy
from tests.reports.page.unpacking import blocks, unpacked


@pytest.fixture
def html(decided: StudyFolder) -> str:
    return render(study_page(Report.of(decided, command="cycletime report study")))


def test_the_answer_comes_first_in_plain_words(html: str) -> None:
    lead = re.search(r'<p class="lead">([^<]*)</p>', html)
    assert lead is not None
    assert lead[1].startswith("dt-aware is better than baseline at 32 ms")
    assert html.index('class="lead"') < html.index("data-figure")


def test_nothing_is_loaded_from_anywhere(html: str) -> None:
    assert "default-src 'none'" in html
    outside = re.findall(
        r"""(?:src|href|action)\s*=\s*["']?(?!#|data:)([^"'\s>]+)""",
        re.sub(r"<script>.*?</script>", "", html, flags=re.S),
    )
    assert outside == []
    assert not re.search(r"@import|url\(", html)


def test_the_page_has_all_its_parts(html: str) -> None:
    anchors = re.findall(r'<section id="([^"]+)"', html)
    assert anchors == ["figures", "values", "tables", "calculator", "settings", "origin"]
    assert all(f'href="#{anchor}"' in html for anchor in anchors)
    assert html.count("cycletime report study") >= 2
    assert "Abacus" in html, "the machine"


def test_figures_have_the_numbers_of_the_report(html: str, decided: StudyFolder) -> None:
    told = unpacked(html)
    (summary,) = Report.of(decided).summaries
    for (rule, dt), estimate in summary.estimates.items():
        assert estimate is not None
        cell = told["cells"][f"reacher-ppo/{rule}/{dt}"]
        assert cell["n"] == estimate.n
        assert cell["mean"] == pytest.approx([estimate.value, estimate.low, estimate.high], rel=1e-4)
    assert set(told["figures"]) == {"reacher-ppo-performance", "reacher-ppo-curves"}
    assert [panel["title"] for panel in told["figures"]["reacher-ppo-curves"]["panels"]] == ["16 ms", "32 ms"]
    assert told["figures"]["reacher-ppo-curves"]["stepS"] == 0.002
    assert blocks(html).keys() == {"lead", "main", "seeds-reacher-ppo"}
    lead = json.loads(blocks(html)["lead"])
    assert lead["figures"] == {"reacher-ppo-performance": told["figures"]["reacher-ppo-performance"]}
    assert lead["cells"] == told["cells"]
    assert len(unpacked(html, "seeds-reacher-ppo")["reacher-ppo/baseline/16ms"]["deltas"]) == 3


def test_values_stand_with_what_they_mean_in_seconds(html: str) -> None:
    row = re.search(r"<tr><th[^>]*>dt-aware, 32 ms</th>(.*?)</tr>", html)
    assert row is not None
    assert re.findall(r"<td>([^<]*)</td>", row[1])[:4] == [
        "50 (1.6\u00a0s)",
        "25 (0.8\u00a0s)",
        "0.9801 (1.59\u00a0s)",
        "0.9025 (0.312\u00a0s)",
    ], "with spaces at which no line ends"


def test_a_trainers_values_and_settings_are_a_row_each(make_study: MakeStudy) -> None:
    html = render(study_page(Report.of(make_study(lambda labels, seed: -20.0, trainer="mine:train"))))
    row = re.search(r"<tr><th[^>]*>dt-aware, 32 ms</th>(.*?)</tr>", html)
    assert row is not None
    assert re.findall(r"<td>([^<]*)</td>", row[1])[:2] == ["50 (1.6\u00a0s)", "25 (0.8\u00a0s)"]
    assert '<th scope="row">trainer</th><td>mine:train</td>' in html
    assert "{&#x27;" not in html, "no Python"


def test_what_needs_no_learning_stands_beside_what_was_learned(html: str) -> None:
    names = [line["name"] for line in unpacked(html)["figures"]["reacher-ppo-performance"]["panels"][0]["lines"]]
    assert names == ["baseline", "dt-aware", "doing nothing", "a scripted controller"]
    assert "reference scores without learning" in html


def test_the_same_study_gives_the_same_bytes(decided: StudyFolder, html: str) -> None:
    assert render(study_page(Report.of(decided, command="cycletime report study"))) == html


def test_the_calculator_begins_with_the_studys_values(html: str) -> None:
    assert "&quot;batch&quot;: &quot;100&quot;" in html
    assert "&quot;from&quot;: &quot;16ms&quot;" in html
    assert "&quot;to&quot;: &quot;32ms&quot;" in html, "another of the study's, where values differ"


def test_the_calculator_of_a_study_at_one_cycle_time_begins_with_another(make_study: MakeStudy) -> None:
    html = render(study_page(Report.of(make_study(lambda labels, seed: -20.0, dts=["16ms"]))))
    assert "&quot;from&quot;: &quot;16ms&quot;, &quot;to&quot;: &quot;32ms&quot;" in html


def test_settings_without_a_value_are_told_as_they_are_typed(html: str) -> None:
    assert re.search(r'<th scope="row">learning_period</th><td>none</td>', html)
    assert "<td>None</td>" not in html


def test_a_study_that_has_not_begun_has_a_page_without_figures(make_study: MakeStudy) -> None:
    page = study_page(Report.of(make_study(lambda labels, seed: None)))
    assert "not done yet" in page.about
    html = render(page)
    assert "data-figure=" not in html
    assert "0 of 3" in html


def test_runs_that_went_astray_leave_gaps(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: "astray" if str(labels["dt"]) == "32ms" else -20.0 - seed)
    told = unpacked(render(study_page(Report.of(folder))))
    (panel,) = told["figures"]["reacher-ppo-performance"]["panels"]
    assert panel["lines"][0]["cells"] == ["reacher-ppo/baseline/16ms", None]


def test_names_are_no_html(decided: StudyFolder) -> None:
    page = replace(study_page(Report.of(decided)), title="<script>alert(1)</script>", answer=("<b>",))
    html = render(page)
    assert "<script>alert(1)" not in html
    assert "&lt;b&gt;" in html
    assert "There is nothing to tell yet." in render(Page("a", "b", (), ()))


def test_a_report_writes_the_page(decided: StudyFolder, tmp_path: Path) -> None:
    write_report(Report.of(decided), tmp_path / "out")
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
