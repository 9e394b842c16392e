"""What not every installation has: loaded when it is asked for, and named in one sentence where it is missing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cycletime.errors import NotInstalledError

_PACKAGES = {
    "PIL": ("Pillow", "'cycletime[film]'"),  # brings pygame too, which draws most tasks
    "cmaes": ("cmaes", "'cycletime[optuna]'"),
    "gymnasium": ("Gymnasium", "gymnasium"),  # in every install, but not on a bare GPU machine with JAX and NumPy
    "jax": ("JAX", "'cycletime[train]'"),
    "matplotlib": ("Matplotlib", "'cycletime[study]'"),
    "onnx": ("ONNX", "'cycletime[onnx]'"),
    "optuna": ("Optuna", "'cycletime[optuna]'"),
    "pyarrow": ("pyarrow", "'cycletime[train]'"),
    "pybullet": ("PyBullet", "'cycletime[bullet]'"),
    "pybullet_data": ("PyBullet", "'cycletime[bullet]'"),
    "pygame": ("pygame", "'cycletime[render]'"),
    "ray": ("Ray", "'cycletime[ray]'"),
    "rich": ("rich", "'cycletime[train]'"),
    "safetensors": ("safetensors", "'cycletime[train]'"),
    "scipy": ("SciPy", "'cycletime[study]'"),
    "submitit": ("submitit", "'cycletime[slurm]'"),
}
"""Packages that are imported where they are needed: their names for people, and what to install."""


@contextmanager
def require_extras(who: str, install: str | None = None) -> Iterator[None]:
    """Tell in one sentence which extra is missing for what is imported inside; the outermost `who` is the one told."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        title, own = _PACKAGES[error.name]
        says = f"{who} needs {title}, which is not installed: pip install {install or own}."
        raise NotInstalledError(says, name=error.name) from None


def lazy_exports(
    room: str, homes: Mapping[str, str], needs: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a room that loads its names, each from its home, when asked for one.

    Those that need a package that is missing are not listed, since notebooks load whatever is. Who asks for one of them
    is told what to install.
    """
    missing = {name for name, package in (needs or {}).items() if not _is_installed(package)}
    listed = sorted(homes.keys() - missing)

    def load(name: str) -> Any:  # noqa: ANN401 - whatever the room has
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        with require_extras(f"{room}.{name}"):
            home = import_module(homes[name])
        return home if homes[name] == f"{room}.{name}" else getattr(home, name)

    return load, lambda: sorted({*vars(sys.modules[room]), *listed}), listed


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ModuleNotFoundError, ValueError):  # an importer that refuses, a stand-in without a spec
        return False
