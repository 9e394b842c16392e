"""SAC's hyper-parameters as a function of the cycle time, and those of the others with a replay buffer: TQC, TD3, DDPG.

The paper tunes gamma at one cycle time, then keeps it (gamma_2, here 'tuned') or scales it (gamma_1, 'tuned-scaled'):
aliases of 'baseline' and 'scaled', applied to a tuned gamma0. 'horizons' is ours.
TD3's policy_delay counts updates and its target_policy_noise smooths over actions: neither depends on the cycle time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, Self

from cycletime.duration import DurationField
from cycletime.errors import InputError
from cycletime.rules import laws
from cycletime.rules.hyperparameters import Hyperparameters, Part
from cycletime.rules.laws import Number
from cycletime.rules.quantities import Quantity, check_count, decay_in_seconds, smoothing_in_seconds, updates_in_seconds
from cycletime.rules.rule import OFF_POLICY, Rule, rules_by_name

_TARGETS = {laws.PROPORTIONAL: laws.PER_UPDATE, laws.GROWN: laws.GROWN_SMOOTHING}
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
    rules: ClassVar = rules_by_name(
        Rule("baseline", {"discount": laws.KEPT}),
        Rule("scaled", {"discount": laws.POWER}),
        Rule("tuned", {"discount": laws.KEPT}),
        Rule("tuned-scaled", {"discount": laws.POWER}),
        Rule("horizons", {"discount": laws.HORIZONS, "updates_per_step": laws.GROWN}),
    )
    recommended: ClassVar = OFF_POLICY
    parts: ClassVar[Mapping[str, Part]] = {
        "replay-capacity": Part("replay_capacity", laws.COUNT, 1_000_000),
        "warm-up": Part("warmup_steps", laws.COUNT, 10_000, "the released code's value for 16 ms,"),
        "target-smoothing": Part("target_smoothing", laws.SMOOTHING, 0.005, with_updates=_TARGETS),
        "updates-per-second": Part("updates_per_step", laws.PROPORTIONAL, 1),
        "exploration-noise": Part("noise_std", laws.ROOT),
        "learning-rate": Part("learning_rate", laws.ROOT, 3e-4),
    }

    def _interval_s(self, quantity: Quantity) -> float:
        per_update = quantity.field == "target_smoothing"
        return float(self.dt) / (self.updates_per_step or 1.0) if per_update else float(self.dt)

    def _notes_on(self, before: Self, rule: Rule) -> tuple[str, ...]:
        more = (self.updates_per_step or 1) / (before.updates_per_step or 1)
        return (f"{more:.6g} times as many updates per step cost {more:.6g} times the learning.",) if more > 1 else ()


@dataclass(frozen=True, kw_only=True)
class SAC(OffPolicy):
    """SAC's discount, and what else of it is counted in agent steps; None means 'not stated, leave it alone'."""

    dt: DurationField = DurationField()
    target_entropy: float | None = None
    """The entropy that the temperature is learned for; the paper's is -action_size."""
    action_size: int | None = None
    """The number of action dimensions."""

    algorithm: ClassVar = "sac"
    quantities: ClassVar = (*OffPolicy.quantities, Quantity("target_entropy", "H", low=-inf))
    parts: ClassVar = {**OffPolicy.parts, "target-entropy": Part("target_entropy", laws.KEPT)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.action_size is not None:
            check_count("action_size", self.action_size)

    def part(self, name: str) -> Part:
        """See `Hyperparameters.part`; the target entropy needs the number of action dimensions."""
        part = super().part(name)
        if name == "target-entropy":
            if self.action_size is None:
                raise InputError("The part 'target-entropy' needs action_size=..., the number of action dimensions.")
            return replace(part, law=laws.entropy_shift(self.action_size))
        return part

    def _baseline(self, field: str) -> tuple[Number | None, str]:
        if field == "target_entropy" and self.action_size is not None and field not in self.defaults:
            return float(-self.action_size), "the paper's"
        return super()._baseline(field)


@dataclass(frozen=True, kw_only=True)
class TQC(SAC):
    """TQC's, which differs from SAC in its critics alone."""

    dt: DurationField = DurationField()

    algorithm: ClassVar = "tqc"
    rules_of: ClassVar = "SAC"


@dataclass(frozen=True, kw_only=True)
class TD3(OffPolicy):
    """TD3's discount, and what else of it is counted in agent steps; None means 'not stated, leave it alone'."""

    dt: DurationField = DurationField()

    algorithm: ClassVar = "td3"
    rules_of: ClassVar = "SAC"


@dataclass(frozen=True, kw_only=True)
class DDPG(OffPolicy):
    """DDPG's discount, and what else of it is counted in agent steps; None means 'not stated, leave it alone'."""

    dt: DurationField = DurationField()

    algorithm: ClassVar = "ddpg"
    rules_of: ClassVar = "SAC"
