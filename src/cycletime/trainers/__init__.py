"""Other libraries' trainers in studies, tuning and advice: Stable-Baselines3, brax, one's own function or command.

A trainer is a process of its own, in a folder of its own, that trains at a cycle time with given values and tells how
it goes: points of simulated seconds, agent steps and return. `curves` reads them from what it writes; `engine` makes of
them a run like any other.
"""

from __future__ import annotations

from cycletime.extras import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {"TrainerRun": "cycletime.trainers.trainer_run"})
