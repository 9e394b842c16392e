"""dt-aware hyper-parameters: PPO, SAC, the paper's ablations, further rules, and other libraries' names.

>>> from cycletime.rules import PPO
>>> carried = PPO(dt="40ms", batch=1000).at("10ms")
>>> print(carried.explain())  # each value before and after, with its formula and what it means in seconds
>>> carried.to("sb3", n_envs=4)  # in Stable-Baselines3's words

PPO and SAC are the paper's; A2C, TQC, TD3 and DDPG take those of their rules that apply. A `Rule` of your own is a
choice of `laws`.
"""

from cycletime.rules import laws
from cycletime.rules.hyperparameters import Hyperparameters, recommend
from cycletime.rules.laws import Law
from cycletime.rules.ppo import A2C, PPO
from cycletime.rules.rule import Rule
from cycletime.rules.sac import DDPG, SAC, TD3, TQC

__all__ = [
    "A2C",
    "ALGORITHMS",
    "DDPG",
    "PPO",
    "SAC",
    "TD3",
    "TQC",
    "Hyperparameters",
    "Law",
    "Rule",
    "laws",
    "recommend",
]

ALGORITHMS: dict[str, type[Hyperparameters]] = {kind.algorithm: kind for kind in (PPO, SAC, A2C, TQC, TD3, DDPG)}
