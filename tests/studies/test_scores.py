"""Titles of tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cycletime.studies.scores import read_scores
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder

TABLE = {"name": "small", "task": "reacher", "algorithm": "ppo", "dt": "16ms", "env_steps": 100_000}


@pytest.mark.parametrize(
    ("keys", "title"),
    [({}, "reacher, ppo"), ({"num_envs": 1}, "reacher, ppo"), ({"num_envs": 4}, "reacher, ppo, num_envs 4")],
)
def test_a_title_has_the_number_of_environments_where_there_are_several(
    tmp_path: Path, keys: dict[str, Any], title: str
) -> None:
    folder = StudyFolder.create(tmp_path / "study", study_from_table({**TABLE, **keys}))
    assert [panel.title for panel in read_scores(folder).panels] == [title]
