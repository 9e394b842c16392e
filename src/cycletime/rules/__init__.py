"""dt-aware hyper-parameters: PPO, SAC, the paper's ablations, further rules, and other libraries' names.

>>> from cycletime.rules import PPO
>>> carried = PPO(dt="40ms", batch=1000).at("10ms")
>>> print(carried.explain())  # each value before and after, with its formula and what it means in seconds
>>> carried.to("sb3", n_envs=4)  # in Stable-Baselines3's words

PPO and SAC are the paper's; A2C, TQC, TD3 and DDPG take those of their rules that apply. A `Rule` of your own is a
choice of `laws`.
"""

from collections.abc import Collection, Mapping

from cycletime.rules import laws
from cycletime.rules.hyperparameters import Hyperparameters, recommend
from cycletime.rules.laws import Law
from cycletime.rules.ppo import A2C, PPO
from cycletime.rules.rule import HORIZON_FIELDS, Recommendation, Rule
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
    "recommend_for",
]

ALGORITHMS: dict[str, type[Hyperparameters]] = {kind.algorithm: kind for kind in (PPO, SAC, A2C, TQC, TD3, DDPG)}


def recommend_for(algorithm: str, values: Mapping[str, object], tuned_fields: Collection[str] = ()) -> Recommendation:
    """What `recommend` says of some of an algorithm's values, of which a tuning chose some."""
    decays = {name: values[name] for name in HORIZON_FIELDS if name in values}
    kind = ALGORITHMS[algorithm]
    return recommend(kind(dt="16ms", tuned_fields=tuned_fields, **decays))  # type: ignore[arg-type]  # checked there
