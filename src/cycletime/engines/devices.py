"""Where JAX computes: to be said before it starts, and checked before a run begins."""

from __future__ import annotations

import jax

from cycletime.errors import InputError, NoGpuError


def prepare_jax(device: str) -> None:
    """Choose JAX's device, and let calls on a CPU return when they are done, which takes half the time."""
    jax.config.update("jax_platforms", "cpu" if device == "cpu" else "cuda,cpu")  # type: ignore[no-untyped-call]
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]


def use_device(device: str) -> None:
    """Choose JAX's device, which must be there.

    Raises:
        NoGpuError: if it is a GPU, and there is none.
    """
    prepare_jax(device)
    check_device(device)


def check_device(device: str) -> None:
    """Refuse a device that JAX does not compute on here.

    Raises:
        NoGpuError: if it is a GPU, and there is none.
        InputError: if JAX computes elsewhere.
    """
    try:
        here = jax.default_backend()
    except (RuntimeError, AssertionError):
        here = "nothing"
    if device == "gpu" != here:
        raise NoGpuError(
            "The run is for a GPU, and JAX finds none here: pip install 'jax[cuda13]', or compute it elsewhere."
        )
    if here != device:
        raise InputError(f"The run is for {device!r}, but JAX computes on {here!r} here: set JAX_PLATFORMS.")
