"""The hyper-parameters of TD3 and DDPG as a function of the cycle time: SAC's rules, as far as they apply.

Their policies are deterministic: there is no entropy, and all exploration is noise that is added to the action. TD3's
policy_delay counts updates and its target_policy_noise smooths over actions, so that neither depends on the cycle time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cycletime.duration import DurationField
from cycletime.rules.off_policy import OffPolicy


@dataclass(frozen=True, kw_only=True)
class TD3(OffPolicy):
    """TD3's discount, and what else of it is counted in agent steps; None means 'not stated, leave it alone'."""

    dt: DurationField = DurationField()
    """The action-cycle time that these values were tuned at, or carried to."""

    algorithm: ClassVar = "td3"
    rules_of: ClassVar = "SAC"


@dataclass(frozen=True, kw_only=True)
class DDPG(OffPolicy):
    """DDPG's discount, and what else of it is counted in agent steps; None means 'not stated, leave it alone'."""

    dt: DurationField = DurationField()
    """The action-cycle time that these values were tuned at, or carried to."""

    algorithm: ClassVar = "ddpg"
    rules_of: ClassVar = "SAC"
