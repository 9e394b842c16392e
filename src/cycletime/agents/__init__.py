"""The paper's agents: hyper-parameters with `initialize`, `act` and `learn` as pure functions, nothing else."""

from cycletime.extras import require_extras

with require_extras(__name__):
    from cycletime.agents.actor_critic import ActorCriticAgent as ActorCriticAgent
    from cycletime.agents.agent import Agent as Agent
    from cycletime.agents.agent import Buffer as Buffer
    from cycletime.agents.agent import Transition as Transition
    from cycletime.agents.exploration import CoherentNoise as CoherentNoise
    from cycletime.agents.exploration import OrnsteinUhlenbeck as OrnsteinUhlenbeck
    from cycletime.agents.exploration import Pink as Pink
    from cycletime.agents.from_rules import agent_for as agent_for
    from cycletime.agents.ppo import PPOAgent as PPOAgent
    from cycletime.agents.sac import SACAgent as SACAgent
