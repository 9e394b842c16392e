"""The GPUs of this machine, so that each worker has one of its own."""

from __future__ import annotations

import os
import subprocess

VARIABLE = "CUDA_VISIBLE_DEVICES"


def gpus_here() -> tuple[str, ...]:
    """What CUDA_VISIBLE_DEVICES calls the GPUs that may be used; none where nothing tells."""
    if VARIABLE in os.environ:
        given = [name.strip() for name in os.environ[VARIABLE].split(",")]
        return tuple(name for name in given if name not in ("", "-1"))
    try:
        command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(told.stdout.split())
