"""How long runs take on other machines."""

import pytest

from cycletime.studies.hardware_estimates import h200_wall_s, parallel_wall_s
from cycletime.studies.plan import Plan
from tests.studies.small import small_study


@pytest.mark.parametrize(
    ("parts", "workers", "wall_s"),
    [(10, 1, 100.0), (10, 4, 25.0), (10, 10, 15.0), (10, 64, 15.0), (3, 64, 100 / 3), (0, 4, 0.0)],
)
def test_workers_share_what_there_is_until_the_longest_run_is_left(parts: int, workers: int, wall_s: float) -> None:
    assert parallel_wall_s(100.0, 15.0, parts, workers) == pytest.approx(wall_s)


def test_a_card_takes_about_as_long_for_one_run_as_for_as_many_as_it_has_blocks() -> None:
    few, many, more = (
        Plan.of(small_study(seeds=seeds, dts=["16ms"], rules=["baseline"], env_steps=1_000_000))
        for seeds in (1, 132, 264)
    )
    one, block, two = (h200_wall_s(plan, plan.runs) for plan in (few, many, more))
    assert one == pytest.approx(block)
    assert one is not None
    assert two is not None
    assert two - one == pytest.approx(one - 20.0), "a turn more, and the program is there"


def test_what_is_done_takes_no_more_time() -> None:
    plan = Plan.of(small_study(env_steps=1_000_000))
    every, some = h200_wall_s(plan, plan.runs), h200_wall_s(plan, plan.runs[2:])
    assert every is not None
    assert some is not None
    assert 0 < some < every


@pytest.mark.parametrize(
    "other",
    [
        {"algorithm": "actor-critic", "rules": [], "tuned": {}, "dts": ["32ms"]},
        {"engine": "compiled", "dts": ["16ms"], "rules": ["baseline"]},
    ],
)
def test_where_nobody_knows_nothing_is_told(other: dict[str, object]) -> None:
    plan = Plan.of(small_study(**other))
    assert h200_wall_s(plan, plan.runs) is None
