"""The process of a trainer in Python: `python -m cycletime.trainers.host REQUEST`, a file with what it is asked for.

It loads as little as can be, since each run pays for it: JAX only where the trainer or its task needs it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cycletime.errors import InputError, did_you_mean, quote
from cycletime.extras import install_command
from cycletime.trainers.trainer_run import TrainerRun
from cycletime.training.worlds import import_own

WRONG_INPUT_STATUS = 64
"""The exit status of what need not be tried again; the last line of the output says why."""


def load_function(name: str) -> Callable[..., Any]:
    module, is_own, function = name.partition(":")
    if not is_own:
        module, function = f"cycletime.trainers.{name.replace('-', '_')}", "train"
    there = import_own(module, name)
    found = getattr(there, function, None)
    if found is None:
        near = did_you_mean(function, vars(there))
        raise InputError(f"{name!r} is not found: the module has no {function!r}{near}")
    if not callable(found):
        raise InputError(f"{name!r} is {quote(found)}: it must be a function.")
    return found  # type: ignore[no-any-return]


def train(name: str, run: TrainerRun) -> None:
    points = load_function(name)(run)
    if points is None:
        return
    if not isinstance(points, Iterable):
        raise InputError(f"{name} returns {quote(points)}: it must yield points, or report them.")
    for point in points:
        try:
            seconds, steps, value = point
            numbers = float(seconds), int(steps), float(value)
        except (TypeError, ValueError) as error:
            needed = "it must yield three numbers, (seconds, agent steps, return)"
            raise InputError(f"It yields {quote(point)}: {needed}.") from error
        run.report(*numbers)


def main() -> int:
    """Train, and end with a sentence where something is wrong that another try would meet again."""
    request = json.loads(Path(sys.argv[1]).read_text())
    name = request["trainer"]
    try:
        train(name, TrainerRun.from_json(request["run"]))
    except InputError as error:
        print(error, file=sys.stderr)
        return WRONG_INPUT_STATUS
    except ModuleNotFoundError as error:
        remedy = "pip install it" if ":" in name else install_command(name)
        print(f"{name} needs {error.name!r}, which is not installed: {remedy}.", file=sys.stderr)
        return WRONG_INPUT_STATUS
    return 0


if __name__ == "__main__":
    sys.exit(main())
