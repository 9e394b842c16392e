from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from cycletime.agents import PPOAgent
from cycletime.loops import Episodes
from cycletime.runs.machine import this_machine
from cycletime.runs.result import performance, result_of
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import PaperTask

SPEC = RunSpec(world=PaperTask("reacher"), agent=PPOAgent(), dt="16ms", env_steps=1000, seed=4)


def a_curve(ends: list[int], returns: list[float]) -> Episodes:
    env_steps = np.array(ends, np.int64)
    return Episodes(env_steps, env_steps, np.array(returns, np.float64), np.diff(env_steps, prepend=0))


def a_result(**overrides: Any) -> dict[str, Any]:  # noqa: ANN401 - any of its arguments
    values = {"where": "closed form", "agent_steps": 125, "remarks": (), "sessions": 1, "wall_s": 1.23456, **overrides}
    return result_of(SPEC, a_curve([500, 1000], [1.0, 3.0]), **values)


def test_it_says_what_was_run_and_where() -> None:
    told = a_result()
    expected = {
        "identity": SPEC.identity,
        "world": "reacher",
        "where": "closed form",
        "algorithm": "ppo",
        "dt": "16ms",
        "seed": 4,
        "env_steps": 1000,
        "agent_steps": 125,
        "episodes": 2,
        "wall_s": 1.235,
        "machine": dict(this_machine()),
    }
    assert expected.items() <= told.items()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert abs(datetime.fromisoformat(told["finished"]) - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("sessions", "remarks", "label"),
    [
        (1, (), "never"),
        (2, (), "resumed, identical"),
        (2, ("JAX 1 then, 2 now",), "resumed, not identical"),
    ],
)
def test_it_is_labelled_by_how_it_was_resumed(sessions: int, remarks: tuple[str, ...], label: str) -> None:
    told = a_result(sessions=sessions, remarks=remarks)
    assert (told["resumed"], told["remarks"], told["sessions"]) == (label, list(remarks), sessions)


def test_performance_weighs_by_time_and_not_by_episodes() -> None:
    # Return 0 in one long episode for the first half, then 1 in a hundred short ones.
    ends = [500, *range(505, 1001, 5)]
    told = performance(a_curve(ends, [0.0] + [1.0] * 100), 1000)
    assert told["average_return"] == 0.5
    assert told["last_tenth_return"] == 1.0
    assert told["mean_over_episodes"] == pytest.approx(100 / 101)


def test_the_last_tenth_is_a_tenth() -> None:
    # One episode in each of the hundred bins, whose return is the bin's number.
    told = performance(a_curve(list(range(10, 1001, 10)), list(range(100))), 1000)
    assert told["last_tenth_return"] == np.mean(range(90, 100))
    assert told["average_return"] == np.mean(range(100))


def test_a_run_in_which_no_episode_ended_has_no_performance() -> None:
    assert set(performance(Episodes.none(), 1000).values()) == {None}


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_learning_that_went_astray_is_null_since_json_knows_no_infinity(number: float) -> None:
    told = performance(a_curve([500, 1000], [1.0, number]), 1000)
    assert set(told.values()) == {None}
