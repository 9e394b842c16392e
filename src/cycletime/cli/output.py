"""What several commands print: status lines, and the result of a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cycletime.errors import printable


def print_status(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def result_line(told: Mapping[str, Any], path: Path) -> str:
    numbers = "learning diverged, and some returns are not finite"
    if not told["episodes"]:
        numbers = f"no episode ended within {told['env_steps']:,} environment steps, so that there is no return"
    if told["average_return"] is not None:
        numbers = (
            f"average return {told['average_return']:,.2f}, last tenth {told['last_tenth_return']:,.2f} "
            f"({told['episodes']:,} episodes)"
        )
    resumed = "" if told["resumed"] == "never" else f", {told['resumed']}"
    resumed += "" if told.get("sealed", True) else ", not sealed"
    return f"seed {told['seed']}: {numbers}, {told['wall_s']:,.0f} s{resumed}\n  {printable(str(path))}"
