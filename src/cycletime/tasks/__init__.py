"""Worlds with a settable cycle time: the paper's tasks, any Gymnasium environment, and the delays that robots have.

Importing this registers the Gymnasium ids below.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from cycletime.errors import InputError
from cycletime.tasks.double_pendulum import DoublePendulum
from cycletime.tasks.reacher import Reacher

__all__ = ["DoublePendulum", "Reacher"]
_NEED_GYMNASIUM = [
    "ActionDelay",
    "CycleTime",
    "ObservationDelay",
    "RealTime",
    "VectorCycleTime",
    "make_vec_with_cycle_time",
]

# The closed-form tasks also run on GPU machines that have JAX and NumPy only: without Gymnasium they are all there is.
if find_spec("gymnasium"):
    import gymnasium

    from cycletime.tasks.cycle_time import CycleTime as CycleTime
    from cycletime.tasks.delays import ActionDelay as ActionDelay
    from cycletime.tasks.delays import ObservationDelay as ObservationDelay
    from cycletime.tasks.delays_real_time import RealTime as RealTime
    from cycletime.tasks.vector_cycle_time import VectorCycleTime as VectorCycleTime
    from cycletime.tasks.vector_cycle_time import make_vec_with_cycle_time as make_vec_with_cycle_time

    __all__ += _NEED_GYMNASIUM

    for _name, _maker in (("Reacher", "make_reacher"), ("DoublePendulum", "make_double_pendulum")):
        gymnasium.register(
            f"cycletime/{_name}-v0",
            entry_point=f"cycletime.tasks.closed_form_env:{_name}Env",
            vector_entry_point=f"cycletime.tasks.closed_form_env:{_name}VectorEnv",
        )
        gymnasium.register(f"cycletime/Bullet{_name}-v0", entry_point=f"cycletime.tasks.bullet:{_maker}")
elif not TYPE_CHECKING:

    def __getattr__(name: str) -> None:
        """Say why a wrapper is missing."""
        if name in _NEED_GYMNASIUM:
            raise InputError(f"cycletime.tasks.{name} needs Gymnasium, which is not installed: pip install gymnasium.")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
