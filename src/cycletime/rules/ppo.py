"""PPO's hyper-parameters as a function of the cycle time (the paper's, with its two ablations); and A2C's.

dt-aware: b = b0/rho, m = m0/rho, gamma = min(gamma0, gamma0^rho), lambda = min(lambda0, lambda0^rho).
horizons, which is ours: b and m the same, gamma0^rho and lambda0^rho, with horizons of at least some steps.
A2C takes PPO's rules, with the whole batch in one gradient step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import ClassVar, Self

from cycletime.duration import DurationField
from cycletime.errors import InputError
from cycletime.rules.hyperparameters import REPORTED_SHIFT, Hyperparameters, Part
from cycletime.rules.laws import CAPPED_POWER, COUNT, HORIZONS, KEPT, POWER, ROOT, TIMES_ROOT, Law, Number
from cycletime.rules.quantities import Quantity, check_count, decay_in_seconds
from cycletime.rules.rule import ON_POLICY, Rule, rules_by_name


def _rule(name: str, *, sizes: Law, decays: Law) -> Rule:
    return Rule(name, {"batch": sizes, "minibatch": sizes, "discount": decays, "trace_decay": decays})


@dataclass(frozen=True, kw_only=True)
class PPO(Hyperparameters):
    """PPO's batch, mini-batch, discount and trace decay; the defaults are the paper's baseline."""

    dt: DurationField = DurationField()
    """The action-cycle time that these values were tuned at, or carried to."""
    batch: int = 2000
    """b, the agent steps between two updates, over all parallel environments."""
    minibatch: int = 50
    """m, the samples of one gradient step."""
    discount: float = 0.99
    """gamma, per agent step."""
    trace_decay: float = 0.95
    """lambda, per agent step."""
    noise_std: float | None = None
    """sigma, the initial standard deviation of the action."""
    learning_rate: float | None = None
    """eta, the optimiser's."""
    clip: float | None = None
    """epsilon, how far the ratio of probabilities may move before it stops counting."""

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
        Quantity("learning_rate", "eta", low=0),
        Quantity("clip", "epsilon", low=0),
    )
    rules: ClassVar = rules_by_name(
        _rule("baseline", sizes=KEPT, decays=KEPT),
        _rule("dt-aware", sizes=COUNT, decays=CAPPED_POWER),
        _rule("scaled", sizes=COUNT, decays=POWER),
        _rule("constant", sizes=COUNT, decays=KEPT),
        _rule("horizons", sizes=COUNT, decays=HORIZONS),
    )
    recommended: ClassVar = ON_POLICY
    parts: ClassVar = {
        "exploration-noise": Part("noise_std", ROOT, 1.0, "the released code's"),
        "learning-rate": Part("learning_rate", ROOT, 3e-4),
        "clip": Part("clip", TIMES_ROOT, 0.2),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minibatch > self.batch:
            raise InputError(f"minibatch is {self.minibatch}: it must be at most the batch, {self.batch}.")
        if self.minibatch_count is not None:
            count = check_count("minibatch_count", self.minibatch_count)
            # Whichever way m was rounded; else b or m was replaced since, and the count belongs to the old ones.
            belongs = abs(Fraction(self.batch, count) - self.minibatch) < 1
            object.__setattr__(self, "minibatch_count", count if belongs else None)

    @property
    def minibatches(self) -> int:
        """The gradient steps of one epoch: ceil(b / m), the last one of them possibly short."""
        return ceil(Fraction(self.batch, self.minibatch))

    @property
    def tuned_ratio(self) -> Fraction:
        """The ratio b / m before rounding. The paper's rules keep it, so libraries that count mini-batches do too."""
        if self.minibatch_count is not None:
            return Fraction(self.minibatch_count)
        if self.origin and isinstance(self.origin.before, PPO):
            before, rho = self.origin.before, self.dt / self.origin.before.dt
            sizes = {"batch": Fraction(before.batch), "minibatch": before.batch / before.tuned_ratio}
            exact = [Fraction(self.origin.laws.get(name, KEPT)(size, rho)) for name, size in sizes.items()]
            return exact[0] / exact[1]
        return Fraction(self.batch, self.minibatch)

    def _carried(self, field: str, law: Law, rho: Fraction) -> Number:
        if field == "minibatch" and self.minibatch_count is not None and rho != 1 and law != KEPT:
            # The m of a library that counts is rounded down already, and that error would be multiplied here.
            return law(Fraction(self.batch, self.minibatch_count), rho)
        return super()._carried(field, law, rho)

    def _notes_on(self, before: Self, rule: Rule) -> tuple[str, ...]:
        ratio = Fraction(self.batch, self.minibatch)
        if ratio == Fraction(before.batch, before.minibatch):
            return ()
        # What a library counted, where m was rounded already when it was read.
        ratio_before = Fraction(before.minibatch_count or Fraction(before.batch, before.minibatch))
        shift = float(ratio / ratio_before) - 1
        moved = f"batch / minibatch moved from {float(ratio_before):.4g} to {float(ratio):.4g} ({shift:+.1%})"
        count, count_before = self.minibatches, ceil(ratio_before)
        if rule.law("batch") != rule.law("minibatch"):
            ratios = f"from {float(ratio_before):.4g} to {float(ratio):.4g}"
            return (f"Rule {rule.name!r} moves batch / minibatch {ratios}: {count} mini-batches per epoch.",)
        if count != count_before and (self.minibatch_count is None or abs(shift) > REPORTED_SHIFT):
            return (f"Mini-batches per epoch: {count_before} became {count}, since rounding {moved}.",)
        return (f"Rounding {moved}.",) if abs(shift) > REPORTED_SHIFT else ()


_PPO_ONLY = ("minibatch", "clip")
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
    quantities: ClassVar = tuple(quantity for quantity in PPO.quantities if quantity.field not in _PPO_ONLY)
    rules: ClassVar = rules_by_name(*(rule.without(*_PPO_ONLY) for rule in PPO.rules.values()))
    recommended: ClassVar = ON_POLICY
    parts: ClassVar = {
        "exploration-noise": PPO.parts["exploration-noise"],
        "learning-rate": replace(PPO.parts["learning-rate"], baseline=7e-4, whose_baseline="Stable-Baselines3's"),
    }
    rules_of: ClassVar = "PPO"
    whose_baseline: ClassVar = "Stable-Baselines3's default"

    @property
    def minibatch(self) -> int:
        """m, the samples of one gradient step: the whole batch."""
        return self.batch

    @property
    def tuned_ratio(self) -> Fraction:
        """The gradient steps of one batch."""
        return Fraction(1)
