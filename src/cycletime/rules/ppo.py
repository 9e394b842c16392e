"""PPO's hyper-parameters as a function of the cycle time (the paper's section on PPO, with its two ablations).

dt-aware: b = b0/rho, m = m0/rho, gamma = min(gamma0, gamma0^rho), lambda = min(lambda0, lambda0^rho).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import ClassVar, Self

from cycletime.duration import DurationField
from cycletime.errors import InputError
from cycletime.rules.formulas import CAPPED_POWER, COUNT, KEPT, POWER, ROOT, Formula, Number
from cycletime.rules.hyperparameters import REPORTED_SHIFT, Hyperparameters, Part
from cycletime.rules.quantities import Quantity, decay_in_seconds, whole_number


@dataclass(frozen=True, kw_only=True)
class PPO(Hyperparameters):
    """PPO's batch, mini-batch, discount and trace decay; the defaults are the paper's baseline."""

    dt: DurationField = DurationField()
    """The action-cycle time that these values were tuned at, or carried to."""
    batch: int = 2000
    """b, the agent steps from one learning to the next, over all parallel environments."""
    minibatch: int = 50
    """m, the samples of one gradient step."""
    discount: float = 0.99
    """gamma, per agent step."""
    trace_decay: float = 0.95
    """lambda, per agent step."""
    noise_std: float | None = None
    """sigma, the initial standard deviation of the action."""

    minibatch_count: int | None = field(default=None, compare=False, repr=False)
    """The number of mini-batches, if these values come from a library that counts them; batch / minibatch may round."""

    algorithm: ClassVar = "ppo"
    quantities: ClassVar = (
        Quantity("batch", "b", low=1, low_allowed=True, whole=True, span="batch time"),
        Quantity("minibatch", "m", low=1, low_allowed=True, whole=True, span="mini-batch time"),
        Quantity("discount", "gamma", low=0, high=1, span="discount horizon", seconds=decay_in_seconds),
        Quantity(
            "trace_decay", "lambda", low=0, high=1, low_allowed=True, span="trace horizon", seconds=decay_in_seconds
        ),
        Quantity("noise_std", "sigma", low=0),
    )
    rules: ClassVar = {
        "baseline": {"batch": KEPT, "minibatch": KEPT, "discount": KEPT, "trace_decay": KEPT},
        "dt-aware": {"batch": COUNT, "minibatch": COUNT, "discount": CAPPED_POWER, "trace_decay": CAPPED_POWER},
        "scaled": {"batch": COUNT, "minibatch": COUNT, "discount": POWER, "trace_decay": POWER},
        "constant": {"batch": COUNT, "minibatch": COUNT, "discount": KEPT, "trace_decay": KEPT},
    }
    default_rule: ClassVar = "dt-aware"
    parts: ClassVar = {"exploration-noise": Part("noise_std", ROOT, 1.0, "the released code's")}

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        if self.minibatch > self.batch:
            raise InputError(f"minibatch is {self.minibatch}: it must be at most the batch, {self.batch}.")
        if self.minibatch_count is not None:
            count = whole_number("minibatch_count", self.minibatch_count)
            # Whichever way m was rounded; else b or m was replaced since, and the count belongs to the old ones.
            belongs = abs(Fraction(self.batch, count) - self.minibatch) < 1
            object.__setattr__(self, "minibatch_count", count if belongs else None)

    @property
    def minibatches(self) -> int:
        """The gradient steps of one epoch: ceil(b / m), the last one of them possibly short."""
        return ceil(Fraction(self.batch, self.minibatch))

    @property
    def tuned_ratio(self) -> Fraction:
        """The ratio b / m before rounding. Every rule keeps it, so libraries that count mini-batches keep theirs."""
        if self.minibatch_count is not None:
            return Fraction(self.minibatch_count)
        if self.origin and isinstance(self.origin.before, PPO):
            return self.origin.before.tuned_ratio
        return Fraction(self.batch, self.minibatch)

    def _carried(self, field: str, formula: Formula, rho: Fraction) -> Number:
        if field == "minibatch" and self.minibatch_count is not None and rho != 1 and formula == COUNT:
            # The m of a library that counts is rounded down already, and that error would be multiplied here.
            return formula.compute(Fraction(self.batch, self.minibatch_count), rho)
        return super()._carried(field, formula, rho)

    def _notes_on(self, before: Self, rule: str) -> tuple[str, ...]:
        ratio = Fraction(self.batch, self.minibatch)
        if ratio == Fraction(before.batch, before.minibatch):
            return ()
        # What a library counted, where m was rounded already when it was read.
        ratio_before = Fraction(before.minibatch_count or Fraction(before.batch, before.minibatch))
        shift = float(ratio / ratio_before) - 1
        moved = f"batch / minibatch moved from {float(ratio_before):.4g} to {float(ratio):.4g} ({shift:+.1%})"
        count, count_before = self.minibatches, ceil(ratio_before)
        if count != count_before:
            return (f"Mini-batches per epoch: {count_before} became {count}, since rounding {moved}.",)
        return (f"Rounding {moved}.",) if abs(shift) > REPORTED_SHIFT else ()
