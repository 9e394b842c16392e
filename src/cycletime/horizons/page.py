"""The page's parts that are made from results: what stands between <!-- made: NAME --> and <!-- end -->.

SAC's parts have names that begin with 'sac-'. A part may have words before it, <!-- made: NAME; words -->. Of parts
whose results are not there, an algorithm's first one says so, and the others are empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from cycletime.bounded import read_text
from cycletime.errors import InputError
from cycletime.horizons import tables
from cycletime.horizons.evidence import Evidence
from cycletime.horizons.missing import NoResultsError
from cycletime.horizons.telling import decision_in_words, left_out_in_words
from cycletime.runs.files import write_whole

FIGURES = Path("figures", "horizons")
"""Beside the page."""
NOT_RUN = "What is missing here has not been run yet."
IMAGES: Mapping[str, tuple[str, Callable[[Evidence], object]]] = {
    "tuned-horizons": (
        "Maps of discount horizons against the cycle time, one for each task",
        lambda evidence: evidence.tunings,
    ),
    "search": ("Scores on Reacher and Double Pendulum against the cycle time", lambda evidence: evidence.search),
    "trial": ("Scores on the four other tasks against the cycle time", lambda evidence: evidence.trial),
}
"""By figure, what it is called for those who do not see it, and what must have been run."""


def _image(name: str, evidence: Evidence) -> str:
    words, needed = IMAGES[name]
    needed(evidence)
    return f"![{words}]({(FIGURES / f'{evidence.subject.prefix}{name}.png').as_posix()})"


PARTS: Mapping[str, Callable[[Evidence], str]] = {
    "tuned-horizons": tables.best_horizons,
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
    **{f"{name}-figure": partial(_image, name) for name in IMAGES},
}
"""By name, what makes it."""
SAC_PARTS: Mapping[str, Callable[[Evidence], str]] = {
    **PARTS,
    "search-updates": lambda evidence: tables.by_updates(evidence.search),
    "trial-updates": lambda evidence: tables.by_updates(evidence.trial.comparison),
    "afterwards": tables.afterwards,
}
"""The same of SAC, whose candidates change how many updates there are, and whose trial has suggested one more."""
PARTS_OF = {"ppo": PARTS, "sac": SAC_PARTS}
"""By algorithm."""
_PART = re.compile(r"(<!-- made: ([\w-]+)(?:; ([^\n]*))? -->\n).*?(<!-- end -->)", re.DOTALL)
_MOST_BYTES = 2**20


def write_page(page: Path, evidence: Sequence[Evidence]) -> list[Path]:
    """Fill a page and write its figures beside it; the files.

    Args:
        page: The page.
        evidence: Of each algorithm.

    Raises:
        InputError: if the page or all results are missing, or a part of it has no name that is known.
    """
    from cycletime.horizons.figures import save_figures

    text = filled(read_text(page, _MOST_BYTES, encoding="utf-8"), evidence)
    figures = [path for each in evidence for path in save_figures(each, page.parent / FIGURES)]
    write_whole(page, lambda file: file.write_text(text, encoding="utf-8"))
    return [page, *figures]


def filled(text: str, evidence: Sequence[Evidence]) -> str:
    """A page's text with its parts made anew.

    Raises:
        InputError: if a part has no name that is known, or nothing was run of what it shows.
    """
    known = {
        each.subject.prefix + name: (make, each) for each in evidence for name, make in PARTS_OF[each.algorithm].items()
    }
    missing: list[NoResultsError] = []
    told = set[str]()

    def made(part: re.Match[str]) -> str:
        begin, name, words, end = part.groups()
        if name not in known:
            raise InputError(f"The page has a part {name!r}: there are {', '.join(known)}.")
        make, whose = known[name]
        try:
            content = [words, make(whose)]
        except NoResultsError as error:
            missing.append(error)
            content = [NOT_RUN] if whose.subject.prefix not in told else []
            told.add(whose.subject.prefix)
        return "\n".join([begin, *(f"{each}\n" for each in content if each), end])

    text, parts = _PART.subn(made, text)
    if parts and len(missing) == parts:
        raise missing[0]  # what is there must not be lost by looking in the wrong folder
    return text
