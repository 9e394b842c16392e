"""SAC's hyper-parameters as a function of the cycle time (the paper's section on SAC).

The paper tunes gamma at one cycle time, then keeps it (gamma_2, here 'tuned') or scales it (gamma_1, 'tuned-scaled').
Both are the plain rules 'baseline' and 'scaled' applied to a tuned gamma0, so they are aliases.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar, Self

from cycletime.duration import DurationField
from cycletime.errors import InputError
from cycletime.rules.formulas import (
    COUNT,
    KEPT,
    PER_UPDATE,
    POWER,
    PROPORTIONAL,
    ROOT,
    SMOOTHING,
    Number,
    entropy_shift,
)
from cycletime.rules.hyperparameters import Hyperparameters, Part
from cycletime.rules.quantities import (
    Quantity,
    decay_in_seconds,
    smoothing_in_seconds,
    updates_in_seconds,
    whole_number,
)


@dataclass(frozen=True, kw_only=True)
class SAC(Hyperparameters):
    """SAC's discount, and what else of it is counted in agent steps; None means 'not stated, leave it alone'."""

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
    target_entropy: float | None = None
    """The entropy that the temperature is learned for; the paper's is -action_size."""
    action_size: int | None = None
    """The number of action dimensions."""

    defaults: Mapping[str, Number] = field(default_factory=dict, compare=False, repr=False)
    """By field, the defaults of the library that these values come from, if they come from one."""

    algorithm: ClassVar = "sac"
    quantities: ClassVar = (
        Quantity("discount", "gamma", low=0, high=1, span="discount horizon", seconds=decay_in_seconds),
        Quantity("minibatch", "m", low=1, low_allowed=True, whole=True),
        Quantity("replay_capacity", "N", low=1, low_allowed=True, whole=True, span="replay span"),
        Quantity("warmup_steps", "W", low=0, low_allowed=True, whole=True, span="warm-up time"),
        Quantity("target_smoothing", "tau", low=0, high=1, span="target time constant", seconds=smoothing_in_seconds),
        Quantity("updates_per_step", "u", low=0, span="time between updates", seconds=updates_in_seconds),
        Quantity("noise_std", "sigma", low=0),
        Quantity("target_entropy", "H", low=-inf),
    )
    rules: ClassVar = {
        "baseline": {"discount": KEPT},
        "scaled": {"discount": POWER},
        "tuned": {"discount": KEPT},
        "tuned-scaled": {"discount": POWER},
    }
    default_rule: ClassVar = "tuned-scaled"
    parts: ClassVar = {
        "replay-capacity": Part("replay_capacity", COUNT, 1_000_000),
        "warm-up": Part("warmup_steps", COUNT, 10_000, "the released code's value for 16 ms,"),
        "target-smoothing": Part("target_smoothing", SMOOTHING, 0.005),
        "updates-per-second": Part("updates_per_step", PROPORTIONAL, 1),
        "exploration-noise": Part("noise_std", ROOT),
        "target-entropy": Part("target_entropy", KEPT),
    }

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        if self.action_size is not None:
            whole_number("action_size", self.action_size)

    def _part(self, name: str, also: Collection[str]) -> Part:
        part = super()._part(name, also)
        if part.field in self.defaults:
            part = replace(part, baseline=self.defaults[part.field], whose_baseline="the library's")
        if name == "target-smoothing" and "updates-per-second" in also:
            # Updates then come at the same times as before, and scaling tau as well would correct twice.
            return replace(part, formula=PER_UPDATE)
        if name == "target-entropy":
            if self.action_size is None:
                raise InputError("The part 'target-entropy' needs action_size, the number of action dimensions.")
            return replace(part, formula=entropy_shift(self.action_size), baseline=float(-self.action_size))
        return part

    def _notes_on(self, before: Self, rule: str) -> tuple[str, ...]:
        if rule == "baseline" or before.discount != SAC.discount:
            return ()
        return (
            f"discount {before.discount} is the paper's untuned baseline, and scaling that was no better there than "
            f"keeping it: tune gamma at {before.dt} first, then carry the tuned value.",
        )

    def _beat_s(self, quantity: Quantity) -> float:
        per_update = quantity.field == "target_smoothing"
        return float(self.dt) / (self.updates_per_step or 1.0) if per_update else float(self.dt)
