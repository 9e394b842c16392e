"""SAC's hyper-parameters as a function of the cycle time (the paper's section on SAC), and TQC's, which is built on it.

The paper tunes gamma at one cycle time, then keeps it (gamma_2, here 'tuned') or scales it (gamma_1, 'tuned-scaled').
Both are the plain rules 'baseline' and 'scaled' applied to a tuned gamma0, so they are aliases. The default is
'horizons', the winner of the trial of 'cycletime horizons', which makes more updates at longer cycles as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, Self

from cycletime.duration import DurationField
from cycletime.errors import InputError
from cycletime.rules.hyperparameters import Part
from cycletime.rules.laws import KEPT, Number, entropy_shift
from cycletime.rules.off_policy import OffPolicy
from cycletime.rules.quantities import Quantity, whole_number
from cycletime.rules.rule import Rule


@dataclass(frozen=True, kw_only=True)
class SAC(OffPolicy):
    """SAC's discount, and what else of it is counted in agent steps; None means 'not stated, leave it alone'."""

    dt: DurationField = DurationField()
    """The action-cycle time that these values were tuned at, or carried to."""
    target_entropy: float | None = None
    """The entropy that the temperature is learned for; the paper's is -action_size."""
    action_size: int | None = None
    """The number of action dimensions."""

    algorithm: ClassVar = "sac"
    default_rule: ClassVar = "horizons"
    quantities: ClassVar = (*OffPolicy.quantities, Quantity("target_entropy", "H", low=-inf))
    parts: ClassVar = {**OffPolicy.parts, "target-entropy": Part("target_entropy", KEPT)}

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        if self.action_size is not None:
            whole_number("action_size", self.action_size)

    def part(self, name: str) -> Part:
        """See `Hyperparameters.part`.

        Raises:
            InputError: as there, or if the target entropy is asked for without the number of action dimensions.
        """
        part = super().part(name)
        if name == "target-entropy":
            if self.action_size is None:
                raise InputError("The part 'target-entropy' needs action_size, the number of action dimensions.")
            return replace(part, law=entropy_shift(self.action_size))
        return part

    def _baseline(self, field: str) -> tuple[Number | None, str]:
        if field == "target_entropy" and self.action_size is not None and field not in self.defaults:
            return float(-self.action_size), "the paper's"
        return super()._baseline(field)

    def _notes_on(self, before: Self, rule: Rule) -> tuple[str, ...]:
        meant_for_tuned = rule.name == "tuned" or rule.law("discount") != KEPT
        if not meant_for_tuned or before.discount != SAC.discount:
            return ()
        return (
            f"discount {before.discount} is the paper's untuned baseline, and scaling that was no better there than "
            f"keeping it: tune gamma at {before.dt} first, by 'cycletime tune FILE --horizons', then carry that value.",
        )


@dataclass(frozen=True, kw_only=True)
class TQC(SAC):
    """TQC's, which differs from SAC in its critics alone."""

    dt: DurationField = DurationField()
    """The action-cycle time that these values were tuned at, or carried to."""

    algorithm: ClassVar = "tqc"
    rules_of: ClassVar = "SAC"
