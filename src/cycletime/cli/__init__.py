"""The command `cycletime`: parse, call, print. Wrong input is one sentence on standard error and exit status 2."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import tyro
from tyro.conf import FlagCreatePairsOff

from cycletime import __version__
from cycletime.cli.usage_errors import check_words, with_option_names
from cycletime.errors import InputError, RunError, printable
from cycletime.extras import require_extras
from cycletime.streams import lenient_streams

_ABOUT = "Reinforcement learning at any action-cycle time: carry hyper-parameters, train, watch, export."
_COMMANDS = {
    "transfer": ("transfer", "TransferCommand"),
    "train": ("train", "Train"),
    "resume": ("train", "Resume"),
    "watch": ("policies", "Watch"),
    "evaluate": ("policies", "Evaluate"),
    "plot": ("policies", "Plot"),
    "export": ("policies", "Export"),
    "study": ("study", "StudyCommand"),
    "tune": ("tune", "Tune"),
    "advise": ("advise", "Advise"),
    "paper": ("experiment", "PaperCommand"),
    "horizons": ("experiment", "HorizonsCommand"),
    "report": ("report", "ReportPage"),
    "latency": ("machine", "Latency"),
    "gpu": ("machine", "GpuCommand"),
    "robot": ("robot", "RobotCommand"),
}
"""Commands, with the module and the class of each."""
_OF_STUDIES = ("evaluate", "plot", "study", "tune", "advise", "paper", "horizons", "report")
"""Those that need all of the extra 'study', whatever they miss first."""

_OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""They take some ten MB."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with lenient_streams() as output, _rare_collections():
        status = _status_of(words)
        output.flush()
        if output.faults and not isinstance(output.faults[0], BrokenPipeError):  # a reader such as head has seen enough
            print(f"cycletime: The output cannot be written: {output.faults[0].strerror}.", file=sys.stderr)
            return status or 1
    return status


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python look for garbage less often.

    JAX makes hundreds of thousands of objects that stay while it loads and traces: going through them again and again
    takes a tenth of a start.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _status_of(words: list[str]) -> int:
    """Do what the words ask for."""
    if words == ["--version"]:
        print(f"cycletime {__version__}")
        return 0
    words = _with_zoo_named(words)
    parsed: Any = None
    try:
        parsed = _parsed(words)
        while is_dataclass(chosen := getattr(parsed, "command", None)):  # a command may be one of a group's
            parsed = chosen
        with require_extras(f"cycletime {words[0]}", "'cycletime[study]'" if words[0] in _OF_STUDIES else None):
            status: int = parsed.run()
    except InputError as error:
        print(f"cycletime: {printable(with_option_names(str(error), parsed))}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"cycletime: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cycletime: Interrupted.", file=sys.stderr)
        return 130
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        print(printable(f"cycletime: {where}{error.strerror or error}."), file=sys.stderr)
        return 1
    return status


def _parsed(words: list[str]) -> Any:  # noqa: ANN401 - any command
    """What tyro reads from the words."""
    commands = _commands(words)
    if not (words and words[0].startswith("--tyro-")):  # tab completion is tyro's own
        check_words(words, commands)
    return tyro.extras.subcommand_cli_from_dict(
        commands,
        prog="cycletime",
        description=f"{_ABOUT} 'cycletime --version' prints the version.",
        args=words,
        config=(FlagCreatePairsOff,),
    )


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
    if rest[0] != "zoo" and not rest[0].startswith("-"):
        rest = ["--algorithm", *rest]
    return ["transfer", "zoo", *rest] if rest[0] != "zoo" else words
