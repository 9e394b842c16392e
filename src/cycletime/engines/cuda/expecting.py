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

LEARNING_S = (3.0e-6, 0.172e-6)
"""Of a gradient step, and of each sample in it: a line near what `benchmarks/kernel.py speed` finds for 12 to 200."""


def expected_s(spec: RunSpec) -> float:
    """The seconds of a whole run."""
    agent = spec.agent
    assert isinstance(agent, PPOAgent), "the engine refuses other agents"
    step, inner = TASKS[spec.world.name].acting_s
    acting_s = agent.batch * (step + inner * world_of(spec).cycle_steps)
    size = agent.slice_sizes[1]
    learning_s = agent.epochs * ceil(agent.batch / size) * (LEARNING_S[0] + LEARNING_S[1] * size)
    return learnings_of(spec) * (acting_s + learning_s)
