"""Reinforcement learning at any action-cycle time. What is heavy is loaded when it is asked for."""

from typing import TYPE_CHECKING

from cycletime.extras import lazy_exports

__version__ = "0.3.0"

if TYPE_CHECKING:
    from cycletime import rules as rules
    from cycletime.duration import Duration as Duration
    from cycletime.duration import cycle_steps as cycle_steps
    from cycletime.errors import InputError as InputError
    from cycletime.rules import PPO as PPO
    from cycletime.rules import SAC as SAC
    from cycletime.studies.study import Study as Study
    from cycletime.studies.study import StudyResults as StudyResults
    from cycletime.tasks import CycleTime as CycleTime
    from cycletime.training.trainer import train as train
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "PPO": "cycletime.rules",
            "SAC": "cycletime.rules",
            "CycleTime": "cycletime.tasks",
            "Duration": "cycletime.duration",
            "InputError": "cycletime.errors",
            "Study": "cycletime.studies.study",
            "StudyResults": "cycletime.studies.study",
            "cycle_steps": "cycletime.duration",
            "rules": "cycletime.rules",
            "train": "cycletime.training.trainer",
        },
        needs={"CycleTime": "gymnasium", "Study": "jax", "StudyResults": "jax", "train": "jax"},
    )
