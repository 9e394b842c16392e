"""Worlds with a settable cycle time: tasks in closed form, any Gymnasium environment, and the delays that robots have.

Importing this registers the Gymnasium ids below, and loads neither JAX nor a simulator. The wrappers need Gymnasium
and NumPy alone; the closed-form tasks need JAX, and also run on GPU machines without Gymnasium.
"""

from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING

from cycletime.extras import lazy_exports

CLOSED_FORMS = MappingProxyType(
    {
        "reacher": "Reacher",
        "double-pendulum": "DoublePendulum",
        "pendulum": "Pendulum",
        "cart-pole": "CartPole",
        "mountain-car": "MountainCar",
        "acrobot": "Acrobot",
        "ur-reacher": "URReacher",
    }
)
"""The tasks in closed form: each name is that of its file, with '_', and each class that of its Gymnasium id."""

if TYPE_CHECKING:
    from cycletime.tasks.acrobot import Acrobot as Acrobot
    from cycletime.tasks.cart_pole import CartPole as CartPole
    from cycletime.tasks.closed_form_env import AcrobotEnv as AcrobotEnv
    from cycletime.tasks.closed_form_env import AcrobotVectorEnv as AcrobotVectorEnv
    from cycletime.tasks.closed_form_env import CartPoleEnv as CartPoleEnv
    from cycletime.tasks.closed_form_env import CartPoleVectorEnv as CartPoleVectorEnv
    from cycletime.tasks.closed_form_env import DoublePendulumEnv as DoublePendulumEnv
    from cycletime.tasks.closed_form_env import DoublePendulumVectorEnv as DoublePendulumVectorEnv
    from cycletime.tasks.closed_form_env import MountainCarEnv as MountainCarEnv
    from cycletime.tasks.closed_form_env import MountainCarVectorEnv as MountainCarVectorEnv
    from cycletime.tasks.closed_form_env import PendulumEnv as PendulumEnv
    from cycletime.tasks.closed_form_env import PendulumVectorEnv as PendulumVectorEnv
    from cycletime.tasks.closed_form_env import ReacherEnv as ReacherEnv
    from cycletime.tasks.closed_form_env import ReacherVectorEnv as ReacherVectorEnv
    from cycletime.tasks.closed_form_env import URReacherEnv as URReacherEnv
    from cycletime.tasks.closed_form_env import URReacherVectorEnv as URReacherVectorEnv
    from cycletime.tasks.cycle_time import CycleTime as CycleTime
    from cycletime.tasks.delays import ActionDelay as ActionDelay
    from cycletime.tasks.delays import ObservationDelay as ObservationDelay
    from cycletime.tasks.delays import RealTime as RealTime
    from cycletime.tasks.double_pendulum import DoublePendulum as DoublePendulum
    from cycletime.tasks.mountain_car import MountainCar as MountainCar
    from cycletime.tasks.pendulum import Pendulum as Pendulum
    from cycletime.tasks.reacher import Reacher as Reacher
    from cycletime.tasks.ur_reacher import URReacher as URReacher
    from cycletime.tasks.vector_cycle_time import VectorCycleTime as VectorCycleTime
    from cycletime.tasks.vector_cycle_time import make_vec_with_cycle_time as make_vec_with_cycle_time
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            **{task: f"cycletime.tasks.{name.replace('-', '_')}" for name, task in CLOSED_FORMS.items()},
            **{
                f"{task}{kind}": "cycletime.tasks.closed_form_env"
                for task in CLOSED_FORMS.values()
                for kind in ("Env", "VectorEnv")
            },
            "ActionDelay": "cycletime.tasks.delays",
            "CycleTime": "cycletime.tasks.cycle_time",
            "ObservationDelay": "cycletime.tasks.delays",
            "RealTime": "cycletime.tasks.delays",
            "VectorCycleTime": "cycletime.tasks.vector_cycle_time",
            "make_vec_with_cycle_time": "cycletime.tasks.vector_cycle_time",
        },
        needs={f"{task}{kind}": "jax" for task in CLOSED_FORMS.values() for kind in ("", "Env", "VectorEnv")},
    )

if find_spec("gymnasium"):
    import gymnasium

    for _name in CLOSED_FORMS.values():
        gymnasium.register(
            f"cycletime/{_name}-v0",
            entry_point=f"{__name__}:{_name}Env",
            vector_entry_point=f"{__name__}:{_name}VectorEnv",
        )
    for _name, _maker in (("Reacher", "make_reacher"), ("DoublePendulum", "make_double_pendulum")):
        gymnasium.register(f"cycletime/Bullet{_name}-v0", entry_point=f"{__name__}.bullet:{_maker}")
    gymnasium.register(
        "cycletime/URReacher2-v0",
        entry_point="cycletime.robots.ur.reacher_env:make_ur_reacher",
        nondeterministic=True,  # an arm moves as it does
    )
