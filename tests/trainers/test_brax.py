"""What brax is asked for, without brax: it trains for whole updates, and rounds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.trainers.brax import _within_budget
from cycletime.trainers.trainer_run import TrainerRun
from cycletime.training.worlds import ForeignEnv


def run_of(algorithm: str, agent_steps: int) -> TrainerRun:
    return TrainerRun(
        world=ForeignEnv("CartpoleBalance"),
        algorithm=algorithm,
        dt=Duration("10ms"),
        values={},
        num_envs=32,
        seed=0,
        simulated_s=agent_steps / 100,
        device="cpu",
        folder=Path(),
        resumes=False,
    )


PPO = {"batch_size": 32, "num_minibatches": 4, "unroll_length": 10}
SAC = {"min_replay_size": 500}


@pytest.mark.parametrize(
    ("algorithm", "values", "agent_steps"),
    [
        ("ppo", PPO, 20_000),
        ("ppo", {**PPO, "num_resets_per_eval": 10}, 100_000),
        ("ppo", PPO, 41 * 1280),
        ("sac", SAC, 6000),
        ("sac", SAC, 544),
    ],
)
@pytest.mark.parametrize("num_evals", [0, 1, 3, 20])
def test_all_evaluations_are_within_the_budget(
    algorithm: str, values: dict[str, Any], agent_steps: int, num_evals: int
) -> None:
    steps, evals = _within_budget(run_of(algorithm, agent_steps), {**values, "num_evals": num_evals})
    assert 1 < evals <= max(num_evals, 2)
    # As brax's train functions have it, by rounding up.
    if algorithm == "ppo":
        first, each = 0, 32 * 4 * 10 * max(values.get("num_resets_per_eval", 0), 1)
    else:
        first, each = 512, 32
    epoch = -(-(steps - first) // ((evals - 1) * each)) * each
    last = first + (evals - 1) * epoch
    assert last == steps
    assert 0.94 * (agent_steps - each) < last <= agent_steps


def test_what_brax_cannot_do_is_said() -> None:
    with pytest.raises(InputError, match="num_envs is 32: brax needs a divisor of batch_size x num_minibatches, 120"):
        _within_budget(run_of("ppo", 10_000), {**PPO, "batch_size": 30, "num_evals": 3})
    with pytest.raises(InputError, match=r"The budget is 1,000 agent steps, and brax learns first after 1,280: give"):
        _within_budget(run_of("ppo", 1000), {**PPO, "num_evals": 3})
