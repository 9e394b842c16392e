"""About how long a run of SAC takes in a thread block, on an H200 with all its multiprocessors busy."""

from __future__ import annotations

from cycletime.engines.cuda.describing import learnings_of
from cycletime.engines.cuda.sac.describing import agent_of
from cycletime.runs.spec import RunSpec

UPDATE_S, ACTING_S = 700e-6, 20e-6
"""Of a gradient step, and of an agent step by itself."""


def expected_s(spec: RunSpec) -> float:
    """The seconds of a whole run."""
    agent = agent_of(spec)
    return learnings_of(spec) * (agent.gradient_steps * UPDATE_S + agent.period * ACTING_S)
