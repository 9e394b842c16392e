"""Parts of the page inside another one, such as one of the docs: styles, data, and scripts that begin by themselves."""

from __future__ import annotations

import json

from cycletime.reports.page.document import SCRIPTS, STYLES, asset
from cycletime.reports.page.figures import FigureData
from cycletime.rules.as_data import rules_as_data

_SCRIPTS = [name for name in SCRIPTS if name != "page.js"]
_STYLES = [name for name in STYLES if name != "page.css"]
_BEGIN = """
document.documentElement.dataset.theme = "light"; // as the page around it
{
  const data = %s, charts = [];
  for (const place of document.querySelectorAll("[data-figure]")) {
    charts.push(new cycletime.Chart(place, data.figures[place.dataset.figure], data, async () => ({})));
  }
  document.addEventListener("cycletime:carried", ({ detail }) => {
    for (const chart of charts) { chart.state.mark = detail; chart.draw(); }
  });
  for (const place of document.querySelectorAll(".calculator")) cycletime.calculator(place, data.rules);
}
"""


def embedded(data: FigureData) -> str:
    """What makes figures and calculators work whose places stand before it. Figures are of points, not of curves."""
    told = json.dumps({**data.as_json(), "rules": rules_as_data()}, separators=(",", ":"), allow_nan=False)
    begin = _BEGIN % told.replace("</", "<\\/")
    return f"<style>{''.join(map(asset, _STYLES))}</style><script>{''.join(map(asset, _SCRIPTS))}{begin}</script>"
