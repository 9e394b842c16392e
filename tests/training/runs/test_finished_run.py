from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.agents import PPOAgent
from cycletime.duration import Duration
from cycletime.training.finished_run import FinishedRun, find_fault, make_result, performance
from cycletime.training.learning_curve import EpisodeBins, Episodes
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.training.runs.finished import ENV_STEPS, make_run, recomputed

SPEC = RunSpec(world=ClosedFormWorld("reacher"), agent=PPOAgent(), dt="16ms", env_steps=1000, seed=4)


def a_curve(ends: list[int], returns: list[float]) -> Episodes:
    env_steps = np.array(ends, np.int64)
    return Episodes(env_steps, env_steps, np.array(returns, np.float64), np.diff(env_steps, prepend=0))


def a_result(**overrides: Any) -> dict[str, Any]:  # noqa: ANN401 - any of its arguments
    values = {
        "where": "closed form",
        "env_dt_s": 0.002,
        "agent_steps": 125,
        "remarks": (),
        "sessions": 1,
        "wall_s": 1.23456,
        "machine": {"device": "cpu"},
        **overrides,
    }
    return make_result(SPEC, a_curve([500, 1000], [1.0, 3.0]), **values)


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
        "env_dt_s": 0.002,
        "machine": {"device": "cpu"},
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


def test_a_curve_in_bins_has_the_same_performance_and_says_so() -> None:
    curve = a_curve([3, 9, 10, 500, 777], [0.1, 0.7, 1e9, -3.3, 0.2])
    bins = EpisodeBins.none(1000).plus(curve)
    told, of_bins = performance(curve, 1000), performance(bins, 1000)
    assert (of_bins["average_return"], of_bins["last_tenth_return"]) == (
        told["average_return"],
        told["last_tenth_return"],
    )
    assert of_bins["mean_over_episodes"] == pytest.approx(told["mean_over_episodes"])
    common: dict[str, Any] = {"where": "", "env_dt_s": 0.002, "agent_steps": 1, "remarks": (), "sessions": 1}
    result = make_result(SPEC, bins, **common, wall_s=1.0, machine={})
    assert (result["curve"], result["episodes"]) == ("100 bins", 5)
    assert "curve" not in a_result()


# What does not fit together.


def test_a_run_has_its_curve_in_bins_whichever_it_was_kept_as() -> None:
    episodes, bins = make_run(), make_run(episodes=False)
    for name in ("counts", "sums", "env_steps", "agent_steps"):
        assert getattr(episodes.bins, name).tobytes() == getattr(bins.bins, name).tobytes()
    assert episodes.name == episodes.spec.name


Change = Callable[[FinishedRun], FinishedRun]


def with_curve(change: Callable[[Episodes], Episodes]) -> Change:
    def changed(run: FinishedRun) -> FinishedRun:
        assert isinstance(run.curve, Episodes)
        return replace(run, curve=change(run.curve))

    return changed


def with_policy(**values: Any) -> Change:  # noqa: ANN401
    def changed(run: FinishedRun) -> FinishedRun:
        assert run.policy is not None
        return replace(run, policy=replace(run.policy, **values))

    return changed


def with_bins(change: Callable[[EpisodeBins], EpisodeBins]) -> Change:
    return lambda run: replace(recomputed(run, curve=run.bins), curve=change(run.bins))


FAULTS: dict[str, tuple[Change, str]] = {
    "another run's result": (
        lambda run: replace(run, result={**run.result, "identity": "f" * 64}),
        "its result belongs to another run",
    ),
    "another spec": (lambda run: replace(run, spec=replace(run.spec, seed=9)), "belongs to another run"),
    "an episode too few": (
        with_curve(lambda curve: curve.where(np.arange(1, len(curve)))),
        "its result says 7 as episodes, and it is 6 by its spec and its curve",
    ),
    "episodes in another order": (
        with_curve(lambda curve: curve.where(np.arange(len(curve))[::-1])),
        "the episodes of its curve are out of order",
    ),
    "an episode twice": (
        with_curve(lambda curve: replace(curve, env_steps=curve.env_steps.repeat(2)[:7])),
        "out of order",
    ),
    "an episode beyond the budget": (
        with_curve(lambda curve: replace(curve, env_steps=curve.env_steps + ENV_STEPS)),
        "out of order",
    ),
    "other returns": (
        with_curve(lambda curve: replace(curve, returns=curve.returns + 1e-9)),
        "as average_return, and it is -0.76",
    ),
    "bins in another order": (
        with_bins(lambda bins: replace(bins, env_steps=bins.env_steps[::-1], counts=bins.counts[::-1])),
        "bins that cannot be",
    ),
    "other sums": (with_bins(lambda bins: replace(bins, sums=bins.sums * 1.01)), "as average_return, and it is -0.76"),
    "another run's policy": (with_policy(identity="f" * 64), "its policy is not this run's last"),
    "an earlier policy": (with_policy(env_steps=500), "its policy is not this run's last, but one of 500 environment"),
    "a policy of another cycle time": (with_policy(dt=Duration("8ms")), "its policy is for reacher at 8ms"),
    "a policy of another world": (with_policy(world="acrobot"), "its policy is for acrobot at 16ms"),
}


@pytest.mark.parametrize("episodes", [True, False])
@pytest.mark.parametrize("ended", [0, 7])
def test_a_sound_run_has_no_fault(episodes: bool, ended: int) -> None:
    assert find_fault(make_run(episodes=episodes, ended=ended)) is None
    assert find_fault(make_run(episodes=episodes, ended=ended, policy=False)) is None


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found(name: str) -> None:
    change, sentence = FAULTS[name]
    assert sentence in str(find_fault(change(make_run())))


def test_an_environment_that_was_stepped_is_no_real_robot() -> None:
    folders = Path(__file__).parents[2] / "goldens" / "data" / "folders"
    run = RunFolder.open(next((folders / "finished").glob("Pendulum*"))).finished()
    assert find_fault(run) is None
    forged = replace(run, result={**run.result, "where": "real robot"})
    assert "its result comes from 'real robot', and its spec is for Pendulum-v1" in str(find_fault(forged))
