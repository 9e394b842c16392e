"""The first GPU that CUDA finds: whether it can be used, and what of a kernel it has room for. Nothing is compiled."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from cycletime.engines.cuda.forms import FORMS, Form, form_within
from cycletime.errors import InputError, NoGpuError

OLDEST = (8, 0)
"""The compute capability that the kernels' instructions need."""
_NO_DEVICE, _OLD_DRIVER = 100, 35
"""Error numbers of CUDA's runtime."""


def checked_cupy() -> Any:  # noqa: ANN401 - a module without types
    """CuPy, where it is installed and finds a GPU that can be used.

    Raises:
        NoGpuError: if not.
    """
    if find_spec("cupy") is None:
        raise NoGpuError("The engine cuda needs CuPy, which is not installed: pip install 'cycletime[cuda]'.")
    try:
        import cupy
    except ImportError as error:
        raise NoGpuError(f"The engine cuda needs CuPy, which cannot be imported: {first_line(error)}.") from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CUDA's own kind, of which there are several
        raise NoGpuError(_runtime_sentence(cupy, error)) from error
    if not count:
        raise NoGpuError("The engine cuda needs an NVIDIA GPU, and CUDA finds none here.")
    card = cupy.cuda.runtime.getDeviceProperties(0)
    check_capability(card["name"].decode(), (int(card["major"]), int(card["minor"])))
    return cupy


def check_capability(name: str, capability: tuple[int, int]) -> None:
    """Refuse a card without the kernel's instructions."""
    if capability < OLDEST:
        has, needed = (f"{major}.{minor}" for major, minor in (capability, OLDEST))
        raise NoGpuError(f"{name} has compute capability {has}: the engine cuda needs at least {needed}.")


def form_here(kernel: str, most_bytes: int | None = None) -> Form:
    """The fastest form of a kernel that the card here has room for; with a limit, one that takes no more.

    Raises:
        NoGpuError: if there is no GPU that can run it.
        InputError: if the limit is beyond what the card has.
    """
    card = checked_cupy().cuda.runtime.getDeviceProperties(0)
    name, there = str(card["name"].decode()), int(card["sharedMemPerBlockOptin"])
    given = there if most_bytes is None else most_bytes
    if given > there:
        raise InputError(
            f"The shared memory of a thread block is {_kb(given)}: {name} has {_kb(there)}, so give no more."
        )
    if form := form_within(kernel, given):
        return form
    least = min(form.shared_bytes for form in FORMS[kernel])
    raise NoGpuError(
        f"{name} gives a thread block {_kb(given)} of shared memory: the engine cuda needs {_kb(least)}, which "
        "cards of compute capability 8.0 and more have."
    )


def _kb(count: int) -> str:
    """Shared memory in the units of NVIDIA's tables."""
    return f"{count / 1024:.4g} KB" if count >= 1024 else f"{count} bytes"


def _runtime_sentence(cupy: Any, error: Exception) -> str:  # noqa: ANN401 - a module without types
    status = getattr(error, "status", None)
    if status == _OLD_DRIVER and cupy.cuda.runtime.driverGetVersion():  # 0 where there is none at all
        return "The NVIDIA driver here is too old for CuPy's CUDA: update it, or pip install cupy-cuda12x instead."
    if status in (_NO_DEVICE, _OLD_DRIVER):
        return "The engine cuda needs an NVIDIA GPU, and CUDA finds none here."
    return f"The engine cuda needs an NVIDIA GPU, and CUDA does not answer: {first_line(error)}."


def first_line(error: Exception) -> str:
    """What an error of CUDA's says, for a sentence."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
