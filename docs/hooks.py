"""What MkDocs fills in: the calculator and the figure beside it, from the same files as the page of a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cycletime.reports.page.figures import FigureData

CALCULATOR, FIGURE = "<!-- calculator -->", "<!-- figure of the rule -->"
RESULTS = Path(__file__).parents[1] / "results" / "paper"


def on_page_content(html: str, **_: Any) -> str:  # noqa: ANN401 - whatever MkDocs tells
    """Fill in the marks of a page."""
    if CALCULATOR not in html:
        return html
    from cycletime.experiments.paper.data import read_paper_results
    from cycletime.experiments.paper.figures import describe_figures
    from cycletime.reports.page.document import calculator_html, figure_html
    from cycletime.reports.page.figures import FigureData

    data = FigureData()
    (figure,) = describe_figures(read_paper_results(RESULTS), ["rule"])
    data.add(figure)
    return html.replace(CALCULATOR, calculator_html()).replace(FIGURE, figure_html(figure) + embedded_html(data))


def on_post_page(output: str, **_: Any) -> str:  # noqa: ANN401 - whatever MkDocs tells
    """Name the theme's search dialog for screen readers."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


_START_SCRIPT = """
document.documentElement.dataset.theme = "light"; // as the page around it
{
  const data = %s, charts = [];
  for (const place of document.querySelectorAll("[data-figure]")) {
    charts.push(new cycletime.Chart(place, data.figures[place.dataset.figure], data, async () => ({})));
    charts.at(-1).draw();
  }
  document.addEventListener("cycletime:carried", ({ detail }) => {
    for (const chart of charts) { chart.state.mark = detail; chart.draw(); }
  });
  for (const place of document.querySelectorAll(".calculator")) cycletime.calculator(place, data.rules);
}
"""


def embedded_html(data: FigureData) -> str:
    """The scripts and data for figures of points and calculators that stand in a page of the docs."""
    from cycletime.libraries.calculator_data import calculator_data
    from cycletime.reports.page.document import SCRIPTS, STYLES, asset

    scripts = "".join(asset(name) for name in SCRIPTS if name != "page.js")
    styles = "".join(asset(name) for name in STYLES if name != "page.css")
    data_json = json.dumps({**data.as_json(), "rules": calculator_data()}, separators=(",", ":"), allow_nan=False)
    begin = _START_SCRIPT % data_json.replace("</", "<\\/")
    return f"<style>{styles}</style><script>{scripts}{begin}</script>"
