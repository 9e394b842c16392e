"""The library of PPO's kernel: whether it is here, what it was built from, and its place among what JAX can call."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

from cycletime.errors import NoNativeError

TARGET = "cycletime_ppo_learn"
"""What programs of JAX call."""
FILE = Path(__file__).with_name("ppo.so")
_TO_HAVE_IT = "where JAX, hatchling and g++ are, 'pip install --no-build-isolation --no-deps .' in a checkout builds it"


@dataclass(frozen=True)
class NativeLibrary:
    """What decides the last bits of what the kernel computes."""

    build: str
    """The digest of its sources, and the compiler."""
    instructions: str
    """The instruction set that it computes with, the fastest here."""

    def __str__(self) -> str:
        """As files have it."""
        return f"{self.build} for {self.instructions}"


@cache
def native_library() -> NativeLibrary:
    """The library, of which JAX knows from then on.

    Raises:
        NoNativeError: if there is none that can be used.
    """
    try:
        library = ctypes.CDLL(str(FILE))
    except OSError as error:
        why = f"cannot be loaded ({error})" if FILE.exists() else "is not part of this installation"
        raise NoNativeError(f"The engine native needs PPO's kernel as a library, which {why}: {_TO_HAVE_IT}.") from None
    try:
        handler = jax.ffi.pycapsule(library[TARGET])  # type: ignore[no-untyped-call]
        jax.ffi.register_ffi_target(TARGET, handler, platform="cpu")
    except Exception as error:  # XLA's own kind, where it was built for another version of the interface
        why = str(error).splitlines()[0]
        raise NoNativeError(f"JAX {jax.__version__} cannot call PPO's kernel ({why}): {_TO_HAVE_IT}.") from error
    return NativeLibrary(_told(library.cycletime_ppo_build), _told(library.cycletime_ppo_instructions))


def _told(function: Any) -> str:  # noqa: ANN401 - a function of C
    function.restype = ctypes.c_char_p
    text: bytes = function()
    return text.decode()
