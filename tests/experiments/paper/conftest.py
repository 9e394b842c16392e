"""Trainings that take no time, by workers in this process."""

import pytest

from cycletime.studies import worker
from tests.studies.stand_ins import Trained


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    """Let training take no time in this process."""
    stand_in = Trained()
    monkeypatch.setattr(worker, "train_batch", stand_in)
    return stand_in
