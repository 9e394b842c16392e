"""The paper's claims, in its order, each with its criterion; `judge` says what the data make of it."""

from __future__ import annotations

from cycletime.experiments.judging import Claim, JudgedClaim, OtherSetting, claim_as_json, claims_as_json, judge
from cycletime.experiments.paper import ppo_claims, sac_claims
from cycletime.experiments.paper import sac_claims as sac
from cycletime.experiments.paper.data import PaperResults, paper_pendulum_runs, reacher_runs

__all__ = ["CLAIMS", "Claim", "JudgedClaim", "PaperResults", "claim_as_json", "claims_as_json", "judge"]


_REACHER = ppo_claims.condition_groups(reacher_runs, ppo_claims.at_least_as_good, ppo_claims.never_fails)
_PENDULUM = ppo_claims.condition_groups(paper_pendulum_runs, ppo_claims.at_least_as_good, ppo_claims.never_fails)
_HEADLINE = Claim(
    "headline",
    "dt-aware values do at least as well as the baseline at every cycle time, and fail at none.",
    "On both simulated tasks and with both algorithms every dt-aware choice scores at most a twentieth of a perfect "
    "policy's return below the baseline, and its final return is above a quarter of it, at every cycle time.",
    "One of these on the other side.",
    "three-part",
    (*_REACHER, *_PENDULUM, *sac.SAC_AT_LEAST_AS_GOOD),
    elsewhere=(OtherSetting("PPO alone, reacher", _REACHER), OtherSetting("PPO alone, double-pendulum", _PENDULUM)),
)
CLAIMS: tuple[Claim, ...] = (
    *sorted((*ppo_claims.PPO_CLAIMS, *sac.SAC_CLAIMS, *sac_claims.ROBOT_CLAIMS), key=lambda each: int(each.number)),
    _HEADLINE,
)
"""By number, and then the headline over all tasks."""
