"""All that is changed of the released brax and Playground, so that they run with today's JAX and few packages.

1. `jax.device_put_replicated`, which brax 0.14.2 calls and JAX 0.10 removed: each leaf is stacked once for each device.
2. Stand-ins for modules that are imported and never used by a training without checkpoints or pictures: `orbax` with
   `flax.training.orbax_utils`, `mediapy` and `PIL`. Where the real one is installed, it is used.
3. brax's SAC takes no observations that are dictionaries: `environments.with_state_alone` gives it the policy's part.
4. `warp`, which Playground asks for, is left out: MJX's JAX implementation is used (`impl = "jax"`).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

STAND_INS = ("mediapy", "PIL", "PIL.Image", "orbax", "orbax.checkpoint", "flax.training.orbax_utils")


class Anything:
    """Accepts every call and attribute; nothing of it is ever used."""

    def __init__(self, *_: object, **__: object) -> None:
        """Take whatever is given."""

    def __call__(self, *_: object, **__: object) -> Anything:
        """Take whatever is given."""
        return self

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Any name but Python's own."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class StandIn(ModuleType):
    """A module in which every name is there."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Any name but Python's own."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


def install_stand_ins() -> tuple[str, ...]:
    """Put stand-ins in place of the modules that are not installed; which ones."""
    absent = {root for root in ("mediapy", "PIL", "orbax") if importlib.util.find_spec(root) is None}
    missing = [name for name in STAND_INS if absent & set(name.replace("_utils", "").split("."))]
    for name in missing:
        sys.modules.setdefault(name, StandIn(name))
        parent, _, child = name.rpartition(".")
        if parent in sys.modules and isinstance(sys.modules[parent], StandIn):
            setattr(sys.modules[parent], child, sys.modules[name])
    return tuple(missing)


def install_device_put_replicated() -> bool:
    """Give JAX back the function that brax calls; whether it was missing."""
    import jax
    import jax.numpy as jnp

    if hasattr(jax, "device_put_replicated"):
        return False

    def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:  # noqa: ANN401
        mesh = jax.sharding.Mesh(devices, ("i",))
        along = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))  # type: ignore[no-untyped-call]
        return jax.tree.map(lambda leaf: jax.device_put(jnp.stack([leaf] * len(devices)), along), x)

    jax.device_put_replicated = device_put_replicated
    return True
