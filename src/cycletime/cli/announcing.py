"""What is said of a run before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cycletime.cli.agent_options import NAMES
from cycletime.rules import ALGORITHMS

if TYPE_CHECKING:
    from cycletime.agents import Agent
    from cycletime.engines.engine import Setting
    from cycletime.runs.spec import RunSpec


def announced(spec: RunSpec, setting: Setting) -> str:
    """The values that training uses, and what a user may not expect of them."""
    values = ", ".join(f"{name} {getattr(spec.agent, name):g}" for name in NAMES if hasattr(spec.agent, name))
    values += _updates(spec.agent)
    carried = f" ({spec.origin['rule']} from {spec.origin['tuned_at']})" if spec.origin else ""
    lines = [f"{spec.algorithm} at {spec.dt}: {values}{carried}", *_notes_on_transfer(spec)]
    random, learning = (steps * setting.cycle_steps for steps in (spec.agent.random_steps, spec.agent.period))
    if random >= spec.env_steps:
        lines.append(f"note: the random start lasts {random:,} environment steps, so that the policy never acts.")
    elif learning > spec.env_steps:
        lines.append(
            f"note: the first learning comes at {learning:,} environment steps: the run goes on until then, and "
            f"returns count up to {spec.env_steps:,}."
        )
    longest = setting.longest_episode_steps
    if longest is not None and longest > spec.env_steps:
        lines.append(f"note: an episode can last {longest:,} environment steps, so that perhaps none ends in this run.")
    return "\n".join(lines)


def _updates(agent: Agent) -> str:
    """Where it is not one after each step, how often SAC learns."""
    updates: float = getattr(agent, "updates_per_step", 1)
    return "" if updates == 1 else f", {updates:g} updates per step"


def _notes_on_transfer(spec: RunSpec) -> list[str]:
    """What the rule has to say: horizons that shrink, rounding."""
    if not spec.origin:
        return []
    from cycletime.runs.carried import rule_of

    told = {"updates_per_step": 1} if spec.algorithm == "sac" else {}  # which is the agent's own, and needs no note
    tuned = ALGORITHMS[spec.algorithm](dt=spec.origin["tuned_at"], **{**told, **spec.origin["tuned"]})
    return [f"note: {note}" for note in tuned.at(spec.dt, rule_of(spec.origin)).notes]
