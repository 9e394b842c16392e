"""The paper's agents: hyper-parameters with `initialize`, `act` and `learn` as pure functions, nothing else."""

from cycletime.extras import require_extras

with require_extras(__name__):
    from cycletime.agents.actor_critic import ActorCriticAgent
    from cycletime.agents.agent import Agent, Buffer, Transition
    from cycletime.agents.exploration import CoherentNoise, OrnsteinUhlenbeck, Pink
    from cycletime.agents.from_rules import agent_for
    from cycletime.agents.ppo import PPOAgent
    from cycletime.agents.sac import SACAgent

__all__ = [
    "ActorCriticAgent",
    "Agent",
    "Buffer",
    "CoherentNoise",
    "OrnsteinUhlenbeck",
    "PPOAgent",
    "Pink",
    "SACAgent",
    "Transition",
    "agent_for",
]
