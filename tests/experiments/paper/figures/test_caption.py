import numpy as np

from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.figure_kinds import Select, caption
from tests.experiments.paper.synthetic import synthetic_data


def told(*data: PaperResults) -> str:
    """The caption of the baseline's runs on both tasks' SAC, each from its own data."""
    studies = ("sac-baseline", "sac-pendulum-baseline")
    return caption([Select(study, "baseline").runs(each) for each, study in zip(data, studies, strict=False)])


def made(seeds: int = 3, scale: float = 1.0) -> PaperResults:
    return synthetic_data(lambda _: 1.0, seeds, scale=scale, only=("sac-baseline", "sac-pendulum-baseline"))


def test_seeds_error_and_origin() -> None:
    assert told(made(3), made(3)) == "Means over n = 3 seeds ± one standard error. Data: made up."


def test_scaled_down_runs_are_labelled() -> None:
    assert told(made(scale=0.01)).startswith("Scaled-down: 1 % of the environment steps. Means")


def test_studies_that_differ_are_told_apart() -> None:
    text = told(made(3, scale=0.1), made(2))
    assert "10 % of the environment steps (sac-baseline) and 100 % of the environment steps (sac-pendulum-base" in text
    assert "n = 3 seeds (sac-baseline) and n = 2 seeds (sac-pendulum-baseline)" in text


def test_a_run_that_went_astray_is_counted_once() -> None:
    data = made()
    data.outcome("sac-baseline").cells[0].scores[0] = np.nan
    assert "1 run of 15 diverged, left out." in told(data)
    runs = Select("sac-baseline", "baseline").runs(data)
    assert "1 run of 15 diverged" in caption([runs, runs])
