"""A2C's hyper-parameters as a function of the cycle time: PPO's rules, with the whole batch in one gradient step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from cycletime.duration import DurationField
from cycletime.rules.hyperparameters import Hyperparameters
from cycletime.rules.ppo import PPO
from cycletime.rules.rule import by_name

_PPO_ALONE = ("minibatch", "clip")
"""What PPO has and A2C has not."""


@dataclass(frozen=True, kw_only=True)
class A2C(Hyperparameters):
    """A2C's batch, discount and trace decay; the defaults are Stable-Baselines3's, since the paper has no A2C."""

    dt: DurationField = DurationField()
    """The action-cycle time that these values were tuned at, or carried to."""
    batch: int = 5
    """b, the agent steps from one gradient step to the next, over all parallel environments."""
    discount: float = 0.99
    """gamma, per agent step."""
    trace_decay: float = 1.0
    """lambda, per agent step."""
    noise_std: float | None = None
    """sigma, the initial standard deviation of the action."""
    learning_rate: float | None = None
    """eta, the optimiser's."""

    algorithm: ClassVar = "a2c"
    quantities: ClassVar = tuple(quantity for quantity in PPO.quantities if quantity.field not in _PPO_ALONE)
    rules: ClassVar = by_name(*(rule.without(*_PPO_ALONE) for rule in PPO.rules.values()))
    default_rule: ClassVar = PPO.default_rule
    parts: ClassVar = {
        "exploration-noise": PPO.parts["exploration-noise"],
        "learning-rate": replace(PPO.parts["learning-rate"], baseline=7e-4, whose_baseline="Stable-Baselines3's"),
    }
    rules_of: ClassVar = "PPO"

    @property
    def minibatch(self) -> int:
        """m, the samples of one gradient step: the whole batch."""
        return self.batch

    @property
    def tuned_ratio(self) -> Fraction:
        """The gradient steps of one batch."""
        return Fraction(1)
