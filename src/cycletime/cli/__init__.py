"""The command `cycletime`: parse, call, print. Wrong input is one sentence on standard error and exit status 2."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import tyro
from tyro.conf import FlagCreatePairsOff

from cycletime import __version__
from cycletime.errors import InputError, RunError, printable
from cycletime.extras import extras_named

_ABOUT = "Reinforcement learning at any action-cycle time: carry hyper-parameters, train, watch, export."
_COMMANDS = {
    "transfer": ("transfer", "TransferCommand"),
    "train": ("train", "Train"),
    "resume": ("resume", "Resume"),
    "watch": ("watch", "Watch"),
    "export": ("export", "Export"),
    "study": ("study", "StudyCommand"),
    "tune": ("tune", "Tune"),
    "latency": ("latency", "Latency"),
    "gpu": ("gpu", "GpuCommand"),
}
"""Commands, with the module and the class of each."""
_OF_STUDIES = ("study", "tune")
"""Those that need all of the extra 'study', whatever they miss first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"cycletime {__version__}")
        return 0
    try:
        parsed = tyro.extras.subcommand_cli_from_dict(
            _commands(words),
            prog="cycletime",
            description=f"{_ABOUT} 'cycletime --version' prints the version.",
            args=_with_zoo_named(words),
            config=(FlagCreatePairsOff,),
        )
        with extras_named(f"cycletime {words[0]}", "'cycletime[study]'" if words[0] in _OF_STUDIES else None):
            status: int = parsed.run()
        sys.stdout.flush()
    except InputError as error:
        print(f"cycletime: {printable(str(error))}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"cycletime: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cycletime: Interrupted.", file=sys.stderr)
        return 130
    except OSError as error:
        return _status_after(error)
    return status


def _status_after(error: OSError) -> int:
    """Tell what the system refused: to write the output, or something else."""
    gone = _reader_is_gone()
    if error.filename is None:
        # Python flushes once more at exit, and must not complain again then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError) and gone:  # the reader, such as head, has seen enough
            return 0
        print(f"cycletime: The output cannot be written: {error.strerror}.", file=sys.stderr)
    else:
        print(f"cycletime: {printable(str(error.filename))}: {error.strerror}.", file=sys.stderr)
    return 1


def _reader_is_gone() -> bool:
    """Whether standard output is a pipe that nobody reads any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(what & select.POLLERR for _, what in poll.poll(0))


def _commands(words: Sequence[str]) -> dict[str, Any]:
    """The command that is asked for, or all of them: reading the options of each takes time."""
    wanted = words[:1] if words and words[0] in _COMMANDS else list(_COMMANDS)
    return {
        name: getattr(import_module(f"cycletime.cli.{module}"), kind)
        for name, (module, kind) in _COMMANDS.items()
        if name in wanted
    }


def _with_zoo_named(words: list[str]) -> list[str]:
    """Name the command that --from-zoo implies; an algorithm before it becomes an option."""
    if words[:1] != ["transfer"] or not any(word.split("=")[0] == "--from-zoo" for word in words):
        return words
    rest = words[1:]
    if rest[0] in ("ppo", "sac"):
        rest = ["--algorithm", *rest]
    return ["transfer", "zoo", *rest] if rest[0] != "zoo" else words
