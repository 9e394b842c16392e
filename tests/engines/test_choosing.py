from dataclasses import replace

import pytest

from cycletime.engines.choosing import group_for, most_together
from cycletime.errors import InputError
from cycletime.runs.spec import EngineSpec, RunSpec


def test_lanes_are_trained_together_and_environments_one_by_one() -> None:
    assert most_together(EngineSpec(width=30)) == 30
    assert most_together(EngineSpec("stepped", width=1)) == 1


def test_several_environments_are_refused(walk: RunSpec) -> None:
    with pytest.raises(InputError, match="There are 2 runs: the engine stepped trains one at a time"):
        group_for([walk, replace(walk, seed=4)])
