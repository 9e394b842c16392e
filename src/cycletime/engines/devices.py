"""Where JAX computes, to be said before it starts."""

from __future__ import annotations


def prepare_jax(device: str) -> None:
    """Choose JAX's device, and let calls on a CPU return when they are done, which takes half the time."""
    import jax

    jax.config.update("jax_platforms", "cpu" if device == "cpu" else "cuda,cpu")  # type: ignore[no-untyped-call]
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
