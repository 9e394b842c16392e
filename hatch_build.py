"""Builds PPO's native kernel into the package where there is GCC and JAX's headers; without them, the package is pure.

It needs both in the environment that builds: `pip install --no-build-isolation .` in one that has JAX and hatchling.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sysconfig
import tempfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/cycletime/agents/native")
LIBRARY = "ppo.so"
SOURCES = ("ppo_handler.cpp", "ppo_kernel.cpp", "ppo_kernel.hpp", "ppo_products.hpp")
# No option that lets a compiler reorder sums: the order is part of what a run's numbers follow from.
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast")
LINKED = ("-shared", "-static-libstdc++", "-static-libgcc", "-s", "-Wl,--gc-sections,--exclude-libs,ALL")
"""With the part of the C++ runtime that it needs, so that no newer one than a machine has is asked for."""
X86 = {"baseline": (), "avx2": ("-march=x86-64-v3",), "avx512": ("-march=x86-64-v4",)}
"""By the name of an instruction set, the options that it needs."""


class NativeKernel(BuildHookInterface[Any]):
    """Leaves the library beside its sources, where an editable install finds it and a wheel takes it from."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it before files are collected."""
        folder = Path(self.root) / FOLDER
        (folder / LIBRARY).unlink(missing_ok=True)  # an old one would be taken for new
        try:
            build(folder)
        except BuildError as error:
            self.app.display_warning(f"The engine native is left out: {error}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


class BuildError(Exception):
    """Why there is no library, in a sentence."""


def build(folder: Path) -> None:
    """Compile the sources in a folder to a library beside them.

    Raises:
        BuildError: if that cannot be done here.
    """
    compiler, headers = shutil.which("g++"), jax_headers()
    if compiler is None:
        raise BuildError("there is no g++.")
    if headers is None:
        raise BuildError("JAX's headers are not in the environment that builds.")
    with tempfile.TemporaryDirectory() as made:
        library = Path(made) / LIBRARY
        for command in commands(compiler, headers, folder, library):
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                raise BuildError(f"g++ says {(ran.stderr.strip() or 'nothing').splitlines()[0]}")
        shutil.move(library, folder / LIBRARY)


def commands(compiler: str, headers: Path, folder: Path, library: Path) -> list[list[str]]:
    """The kernel for each instruction set, what calls the one that fits, and the library of all."""
    sets = X86 if platform.machine() == "x86_64" else {"baseline": ()}
    told = f'-DCYCLETIME_SOURCES="{digest(folder)}"'
    parts = {"handler": ["-isystem", str(headers), told, str(folder / "ppo_handler.cpp")]}
    for name, options in sets.items():
        parts[name] = [*options, f"-DLEARN=learn_{name}", str(folder / "ppo_kernel.cpp")]
    made = {name: str(library.with_name(f"{name}.o")) for name in parts}
    compiled = [[compiler, *FLAGS, "-c", *options, "-o", made[name]] for name, options in parts.items()]
    return [*compiled, [compiler, *LINKED, *made.values(), "-o", str(library)]]


def digest(folder: Path) -> str:
    """Of the sources, so that a library can say what it was built from."""
    return sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()[:12]


def jax_headers() -> Path | None:
    """Those of XLA's foreign function interface; None where there is no jaxlib. JAX itself is not loaded for them."""
    found = find_spec("jaxlib")
    if found is None or found.origin is None:
        return None
    headers = Path(found.origin).parent / "include"
    return headers if (headers / "xla" / "ffi" / "api" / "ffi.h").is_file() else None
