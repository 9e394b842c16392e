"""About how long a run takes in a thread block: for the order of a queue, and for estimates.

    time = agent steps x (a + b k) + gradient steps x (c + d m)

The numbers are those of an H200 with all its multiprocessors busy; on another card their ratios matter more.
"""

from __future__ import annotations

from math import ceil

from cycletime.agents import PPOAgent
from cycletime.engines.cuda.describing import learnings_of, world_of
from cycletime.engines.cuda.tasks import TASKS
from cycletime.runs.spec import RunSpec

LEARNING_S = (2.6e-6, 0.176e-6)
"""Of a gradient step, and of each sample in it."""


def expected_s(spec: RunSpec) -> float:
    """The seconds of a whole run."""
    agent = spec.agent
    assert isinstance(agent, PPOAgent), "the engine refuses other agents"
    step, inner = TASKS[spec.world.name].acting_s
    acting_s = agent.batch * (step + inner * world_of(spec).cycle_steps)
    size = agent.slice_sizes[1]
    learning_s = agent.epochs * ceil(agent.batch / size) * (LEARNING_S[0] + LEARNING_S[1] * size)
    return learnings_of(spec) * (acting_s + learning_s)
