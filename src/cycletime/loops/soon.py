"""How programs that draw random numbers are compiled: XLA would take far longer to optimise them than they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import jax

Options: TypeAlias = tuple[tuple[str, int | bool], ...]
"""What is asked of XLA, to be made a dict of."""
_FEW: Options = (
    ("xla_backend_optimization_level", 1),
    ("xla_cpu_use_fusion_emitters", False),
    ("xla_cpu_parallel_codegen_split_count", 1),
)
_refusing: set[Options] = set()
"""Options that this version of XLA does not know all of."""
_Done = TypeVar("_Done")


def soon(backend: str, run: Callable[[Options], _Done]) -> _Done:
    """Compile, and maybe run, by what to ask of XLA for a kind of device: on CPUs few optimisations.

    What is drawn stays the same to the bit; what follows from it by sums and products need not. Versions of XLA whose
    options are others, which come and go without notice, are asked for nothing, once they have refused these.
    """
    options = _FEW if backend == "cpu" and _FEW not in _refusing else ()
    try:
        return run(options)
    except jax.errors.JaxRuntimeError:
        if not options or _known(options):
            raise
    _refusing.add(options)
    return run(())


def _known(options: Options) -> bool:
    """Whether XLA compiles anything with them; only asked after an error, since asking takes a hundredth of a start."""
    try:
        jax.jit(lambda: 0, compiler_options=dict(options)).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
