from pathlib import Path

import pytest

from cycletime.experiments.horizons import ranking
from cycletime.experiments.horizons.results import Evidence
from cycletime.experiments.outcome import read_results
from tests.experiments.horizons.freezing import freeze
from tests.experiments.horizons.made import save_results, save_trial


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for intervals of made-up runs, and a tenth of the time."""
    monkeypatch.setattr(ranking, "RESAMPLES", 400)


@pytest.fixture(scope="package")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Of a search and a trial that nobody ran."""
    folder: Path = save_results(tmp_path_factory.mktemp("results"), noise=1.0)
    freeze(folder, "ppo")
    return Evidence(read_results(save_trial(folder, noise=1.0)))
