"""The variables that workers are started with."""

from __future__ import annotations

import os

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""The environment of a worker that has one core."""
_PREALLOCATE, _CACHE = "XLA_PYTHON_CLIENT_PREALLOCATE", "CYCLETIME_CACHE"


def environment_for(device: str) -> dict[str, str]:
    """The variables of a worker, wherever it is, by where its runs are computed."""
    cache = {_CACHE: os.environ[_CACHE]} if _CACHE in os.environ else {}
    if device == "cpu":
        return {**ONE_THREAD, **cache}
    # Memory as it is needed, since JAX would take most of a GPU at once and leave none to another command's worker.
    return {_PREALLOCATE: os.environ.get(_PREALLOCATE, "false"), **cache}
