"""How programs that draw random numbers are compiled: XLA would take far longer to optimise them than they take."""

from __future__ import annotations

from typing import Any


def soon_options(backend: str) -> dict[str, Any] | None:
    """What to ask of XLA for a kind of device: on CPUs few optimisations, for the same bits in the same time.

    What is drawn stays the same to the bit; what follows from it by sums and products need not.
    """
    few = {
        "xla_backend_optimization_level": 1,
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_parallel_codegen_split_count": 1,
    }
    return few if backend == "cpu" else None
