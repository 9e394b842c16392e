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
    from cycletime.tasks.closed_form_env import ClosedFormEnv as ClosedFormEnv
    from cycletime.tasks.closed_form_env import ClosedFormVectorEnv as ClosedFormVectorEnv
    from cycletime.tasks.cycle_time import CycleTime as CycleTime
    from cycletime.tasks.delays import ActionDelay as ActionDelay
    from cycletime.tasks.delays import ObservationDelay as ObservationDelay
    from cycletime.tasks.delays import RealTime as RealTime
    from cycletime.tasks.double_pendulum import DoublePendulum as DoublePendulum
    from cycletime.tasks.mountain_car import MountainCar as MountainCar
    from cycletime.tasks.pendulum import Pendulum as Pendulum
    from cycletime.tasks.reacher import Reacher as Reacher
    from cycletime.tasks.ur_reacher import URReacher as URReacher
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            **{task: f"cycletime.tasks.{name.replace('-', '_')}" for name, task in CLOSED_FORMS.items()},
            "ActionDelay": "cycletime.tasks.delays",
            "ClosedFormEnv": "cycletime.tasks.closed_form_env",
            "ClosedFormVectorEnv": "cycletime.tasks.closed_form_env",
            "CycleTime": "cycletime.tasks.cycle_time",
            "ObservationDelay": "cycletime.tasks.delays",
            "RealTime": "cycletime.tasks.delays",
        },
        needs=dict.fromkeys([*CLOSED_FORMS.values(), "ClosedFormEnv", "ClosedFormVectorEnv"], "jax"),
    )

if find_spec("gymnasium"):
    import gymnasium

    for _file, _name in CLOSED_FORMS.items():
        gymnasium.register(
            f"cycletime/{_name}-v0",
            entry_point=f"{__name__}:ClosedFormEnv",
            vector_entry_point=f"{__name__}:ClosedFormVectorEnv",
            kwargs={"task": f"{__name__}.{_file.replace('-', '_')}:{_name}"},
        )
    for _name, _maker in (("Reacher", "make_reacher"), ("DoublePendulum", "make_double_pendulum")):
        gymnasium.register(f"cycletime/Bullet{_name}-v0", entry_point=f"{__name__}.bullet:{_maker}")
    gymnasium.register(
        "cycletime/URReacher2-v0",
        entry_point="cycletime.robots.ur.reacher_env:make_ur_reacher",
        nondeterministic=True,  # an arm moves as it does
    )
