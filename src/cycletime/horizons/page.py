"""The page's parts that are made from results: what stands between <!-- made: NAME --> and <!-- end -->."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from cycletime.bounded import read_text
from cycletime.errors import InputError
from cycletime.horizons import tables
from cycletime.horizons.evidence import Evidence
from cycletime.horizons.telling import decision_in_words, left_out_in_words
from cycletime.runs.files import write_whole

PARTS: Mapping[str, Callable[[Evidence], str]] = {
    "tuned-horizons": lambda evidence: tables.best_horizons(evidence.tunings),
    "search": lambda evidence: tables.measures(evidence.search, evidence.search.ranked("tuned", "average")),
    "trial": lambda evidence: tables.measures(
        evidence.trial.comparison, evidence.trial.comparison.ranked("tuned", "average")
    ),
    "trial-by-task": lambda evidence: tables.by_task(evidence.trial.comparison),
    "left-out": lambda evidence: left_out_in_words(evidence.trial.comparison),
    "verdicts": lambda evidence: tables.verdicts(evidence.trial),
    "against-default": lambda evidence: tables.against_default(evidence.trial),
    "decision": lambda evidence: decision_in_words(evidence.trial),
    "predictions": tables.predictions,
    "origins": lambda evidence: tables.origins(evidence.outcomes),
}
"""By name, what makes it."""
_PART = re.compile(r"(<!-- made: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MOST_BYTES = 2**20


def write_page(page: Path, evidence: Evidence) -> list[Path]:
    """Fill a page and write its figures beside it; the files.

    Raises:
        InputError: if the page or results are missing, or a part of it has no name that is known.
    """
    from cycletime.horizons.figures import save_figures

    text = filled(read_text(page, _MOST_BYTES, encoding="utf-8"), evidence)
    figures = save_figures(evidence, page.parent / "figures" / "horizons")
    write_whole(page, lambda file: file.write_text(text, encoding="utf-8"))
    return [page, *figures]


def filled(text: str, evidence: Evidence) -> str:
    """A page's text with its parts made anew.

    Raises:
        InputError: if a part has no name that is known.
    """

    def made(found: re.Match[str]) -> str:
        begin, name, end = found.groups()
        if name not in PARTS:
            raise InputError(f"The page has a part {name!r}: there are {', '.join(PARTS)}.")
        return f"{begin}\n{PARTS[name](evidence)}\n\n{end}"

    return _PART.sub(made, text)
