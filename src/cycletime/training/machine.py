"""This machine: JAX's device, compiled programs kept on disk, and what of the machine can change a run's last bits."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from cycletime import __version__
from cycletime.errors import InputError, MachineError, NoGpuError, RunError
from cycletime.training.atomic_files import write_first

CACHE_VARIABLE = "CYCLETIME_CACHE"
LEAST_ADDRESS_SPACE = 2_000_000_000


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
    with suppress(RunError):
        write_first(file, lambda unfinished: unfinished.write_text(uuid4().hex))
    try:
        return file.read_text()
    except OSError:
        return uuid4().hex


def prepare_jax(device: str) -> None:
    """Choose JAX's device, and let calls on a CPU return when they are done, which takes half the time."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        needed = f"JAX aborts with less than {LEAST_ADDRESS_SPACE:,}, so give it more"
        raise MachineError(f"This process may have {limit:,} bytes of addresses (ulimit -v): {needed}.")
    import jax

    jax.config.update("jax_platforms", "cpu" if device == "cpu" else "cuda,cpu")  # type: ignore[no-untyped-call]
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]


def use_device(device: str) -> None:
    prepare_jax(device)
    check_device(device)


def check_device(device: str) -> None:
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


_CHANGES_BITS = {
    "jax": "JAX",
    "jaxlib": "jaxlib",
    "device": "device",
    "processor": "processor",
    "cores": "number of cores",  # over which XLA splits larger sums
    "xla_flags": "XLA_FLAGS",
    "precision": "precision of matrix products",
    "programs": "compiled programs",
    "NVRTC": "NVRTC",
    "kernel": "kernel",
}
_SIMULATORS = ("numpy", "gymnasium", "mujoco", "pybullet")


@cache
def this_machine() -> Mapping[str, str]:
    import jax

    device = jax.devices()[0]
    return {
        "cycletime": code_version(),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "device": device.device_kind,
        "processor": processor(),
        "cores": str(cores()),
        "xla_flags": os.environ.get("XLA_FLAGS", "none"),
        "precision": jax.config.jax_default_matmul_precision or "default",  # type: ignore[attr-defined]
        "system": platform.system(),
        "python": platform.python_version(),
        **({"programs": kept_programs()} if device.platform == "gpu" else {}),
        **{package: version(package) for package in _SIMULATORS if find_spec(package)},
    }


def machine_differences(
    then: Mapping[str, str], now: Mapping[str, str], simulators: Iterable[str] = (), only: Iterable[str] | None = None
) -> tuple[str, ...]:
    """In words, what can make last bits differ; `only` are the keys that matter, where less does than for JAX."""
    matters = {**_CHANGES_BITS, **{package: package for package in simulators}}
    matters = matters if only is None else {key: matters[key] for key in only}
    return tuple(
        f"{label} {then.get(key, 'unknown')} then, {now.get(key, 'unknown')} now"
        for key, label in matters.items()
        if then.get(key) != now.get(key)
    )


def code_version() -> str:
    """The package's version, with the commit where it runs from a checkout; of a packed study, that of its pack."""
    if packed := os.environ.get("CYCLETIME_CODE"):
        return packed
    commit = _commit()
    return f"{__version__}+{commit}" if commit else __version__


def _commit() -> str:
    """The checkout's commit, with -dirty where files were changed since; nothing where there is no checkout."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return ""
    try:
        command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
        described = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return described.stdout.strip()


def cores() -> int:
    """Those that this process may use, as many as XLA has threads."""
    affinity = getattr(os, "sched_getaffinity", None)  # where the system has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def system_load() -> float:
    """How many processes were computing in the last minute; 0 where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def processor() -> str:
    """Its name; programs are compiled for the very processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
