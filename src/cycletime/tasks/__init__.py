"""Worlds with a settable cycle time: the paper's tasks, any Gymnasium environment, and the delays that robots have.

Importing this registers the Gymnasium ids below. The closed-form tasks themselves need JAX alone, so that they also run
where Gymnasium is not installed.
"""

from importlib.util import find_spec

from cycletime.tasks.double_pendulum import DoublePendulum
from cycletime.tasks.reacher import Reacher

__all__ = ["DoublePendulum", "Reacher"]

if find_spec("gymnasium"):
    import gymnasium

    from cycletime.tasks.cycle_time import CycleTime
    from cycletime.tasks.delays import ActionDelay, ObservationDelay
    from cycletime.tasks.delays_real_time import RealTime
    from cycletime.tasks.vector_cycle_time import VectorCycleTime, make_vec_with_cycle_time

    __all__ += [
        "ActionDelay",
        "CycleTime",
        "ObservationDelay",
        "RealTime",
        "VectorCycleTime",
        "make_vec_with_cycle_time",
    ]

    for _name, _maker in (("Reacher", "make_reacher"), ("DoublePendulum", "make_double_pendulum")):
        gymnasium.register(
            f"cycletime/{_name}-v0",
            entry_point=f"cycletime.tasks.closed_form_env:{_name}Env",
            vector_entry_point=f"cycletime.tasks.closed_form_env:{_name}VectorEnv",
        )
        gymnasium.register(f"cycletime/Bullet{_name}-v0", entry_point=f"cycletime.tasks.bullet:{_maker}")
