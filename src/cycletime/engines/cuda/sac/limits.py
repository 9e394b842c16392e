"""Which of SAC's runs the kernel cannot take, and why: it was made for the paper's networks and mini-batches."""

from __future__ import annotations

from cycletime.agents import SACAgent
from cycletime.engines.cuda.sac.layout import SAMPLES, UNITS

_ONLY = {"hidden": (UNITS, UNITS), "minibatch": SAMPLES, "temperature": "log_alpha", "acts": "after_learning"}


def refusal(agent: SACAgent) -> str | None:
    """In a sentence, why the kernel cannot train an agent; None where it can."""
    for name, only in _ONLY.items():
        if (given := getattr(agent, name)) != only:
            return f"{name} is {given!r}: the engine cuda trains SAC with {only!r} only."
    return None
