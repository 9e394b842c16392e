"""JAX on this machine: the device it computes on, and compiled programs kept on disk, so that each is compiled once."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from cycletime.errors import InputError, NoGpuError

CACHE_VARIABLE = "CYCLETIME_CACHE"


def keep_compiled_programs() -> None:
    """Let JAX keep its programs in $CYCLETIME_CACHE, or in the user's cache folder; a folder that is set stays."""
    import jax

    if jax.config.jax_compilation_cache_dir:  # type: ignore[attr-defined]
        return
    folder = _cache_folder()
    if folder is not None:
        jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)  # type: ignore[no-untyped-call]


def _cache_folder() -> Path | None:
    """The folder to use; None where the user wants none (an empty variable) or it cannot be made."""
    wanted = os.environ.get(CACHE_VARIABLE)
    if wanted == "":
        return None
    cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(wanted) if wanted else Path(cache_home) / "cycletime" / "programs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None  # a run without a cache is better than none
    return folder if os.access(folder, os.W_OK) else None


def kept_programs() -> str:
    """A name for the programs that are kept; another each time where none are.

    On GPUs XLA tries several kernels when it compiles and takes the fastest, so that a program that is compiled anew
    can give other last bits. A run that goes on with the programs that it began with does not.
    """
    import jax

    keep_compiled_programs()
    folder = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if not folder:
        return uuid4().hex
    file = Path(folder) / "cycletime-name"
    with suppress(OSError):
        mine = file.with_name(f".{uuid4().hex}")
        mine.write_text(uuid4().hex)
        with suppress(FileExistsError):
            os.link(mine, file)  # the first process that comes decides
        mine.unlink()
    try:
        return file.read_text()
    except OSError:
        return uuid4().hex


def prepare_jax(device: str) -> None:
    """Choose JAX's device, and let calls on a CPU return when they are done, which takes half the time."""
    import jax

    jax.config.update("jax_platforms", "cpu" if device == "cpu" else "cuda,cpu")  # type: ignore[no-untyped-call]
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]


def use_device(device: str) -> None:
    """Choose JAX's device, which must be there."""
    prepare_jax(device)
    check_device(device)


def check_device(device: str) -> None:
    """Refuse a device that JAX does not compute on here."""
    import jax

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
