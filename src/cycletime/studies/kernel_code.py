"""Which code computes runs on the kernel: what two machines must have in common for their runs to be one study's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cycletime.engines.cuda.device import kernel_source
from cycletime.errors import RunError
from cycletime.runs.machine import code_version
from cycletime.runs.spec import RESULT_VERSION


def kernel_digest() -> str:
    """The hash of all files of the kernel."""
    return kernel_source().splitlines()[-1].removeprefix("// ")


def release() -> str:
    """The package's version, without the commit."""
    return code_version().partition("+")[0]


def check_code(about: Mapping[str, Any]) -> None:
    """Refuse runs that other code has computed.

    Raises:
        RunError: if so.
    """
    here = {"result_version": RESULT_VERSION, "release": release(), "kernel": kernel_digest()}
    words = {"result_version": "version of results", "release": "version of cycletime", "kernel": "kernel"}
    for name, ours in here.items():
        theirs = about.get(name)
        if theirs != ours:
            short = [str(each)[:10] for each in (theirs, ours)]
            raise RunError(
                f"its runs were computed by another {words[name]}, {short[0]}, and not {short[1]}: pack the study "
                "anew, or import with the version that packed it."
            )
