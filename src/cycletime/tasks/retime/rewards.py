"""What a reward term is, and by which factor it is multiplied so that returns stay comparable per second.

An episode of T seconds has T/env_dt steps. A term that is charged once per step has a sum that grows with the number of
steps; multiplied by env_dt/own_dt its sum is what it was, up to the error of sampling it more often. A term that is a
difference of potentials telescopes: its sum does not depend on the number of steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from cycletime.errors import InputError
from cycletime.tasks.retime.clocks import TimeStep


class Kind(Enum):
    """How a reward term depends on the time step."""

    RATE = "rate"
    """Charged once per step: an alive bonus, a control cost, a distance. Multiplied by env_dt/own_dt."""
    VELOCITY = "velocity"
    """A difference divided by the environment's time step. Its sum is a displacement after the same factor."""
    DIFFERENCE = "difference"
    """A difference that is not divided by a time step. It telescopes and is left alone."""
    EVENT = "event"
    """Paid once when something happens, such as reaching a goal. Left alone."""
    OVER_PHYSICS_DT = "rate over physics_dt"
    """A rate that the environment divides by its physics step. Multiplied by physics_dt/own_physics_dt, too."""

    @property
    def powers(self) -> tuple[int, int]:
        """The powers of env_dt/own_dt and of physics_dt/own_physics_dt in the factor."""
        if self in (Kind.DIFFERENCE, Kind.EVENT):
            return 0, 0
        return (1, 1) if self is Kind.OVER_PHYSICS_DT else (1, 0)

    def factor(self, own: TimeStep, now: TimeStep) -> float:
        """What a term of this kind is multiplied by where the time step went from `own` to `now`."""
        of_env, of_physics = self.powers
        return float((now.env_dt / own.env_dt) ** of_env * (now.physics_dt / own.physics_dt) ** of_physics)


@dataclass(frozen=True)
class RewardTerm:
    """One summand of an environment's reward."""

    formula: str
    """What the environment computes, with its sign, for people to read."""
    kind: Kind
    """How it depends on the time step."""
    info: str | None = None
    """The entry of ``info`` that holds this summand with its sign, if there is one."""


@dataclass(frozen=True)
class Scaling:
    """Factors for a reward and for the entries of ``info`` that are its summands."""

    rest: float
    """The factor of every summand that `info` does not hold."""
    by_info: Mapping[str, float]
    """The factors of the summands in `info`."""

    def apply(self, reward: float, info: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """The reward and the ``info`` of one step, with each summand multiplied by its factor.

        Raises:
            InputError: if a summand is missing in ``info``.
        """
        missing = [name for name in self.by_info if name not in info]
        if missing:
            raise InputError(
                f"info has no entry {missing[0]!r} with a reward term: it has {', '.join(info) or 'none'}."
            )
        # Where all factors are the same this is one product, so a factor of 1 changes no bit.
        apart = sum((factor - self.rest) * float(info[name]) for name, factor in self.by_info.items())
        return self.rest * reward + apart, info | {name: info[name] * factor for name, factor in self.by_info.items()}


def scaling(terms: Sequence[RewardTerm], own: TimeStep, now: TimeStep) -> Scaling:
    """The factors for these terms."""
    # Without hidden terms there is no rest, and any of the factors will do.
    rest = next((term.kind for term in terms if term.info is None), terms[0].kind)
    by_info = {term.info: term.kind.factor(own, now) for term in terms if term.info is not None}
    return Scaling(rest.factor(own, now), by_info)


def check_terms(terms: Sequence[RewardTerm]) -> None:
    """Refuse descriptions from which the retimed reward cannot be computed."""
    if not terms:
        raise InputError("No reward terms were given: describe at least one, as in RewardTerm('1', Kind.RATE).")
    names = [term.info for term in terms if term.info is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"The entry {twice!r} of info was given for several reward terms: give one term for it.")
    hidden = [term for term in terms if term.info is None]
    if len({term.kind.powers for term in hidden}) > 1:
        which = " and ".join(f"{term.formula!r} ({term.kind.value})" for term in hidden)
        raise InputError(f"{which} have different factors: name the entries of info that hold them, with info=.")
