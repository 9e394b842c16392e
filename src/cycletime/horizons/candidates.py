"""The rules that are searched among: b and m per second, horizons in seconds with or without a floor, a learning rate.

A candidate has at most two numbers: the fewest steps of a horizon, and the exponent of rho that the learning rate
follows, which is minus that of the mini-batch's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from cycletime.rules import Law, Rule, laws

REFERENCES = ("baseline", "dt-aware", "scaled")
"""The paper's, by name; 'scaled' is the candidate without a floor that leaves the learning rate alone."""
FLOORS = (4, 6, 8, 12)
"""Of the discount and the trace, in agent steps."""
GAMMA_FLOORS = (6, 8)
"""Of the discount alone."""
EXPONENTS = {"quarter": 0.25, "half": 0.5}
"""Of 1 / rho, as the mini-batch grows: what the learning rate follows, at all cycle times or at longer ones alone."""


def _candidates() -> Iterator[Rule]:
    for floor in FLOORS:
        yield _rule(f"floor-{floor}", laws.power_with_floor(floor), laws.power_with_floor(floor))
    for floor in GAMMA_FLOORS:
        yield _rule(f"gamma-floor-{floor}", laws.power_with_floor(floor), laws.POWER)
    horizons = {"scaled": laws.POWER, **{f"floor-{floor}": laws.power_with_floor(floor) for floor in FLOORS}}
    for (begun, horizon), (word, exponent) in product(horizons.items(), EXPONENTS.items()):
        yield _rule(f"{begun}-rate-{word}", horizon, horizon, laws.rho_power(-exponent))
        yield _rule(f"{begun}-min-rate-{word}", horizon, horizon, laws.capped_rho_power(-exponent))


def _rule(name: str, discount: Law, trace_decay: Law, rate: Law | None = None) -> Rule:
    sizes = {"batch": laws.COUNT, "minibatch": laws.COUNT}
    rates = {} if rate is None else {"learning_rate": rate}
    return Rule(name, {**sizes, "discount": discount, "trace_decay": trace_decay, **rates})


CANDIDATES = {rule.name: rule for rule in _candidates()}
"""By name, those that are not the paper's."""


def numbers_of(rule: Rule) -> int:
    """How many numbers a candidate has that could be other ones."""
    return len({law for law in rule.laws.values() if law not in (laws.COUNT, laws.POWER)})
