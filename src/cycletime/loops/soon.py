"""How programs that draw random numbers are compiled: XLA would take far longer to optimise them than they take."""

from __future__ import annotations

from functools import cache

import jax

_FEW: dict[str, int | bool] = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}


@cache
def soon_options(backend: str) -> dict[str, int | bool]:
    """What to ask of XLA for a kind of device: on CPUs few optimisations, for the same bits in the same time.

    What is drawn stays the same to the bit; what follows from it by sums and products need not. Versions of XLA whose
    options are others, which come and go without notice, are asked for nothing.
    """
    return _FEW if backend == "cpu" and _knows(_FEW) else {}


def _knows(options: dict[str, int | bool]) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
