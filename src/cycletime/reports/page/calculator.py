"""The calculator: values at another cycle time, in the browser, by the laws of `cycletime.rules`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any


def calculator_html(
    algorithm: str = "ppo", dt: str = "16ms", values: Mapping[str, Any] | None = None, to: str = "4ms"
) -> str:
    """The place of the calculator, with what it begins with.

    Args:
        algorithm: One of `cycletime.rules.ALGORITHMS`.
        dt: The cycle time that the values were tuned at.
        values: Values by field; those that are left out are the algorithm's defaults.
        to: The cycle time to carry them to.
    """
    told = {name: str(value) for name, value in (values or {}).items() if value is not None}
    start = json.dumps({"algorithm": algorithm, "from": dt, "to": to, "values": told})
    return (
        f'<div class="calculator" data-start="{escape(start)}"><p class="notice">The calculator needs JavaScript; '
        "<code>cycletime transfer</code> does the same.</p></div>"
    )
