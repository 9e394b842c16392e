"""Kill -9 at any moment: runs of the compiled loop are finished with the same bytes."""

from collections.abc import Callable

import pytest

PPO = "--task reacher --algorithm ppo --dt 16ms --batch 100 --minibatch 50 --set epochs=2 hidden=64,64"
SAC = """--task double-pendulum --algorithm sac --dt 32ms --minibatch 16 --noise ornstein-uhlenbeck --correlation 100ms
    --set hidden=16,16 warmup_steps=200 replay_capacity=50000"""
CASES = [pytest.param(PPO, 1_500_000, id="ppo"), pytest.param(SAC, 600_000, id="sac")]


@pytest.mark.parametrize(("words", "env_steps"), CASES[:1])  # the other one takes too long for CI
def test_a_run_that_is_killed_a_few_times(survives_kills: Callable[..., None], words: str, env_steps: int) -> None:
    survives_kills(words, round(env_steps / 2), kills=2)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "env_steps"), CASES)
def test_a_run_that_is_killed_twenty_times(survives_kills: Callable[..., None], words: str, env_steps: int) -> None:
    survives_kills(words, 4 * env_steps, kills=20)
