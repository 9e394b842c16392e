"""The paper's agents: hyper-parameters with `initialize`, `act` and `learn` as pure functions, nothing else."""

from cycletime.extras import extras_named

with extras_named(__name__):
    from cycletime.agents.actor_critic import ActorCriticAgent
    from cycletime.agents.agent import Agent
    from cycletime.agents.buffer import Buffer, Transition
    from cycletime.agents.exploration import AutoRegressive, CoherentNoise, OrnsteinUhlenbeck, Pink
    from cycletime.agents.from_rules import agent_for
    from cycletime.agents.ppo import PPOAgent
    from cycletime.agents.sac import SACAgent

__all__ = [
    "ActorCriticAgent",
    "Agent",
    "AutoRegressive",
    "Buffer",
    "CoherentNoise",
    "OrnsteinUhlenbeck",
    "PPOAgent",
    "Pink",
    "SACAgent",
    "Transition",
    "agent_for",
]
