"""What MkDocs fills in: the calculator and the figure beside it, from the same files as the page of a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CALCULATOR, FIGURE = "<!-- calculator -->", "<!-- figure of the rule -->"
RESULTS = Path(__file__).parents[1] / "results" / "paper"


def on_page_content(html: str, **_: Any) -> str:  # noqa: ANN401 - whatever MkDocs tells
    """Fill in the marks of a page."""
    if CALCULATOR not in html:
        return html
    from cycletime.experiments.paper.data import read_paper_results
    from cycletime.experiments.paper.figures import describe_figures
    from cycletime.reports.page.document import calculator_html, embedded_html, figure_html
    from cycletime.reports.page.figures import FigureData

    data = FigureData()
    (figure,) = describe_figures(read_paper_results(RESULTS), ["rule"])
    data.add(figure)
    return html.replace(CALCULATOR, calculator_html()).replace(FIGURE, figure_html(figure) + embedded_html(data))


def on_post_page(output: str, **_: Any) -> str:  # noqa: ANN401 - whatever MkDocs tells
    """Name the theme's search dialog for screen readers."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')
