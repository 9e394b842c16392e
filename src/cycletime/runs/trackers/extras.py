"""Trackers' packages are extras: loaded when asked for, and named in one sentence when missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from cycletime.errors import InputError


def load(module: str, title: str, extra: str) -> ModuleType:
    """The module of an extra, or the sentence that says how to install it.

    Raises:
        InputError: if it is not installed, or cannot be loaded; the sentence says how to.
    """
    package = module.partition(".")[0]
    try:
        # A plain folder of the package's name, such as W&B's own './wandb', can be imported but has no file.
        if importlib.import_module(package).__file__ is not None:
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise InputError(f"{title} cannot be loaded ({error}): pip install 'cycletime[{extra}]'.") from error
    raise InputError(f"{title} is not installed: pip install 'cycletime[{extra}]'.") from None
