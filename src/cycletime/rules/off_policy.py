"""What algorithms with a replay buffer share of the cycle time: SAC and TQC, TD3 and DDPG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cycletime.duration import DurationField
from cycletime.rules.hyperparameters import Hyperparameters, Part
from cycletime.rules.laws import (
    COUNT,
    GROWN,
    GROWN_SMOOTHING,
    HORIZONS,
    KEPT,
    PER_UPDATE,
    POWER,
    PROPORTIONAL,
    ROOT,
    SMOOTHING,
)
from cycletime.rules.quantities import Quantity, decay_in_seconds, smoothing_in_seconds, updates_in_seconds
from cycletime.rules.rule import Rule, by_name

_TARGETS = {PROPORTIONAL: PER_UPDATE, GROWN: GROWN_SMOOTHING}
"""By the law of the updates, that of the targets: where updates come at the same times as before, scaling tau as well
would correct twice."""


@dataclass(frozen=True, kw_only=True)
class OffPolicy(Hyperparameters):
    """The discount, and what else is counted in agent steps; None means 'not stated, leave it alone'."""

    dt: DurationField = DurationField()
    """The action-cycle time that these values were tuned at, or carried to."""
    discount: float = 0.99
    """gamma, per agent step; the default is the paper's baseline."""
    minibatch: int | None = None
    """m, the samples of one update. No rule changes it."""
    replay_capacity: int | None = None
    """The transitions that the replay buffer holds."""
    warmup_steps: int | None = None
    """The agent steps of random actions before the policy takes over."""
    target_smoothing: float | None = None
    """tau, how far the target critics move to the critics at each update."""
    updates_per_step: float | None = None
    """Gradient steps per agent step."""
    noise_std: float | None = None
    """sigma of noise that is added to the action."""
    learning_rate: float | None = None
    """eta, of policy, action values and temperature alike."""

    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity("discount", "gamma", low=0, high=1, span="discount horizon", seconds=decay_in_seconds),
        Quantity("minibatch", "m", low=1, low_allowed=True, whole=True),
        Quantity("replay_capacity", "N", low=1, low_allowed=True, whole=True, span="replay span"),
        Quantity("warmup_steps", "W", low=0, low_allowed=True, whole=True, span="warm-up time"),
        Quantity("target_smoothing", "tau", low=0, high=1, span="target time constant", seconds=smoothing_in_seconds),
        Quantity("updates_per_step", "u", low=0, span="time between updates", seconds=updates_in_seconds),
        Quantity("noise_std", "sigma", low=0),
        Quantity("learning_rate", "eta", low=0),
    )
    rules: ClassVar = by_name(
        Rule("baseline", {"discount": KEPT}),
        Rule("scaled", {"discount": POWER}),
        Rule("tuned", {"discount": KEPT}),
        Rule("tuned-scaled", {"discount": POWER}),
        Rule("horizons", {"discount": HORIZONS, "updates_per_step": GROWN}),
    )
    default_rule: ClassVar = "tuned-scaled"
    parts: ClassVar[Mapping[str, Part]] = {
        "replay-capacity": Part("replay_capacity", COUNT, 1_000_000),
        "warm-up": Part("warmup_steps", COUNT, 10_000, "the released code's value for 16 ms,"),
        "target-smoothing": Part("target_smoothing", SMOOTHING, 0.005, with_updates=_TARGETS),
        "updates-per-second": Part("updates_per_step", PROPORTIONAL, 1),
        "exploration-noise": Part("noise_std", ROOT),
        "learning-rate": Part("learning_rate", ROOT, 3e-4),
    }

    def _beat_s(self, quantity: Quantity) -> float:
        per_update = quantity.field == "target_smoothing"
        return float(self.dt) / (self.updates_per_step or 1.0) if per_update else float(self.dt)
