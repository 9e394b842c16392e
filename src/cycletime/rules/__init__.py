"""dt-aware hyper-parameters: PPO, SAC, the paper's ablations, further rules, and other libraries' names."""

from cycletime.rules.hyperparameters import Hyperparameters
from cycletime.rules.ppo import PPO
from cycletime.rules.sac import SAC

__all__ = ["PPO", "SAC", "Hyperparameters"]
