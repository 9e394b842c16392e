"""Kill -9 at any moment: runs of the stepped loop are finished with the same bytes."""

from collections.abc import Callable

import pytest

PPO = "--env Reacher-v5 --algorithm ppo --dt 20ms --batch 100 --minibatch 50 --set epochs=2 hidden=64,64 --noise pink"
SAC = """--env Pendulum-v1 --env-dt 50ms --algorithm sac --dt 100ms --minibatch 16
    --set hidden=16,16 warmup_steps=200 replay_capacity=50000"""
CASES = [pytest.param(PPO, 8_000, id="ppo"), pytest.param(SAC, 4_000, id="sac")]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "env_steps"), CASES)
def test_a_run_that_is_killed_twenty_times(survives_kills: Callable[..., None], words: str, env_steps: int) -> None:
    survives_kills(words, 4 * env_steps, kills=20)
