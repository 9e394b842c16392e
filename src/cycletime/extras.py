"""What not every installation has: loaded when it is asked for, and named in one sentence where it is missing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cycletime.errors import NotInstalledError

_PACKAGES = {
    "PIL": ("Pillow", "film"),  # brings pygame too, which draws most tasks
    "cmaes": ("cmaes", "optuna"),
    "gymnasium": ("Gymnasium", None),  # in every install, but not on a bare GPU machine with JAX and NumPy
    "jax": ("JAX", "train"),
    "matplotlib": ("Matplotlib", "study"),
    "onnx": ("ONNX", "onnx"),
    "optuna": ("Optuna", "optuna"),
    "pyarrow": ("pyarrow", "train"),
    "pybullet": ("PyBullet", "bullet"),
    "pybullet_data": ("PyBullet", "bullet"),
    "pygame": ("pygame", "render"),
    "ray": ("Ray", "ray"),
    "rich": ("rich", "train"),
    "safetensors": ("safetensors", "train"),
    "scipy": ("SciPy", "study"),
    "submitit": ("submitit", "slurm"),
}
"""Packages that are imported where they are needed: their names for people, and the extra that brings each."""


def install_command(extra: str) -> str:
    """What brings an extra to this installation, from where it came itself: a clone, a repository, or an index."""
    from importlib.metadata import PackageNotFoundError, distribution  # which take long to load
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    source: dict[str, Any] = {}  # from an index, or only on the path
    with suppress(PackageNotFoundError):
        source = json.loads(distribution("cycletime").read_text("direct_url.json") or "{}")
    url, folder, repository = source.get("url", ""), source.get("dir_info"), source.get("vcs_info")
    if folder is not None:
        flag = "-e " if folder.get("editable") else ""
        return f"pip install {flag}'{url2pathname(urlparse(url).path)}[{extra}]'"
    if repository is not None:
        url = f"{repository['vcs']}+{url}@{repository['commit_id']}"
    return f"pip install 'cycletime[{extra}]{f' @ {url}' if url else ''}'"


@contextmanager
def require_extras(who: str, extra: str | None = None) -> Iterator[None]:
    """Tell in one sentence which extra is missing for what is imported inside; the outermost `who` is the one told."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        title, own = _PACKAGES[error.name]
        install = install_command(extra or own) if own else f"pip install {error.name}"
        says = f"{who} needs {title}, which is not installed: {install}."
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
