"""The paper's claims, in its order, each with its criterion; `judge` says what the data make of it."""

from __future__ import annotations

from cycletime.paper.claims import ppo, robot, sac
from cycletime.paper.claims.claim import Claim, Elsewhere, Judged, claim_as_json, claims_as_json, judge
from cycletime.paper.claims.sources import Data, paper_pendulum, reacher

__all__ = ["CLAIMS", "Claim", "Data", "Judged", "claim_as_json", "claims_as_json", "judge"]


_REACHER = ppo.parts_of(reacher, ppo.at_least_as_good, ppo.never_fails)
_PENDULUM = ppo.parts_of(paper_pendulum, ppo.at_least_as_good, ppo.never_fails)
_HEADLINE = Claim(
    "headline",
    "dt-aware values do at least as well as the baseline at every cycle time, and fail at none.",
    "On both simulated tasks and with both algorithms every dt-aware choice scores at most a twentieth of a perfect "
    "policy's return below the baseline, and its final return is above a quarter of it, at every cycle time.",
    "One of these on the other side.",
    "three-part",
    (*_REACHER, *_PENDULUM, *sac.AT_LEAST_AS_GOOD),
    elsewhere=(Elsewhere("PPO alone, reacher", _REACHER), Elsewhere("PPO alone, double-pendulum", _PENDULUM)),
)
CLAIMS: tuple[Claim, ...] = (
    *sorted((*ppo.CLAIMS, *sac.CLAIMS, *robot.CLAIMS), key=lambda each: int(each.number)),
    _HEADLINE,
)
"""By number, and then the headline over all tasks."""
