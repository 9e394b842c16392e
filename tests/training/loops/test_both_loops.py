"""Both loops learn alike on a closed-form task: the same agents, statistically the same curves."""

import gymnasium
import numpy as np
import pytest

from cycletime.agents import Agent, PPOAgent, SACAgent
from cycletime.tasks import Reacher
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.learning_curve import Episodes
from cycletime.training.stepped_loop import SteppedLoop


def compiled_performance(agent: Agent, env_steps: int, seed: int) -> float:
    chunks = CompiledLoop(task=Reacher(), agent=agent, dt="64ms", env_steps=env_steps).run([seed])
    return float(Episodes.joined(chunk.episodes[0] for chunk in chunks).binned(env_steps, 10)[5:].mean())


def stepped_performance(agent: Agent, env_steps: int, seed: int) -> float:
    env = gymnasium.make("cycletime/Reacher-v0", dt="64ms")
    chunks = SteppedLoop(env=env, agent=agent, env_steps=env_steps).run(seed)
    return float(Episodes.joined(chunk.episodes for chunk in chunks).binned(env_steps, 10)[5:].mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "env_steps", "seeds"),
    [
        pytest.param(PPOAgent(batch=500, minibatch=50, learning_rate=1e-3), 400_000, 24, id="PPO"),
        pytest.param(SACAgent(hidden=(64, 64), minibatch=64, warmup_steps=500, discount=0.85), 120_000, 8, id="SAC"),
    ],
)
def test_both_loops_learn_alike(agent: Agent, env_steps: int, seeds: int) -> None:
    """Differences within 2.5 standard errors, and learning that is worth comparing."""
    compiled = np.array([compiled_performance(agent, env_steps, seed) for seed in range(seeds)])
    stepped = np.array([stepped_performance(agent, env_steps, seed) for seed in range(seeds)])
    error = np.sqrt((compiled.var(ddof=1) + stepped.var(ddof=1)) / seeds)
    untrained = compiled_performance(agent, 40_000, 0)
    print(f"compiled {compiled.mean():.2f}, stepped {stepped.mean():.2f}, error {error:.2f}, at first {untrained:.2f}")
    assert abs(compiled.mean() - stepped.mean()) < 2.5 * error
    assert min(compiled.mean(), stepped.mean()) > untrained + 2
