"""The paper's agents: hyper-parameters with `initialize`, `act` and `learn` as pure functions, nothing else."""

from cycletime.agents.actor_critic import ActorCritic
from cycletime.agents.agent import Agent
from cycletime.agents.buffer import Buffer, Transition
from cycletime.agents.exploration import AutoRegressive, CoherentNoise, OrnsteinUhlenbeck, Pink
from cycletime.agents.from_rules import agent_for
from cycletime.agents.ppo import PPO
from cycletime.agents.sac import SAC

__all__ = [
    "PPO",
    "SAC",
    "ActorCritic",
    "Agent",
    "AutoRegressive",
    "Buffer",
    "CoherentNoise",
    "OrnsteinUhlenbeck",
    "Pink",
    "Transition",
    "agent_for",
]
