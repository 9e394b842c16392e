"""Reinforcement learning at any action-cycle time. What is heavy is loaded when it is asked for."""

from typing import TYPE_CHECKING

from cycletime.extras import lazily

__version__ = "0.2.0"

if TYPE_CHECKING:
    from cycletime import rules as rules
    from cycletime.duration import Duration as Duration
    from cycletime.duration import cycle_steps as cycle_steps
    from cycletime.engines.train import train as train
    from cycletime.errors import InputError as InputError
    from cycletime.rules import PPO as PPO
    from cycletime.rules import SAC as SAC
    from cycletime.studies.results import StudyResults as StudyResults
    from cycletime.studies.spec.study import Study as Study
    from cycletime.tasks import CycleTime as CycleTime
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "PPO": "cycletime.rules",
            "SAC": "cycletime.rules",
            "CycleTime": "cycletime.tasks",
            "Duration": "cycletime.duration",
            "InputError": "cycletime.errors",
            "Study": "cycletime.studies.spec.study",
            "StudyResults": "cycletime.studies.results",
            "cycle_steps": "cycletime.duration",
            "rules": "cycletime.rules",
            "train": "cycletime.engines.train",
        },
        needs={"CycleTime": "gymnasium", "Study": "jax", "StudyResults": "jax", "train": "jax"},
    )
