"""The rules that are searched among, for PPO and for SAC.

PPO's have b and m per second, horizons in seconds with or without a floor, and a learning rate: at most two numbers,
the fewest steps of a horizon, and the exponent of rho that the learning rate follows, which is minus that of the
mini-batch's size. SAC's have the discount horizon in seconds with or without a floor, and in seconds beside it nothing
else, the targets' time constant, or the time between updates: at most one number.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from cycletime.rules import Law, Rule, laws
from cycletime.rules.rule import by_name

FLOORS = (4, 6, 8, 12)
"""Of PPO's discount and trace, in agent steps."""
GAMMA_FLOORS = (6, 8)
"""Of PPO's discount alone."""
EXPONENTS = {"quarter": 0.25, "half": 0.5}
"""Of 1 / rho, as the mini-batch grows: what the learning rate follows, at all cycle times or at longer ones alone."""
SAC_FLOOR = 6
"""Of SAC's discount: PPO's winner has it, and the paper's tuned gammas of SAC stop falling there."""
_SAC_PARTS = {"smoothing": {"target_smoothing": laws.SMOOTHING}, "updates": {"updates_per_step": laws.PROPORTIONAL}}
"""What else keeps its meaning in seconds, one at a time: with as many updates per second as before, so do the targets
as they are."""
SAC_SUGGESTED = f"floor-{SAC_FLOOR}-more-updates"
"""What the search of the others suggested: updates per second paid where cycles get longer, and cost where they get
shorter. It does at longer cycles what 'updates' does, and at shorter ones nothing, so that it needs no run of its own.
It was added before any run of the trial was looked at."""
_WITHOUT_NUMBER = (laws.KEPT, laws.COUNT, laws.POWER, laws.SMOOTHING, laws.PROPORTIONAL, laws.GROWN)


def _of_ppo() -> Iterator[Rule]:
    for floor in FLOORS:
        yield _ppo_rule(f"floor-{floor}", laws.power_with_floor(floor), laws.power_with_floor(floor))
    for floor in GAMMA_FLOORS:
        yield _ppo_rule(f"gamma-floor-{floor}", laws.power_with_floor(floor), laws.POWER)
    horizons = {"scaled": laws.POWER, **{f"floor-{floor}": laws.power_with_floor(floor) for floor in FLOORS}}
    for (begun, horizon), (word, exponent) in product(horizons.items(), EXPONENTS.items()):
        yield _ppo_rule(f"{begun}-rate-{word}", horizon, horizon, laws.rho_power(-exponent))
        yield _ppo_rule(f"{begun}-min-rate-{word}", horizon, horizon, laws.capped_rho_power(-exponent))


def _ppo_rule(name: str, discount: Law, trace_decay: Law, rate: Law | None = None) -> Rule:
    sizes = {"batch": laws.COUNT, "minibatch": laws.COUNT}
    rates = {} if rate is None else {"learning_rate": rate}
    return Rule(name, {**sizes, "discount": discount, "trace_decay": trace_decay, **rates})


def _of_sac() -> Iterator[Rule]:
    floor = laws.power_with_floor(SAC_FLOOR)
    yield Rule(f"floor-{SAC_FLOOR}", {"discount": floor})
    for (begun, horizon), (word, part) in product(
        {"scaled": laws.POWER, f"floor-{SAC_FLOOR}": floor}.items(), _SAC_PARTS.items()
    ):
        yield Rule(f"{begun}-{word}", {"discount": horizon, **part})
    yield Rule(SAC_SUGGESTED, {"discount": floor, "updates_per_step": laws.GROWN})


PPO_CANDIDATES = by_name(*_of_ppo())
"""By name, those that are not the paper's."""
SAC_CANDIDATES = by_name(*_of_sac())
"""The same of SAC."""
SAC_AFTERWARDS = Rule(
    f"min-floor-{SAC_FLOOR}-more-updates",
    {"discount": laws.capped_power_with_floor(SAC_FLOOR), "updates_per_step": laws.GROWN},
)
"""What the trial suggested, where keeping gamma did better at shorter cycles: the one before with the paper's min. It
needs no run of its own, either, and no trial has judged it."""


def numbers_of(rule: Rule) -> int:
    """How many numbers a candidate has that could be other ones."""
    return len({law for law in rule.laws.values() if law not in _WITHOUT_NUMBER})
