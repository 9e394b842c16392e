"""Trainings that take no time, by workers in this process; and results of a small experiment."""

from pathlib import Path

import pytest

from cycletime.cli.study import WorkerOptions
from cycletime.experiments.collecting import collect_results
from cycletime.experiments.paper.declaration import PAPER
from cycletime.studies import worker
from tests.experiments.paper.made import study_folder
from tests.studies.stand_ins import InTurn, Trained


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    """Let training take no time, in this process."""
    stand_in = Trained()
    monkeypatch.setattr(worker, "train_batch", stand_in)
    monkeypatch.setattr(WorkerOptions, "executor_for", lambda self, device: InTurn())
    return stand_in


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two experiments in a hundredth of their size, two seeds each."""
    out = tmp_path_factory.mktemp("out")
    study_folder(out, "ppo-grid", lambda spec: float(spec.dt) * 1000 + spec.seed)
    study_folder(out, "ppo-scaled")
    collect_results(PAPER, out, out / "results")
    return out / "results"
