"""How long runs take that workers share."""

import pytest

from cycletime.studies.hardware_estimates import parallel_wall_s


@pytest.mark.parametrize(
    ("parts", "workers", "wall_s"),
    [(10, 1, 100.0), (10, 4, 25.0), (10, 10, 15.0), (10, 64, 15.0), (3, 64, 100 / 3), (0, 4, 0.0)],
)
def test_workers_share_what_there_is_until_the_longest_run_is_left(parts: int, workers: int, wall_s: float) -> None:
    assert parallel_wall_s(100.0, 15.0, parts, workers) == pytest.approx(wall_s)
