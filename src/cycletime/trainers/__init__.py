"""Other libraries' trainers in studies, tuning and advice: Stable-Baselines3, brax, one's own function or command."""

from __future__ import annotations

from cycletime.extras import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {"TrainerRun": "cycletime.trainers.trainer_run"})
