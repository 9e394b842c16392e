"""The list of experiments: what there is of their results, in words."""

from pathlib import Path

import pytest

from cycletime.experiments.investigation import Size
from cycletime.experiments.paper.declaration import PAPER
from cycletime.experiments.running import Workspace, experiment_row
from tests.experiments.paper.synthetic import synthetic_data

SMALL = Size(0.01, 2)


@pytest.mark.parametrize(
    ("name", "only", "scale", "words"),
    [
        ("ppo-baseline", ["ppo-baseline"], 1.0, "3 seeds"),
        ("ppo-baseline", ["ppo-baseline"], 0.015, "3 seeds, 1.5 %"),
        ("ppo-baseline", ["ppo-scaled"], 1.0, "none"),
        ("ppo-dt0", ["ppo-dt0-4ms", "ppo-dt0-64ms"], 1.0, "2 of 3 studies"),
        ("ppo-robot", ["ppo-robot"], 1.0, "3 seeds"),
        ("sac-robot", ["sac-robot-120ms"], 1.0, "1 of 3 studies"),
    ],
)
def test_results_are_told_by_their_seeds_and_scale(name: str, only: list[str], scale: float, words: str) -> None:
    data = synthetic_data(lambda labels: 1.0, seeds=3, only=only, scale=scale)
    found = experiment_row(PAPER.experiments[name], Workspace(investigation=PAPER, out=Path(), size=SMALL), data)
    assert found["results"] == words
    assert found["scale"] == (None if words == "none" else scale)
    assert found["runs"] > 0
    assert found["where"] == (["simulated robot"] if "robot" in name else ["closed form"])
