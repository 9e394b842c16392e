"""Which runs the CUDA kernel cannot take, and why: it was made for some tasks, and for networks of one size."""

from __future__ import annotations

from cycletime.agents import PPOAgent, SACAgent
from cycletime.duration import cycle_steps
from cycletime.engines.cuda.layout import HIDDEN
from cycletime.engines.cuda.sac.limits import refusal as sac_refusal
from cycletime.engines.cuda.tasks import TASKS
from cycletime.runs.spec import RunSpec
from cycletime.runs.worlds import ClosedFormWorld

LONGEST_SLICE = 512
"""The most samples of one gradient step."""
MOST_STEPS = 2**31
"""Steps are counted in 32 bits."""


def refusal(spec: RunSpec) -> str | None:
    """In a sentence, why the kernel cannot take a run; None where it can."""
    agent, world = spec.agent, spec.world
    if spec.engine.device != "gpu":
        return f"The engine cuda has the device {spec.engine.device!r}: it needs 'gpu'."
    if not isinstance(world, ClosedFormWorld) or world.name not in TASKS:
        return f"The engine cuda cannot run {world.name!r}: it has {', '.join(TASKS)}."
    if not isinstance(agent, PPOAgent | SACAgent):
        return f"The engine cuda cannot train {spec.algorithm}: it has ppo and sac."
    if spec.exploration is not None:
        return "The engine cuda explores with white noise only: leave the exploration out."
    # A run ends with the learning period, and perhaps the episode, in which it reaches its budget.
    beyond = agent.period * cycle_steps(spec.dt, world.env_dt) + 2 * world.task.limit_steps
    if spec.env_steps + beyond >= MOST_STEPS:
        return f"env_steps is {spec.env_steps}: the engine cuda counts to {MOST_STEPS - beyond - 1} for this run."
    return sac_refusal(agent) if isinstance(agent, SACAgent) else _ppo_refusal(agent)


def _ppo_refusal(agent: PPOAgent) -> str | None:
    if agent.hidden != (HIDDEN, HIDDEN):
        return f"hidden is {agent.hidden}: the engine cuda has networks of {(HIDDEN, HIDDEN)} only."
    if agent.period != agent.batch:
        return f"learning_period is {agent.learning_period}: the engine cuda learns once for each batch, {agent.batch}."
    size = agent.slice_sizes[1]
    if size > LONGEST_SLICE:
        return f"Mini-batches have {size} samples: the engine cuda takes {LONGEST_SLICE} at most."
    return None
