"""The paper's claims, in its order, each with its criterion; `judge` says what the data make of it."""

from __future__ import annotations

from cycletime.paper.claims import ppo, sac
from cycletime.paper.claims.claim import Claim, Elsewhere, Judged, claim_as_json, claims_as_json, judge
from cycletime.paper.claims.conditions import Condition
from cycletime.paper.claims.sources import Data, NotRunError, paper_pendulum, reacher

__all__ = ["CLAIMS", "Claim", "Data", "Judged", "claim_as_json", "claims_as_json", "judge"]


def _on_the_robot(data: Data) -> list[Condition]:
    del data
    raise NotRunError("the robot")


_REACHER = ppo.parts_of(reacher, ppo.at_least_as_good, ppo.never_fails)
_PENDULUM = ppo.parts_of(paper_pendulum, ppo.at_least_as_good, ppo.never_fails)
_ROBOT = (
    Claim(
        "14",
        "Robot, PPO: at 10 ms dt-aware recovers what the baseline loses against 40 ms; with b = 2000 baseline and "
        "dt-aware are comparable.",
        "With b = 400 the final return of dt-aware at 10 ms is above the baseline's there, and at most a twentieth of "
        "a perfect policy's return below that at 40 ms; with b = 2000 both are within a twentieth.",
        "One of these on the other side.",
        None,
        (_on_the_robot,),
    ),
    Claim(
        "15",
        "Robot, SAC: at 120 ms baseline < gamma_2 < gamma_1, the last nearly as good as the peak at 40 ms; extended "
        "learning does not bring .99 there.",
        "The scores are in this order, gamma_1 within a twentieth of a perfect policy's return of the peak; after "
        "twice the time .99 ends below it.",
        "One of these on the other side.",
        None,
        (_on_the_robot,),
    ),
)
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
CLAIMS: tuple[Claim, ...] = (*sorted((*ppo.CLAIMS, *sac.CLAIMS, *_ROBOT), key=lambda each: int(each.number)), _HEADLINE)
"""By number, and then the headline over all tasks."""
