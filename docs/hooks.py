"""What MkDocs fills in: the calculator and the figure beside it, from the same files as the page of a report.

Beside the pages it writes the calculator as one file, `calculator.html`, and a list of all pages, `llms.txt`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.nav import Navigation

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

    (figure,) = describe_figures(read_paper_results(RESULTS), ["rule"])
    shown = figure_html(figure) + embedded_html(FigureData([figure]))
    before, rest = html.split(CALCULATOR, 1)
    return before + calculator_html() + rest.partition("<!-- end -->")[2].replace(FIGURE, shown)


def on_nav(nav: Navigation, config: MkDocsConfig, **_: Any) -> None:  # noqa: ANN401 - whatever MkDocs tells
    """Keep the list of pages, in the order of the navigation, for `llms.txt`."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for page in nav.pages:
        sections = [each.title for each in page.ancestors]
        section = sections[-1] if sections else config.site_name
        if f"## {section}" not in lines:
            lines += ["", f"## {section}", ""]
        lines.append(f"- [{page.title}]({page.canonical_url})")
    config.extra["llms.txt"] = "\n".join(lines) + "\n"


def on_post_build(config: MkDocsConfig, **_: Any) -> None:  # noqa: ANN401 - whatever MkDocs tells
    """Write what is no page."""
    site = Path(config.site_dir)
    (site / "llms.txt").write_text(config.extra["llms.txt"])
    (site / "calculator.html").write_text(calculator_file())


def calculator_file() -> str:
    """The calculator as one file, which needs no network and can be put anywhere."""
    from cycletime.reports.page.document import calculator_html
    from cycletime.reports.page.figures import FigureData

    title = "cycletime: values at another cycle time"
    body = f"<main><h1>{title}</h1>{calculator_html()}</main>{embedded_html(FigureData())}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<style>* { box-sizing: border-box; } th { text-align: left; } body { font-family: system-ui, sans-serif; "
        f"max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}</style><title>{title}</title></head><body>{body}"
        "</body></html>"
    )


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


if __name__ == "__main__":
    Path("calculator.html").write_text(calculator_file())
    print("Open calculator.html in a browser.")
