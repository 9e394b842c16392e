from zlib import crc32

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.figures import draw_figures
from tests.experiments.paper.synthetic import Labels, synthetic_data


def score(labels: Labels) -> float:
    """A different one for each cell, from 0.2 to 0.8 of about a perfect policy's return."""
    share = 0.2 + 0.6 * (crc32(repr(sorted(labels.items())).encode()) % 1000) / 1000
    return share * (20 if labels["task"] == "reacher" else 9360)


def words_in(figure: Figure) -> set[str]:
    """All lines of text, but for what is empty."""
    texts = [each for each in figure.findobj(lambda artist: isinstance(artist, Text)) if isinstance(each, Text)]
    return {line for text in texts for line in text.get_text().splitlines()} - {""}


@pytest.fixture(scope="session")
def data() -> PaperResults:
    return synthetic_data(score, seeds=3)


@pytest.fixture(scope="session")
def drawn(data: PaperResults) -> dict[str, Figure]:
    """Every figure, to be looked at and not to be changed."""
    return draw_figures(data)
