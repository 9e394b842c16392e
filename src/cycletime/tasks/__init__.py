"""Worlds with a settable cycle time: the paper's tasks, any Gymnasium environment, and the delays that robots have.

Importing this registers the Gymnasium ids below, and loads neither JAX nor a simulator. The wrappers need Gymnasium
and NumPy alone; the closed-form tasks need JAX, and also run on GPU machines without Gymnasium.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from cycletime.extras import lazily

if TYPE_CHECKING:
    from cycletime.tasks.closed_form_env import DoublePendulumEnv as DoublePendulumEnv
    from cycletime.tasks.closed_form_env import DoublePendulumVectorEnv as DoublePendulumVectorEnv
    from cycletime.tasks.closed_form_env import ReacherEnv as ReacherEnv
    from cycletime.tasks.closed_form_env import ReacherVectorEnv as ReacherVectorEnv
    from cycletime.tasks.cycle_time import CycleTime as CycleTime
    from cycletime.tasks.delays import ActionDelay as ActionDelay
    from cycletime.tasks.delays import ObservationDelay as ObservationDelay
    from cycletime.tasks.delays_real_time import RealTime as RealTime
    from cycletime.tasks.double_pendulum import DoublePendulum as DoublePendulum
    from cycletime.tasks.reacher import Reacher as Reacher
    from cycletime.tasks.vector_cycle_time import VectorCycleTime as VectorCycleTime
    from cycletime.tasks.vector_cycle_time import make_vec_with_cycle_time as make_vec_with_cycle_time
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "ActionDelay": "cycletime.tasks.delays",
            "CycleTime": "cycletime.tasks.cycle_time",
            "DoublePendulum": "cycletime.tasks.double_pendulum",
            "DoublePendulumEnv": "cycletime.tasks.closed_form_env",
            "DoublePendulumVectorEnv": "cycletime.tasks.closed_form_env",
            "ObservationDelay": "cycletime.tasks.delays",
            "Reacher": "cycletime.tasks.reacher",
            "ReacherEnv": "cycletime.tasks.closed_form_env",
            "ReacherVectorEnv": "cycletime.tasks.closed_form_env",
            "RealTime": "cycletime.tasks.delays_real_time",
            "VectorCycleTime": "cycletime.tasks.vector_cycle_time",
            "make_vec_with_cycle_time": "cycletime.tasks.vector_cycle_time",
        },
        needs={f"{task}{kind}": "jax" for task in ("DoublePendulum", "Reacher") for kind in ("", "Env", "VectorEnv")},
    )

if find_spec("gymnasium"):
    import gymnasium

    for _name, _maker in (("Reacher", "make_reacher"), ("DoublePendulum", "make_double_pendulum")):
        gymnasium.register(
            f"cycletime/{_name}-v0",
            entry_point=f"{__name__}:{_name}Env",
            vector_entry_point=f"{__name__}:{_name}VectorEnv",
        )
        gymnasium.register(f"cycletime/Bullet{_name}-v0", entry_point=f"{__name__}.bullet:{_maker}")
