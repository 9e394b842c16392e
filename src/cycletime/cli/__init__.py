"""The command `cycletime`: parse, call, print. Wrong input is one sentence on standard error and exit status 2."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import tyro
from tyro.conf import FlagCreatePairsOff

from cycletime import __version__
from cycletime.cli.usage_errors import check_words, with_option_names
from cycletime.errors import InputError, RunError, printable
from cycletime.extras import require_extras
from cycletime.streams import lenient_streams

_ABOUT = "Reinforcement learning at any action-cycle time: carry hyper-parameters, train, watch, export."


class _Command(NamedTuple):
    """Where a command stands, and what it is for: only the command that is asked for is imported."""

    module: str
    kind: str
    about: str
    needs_study: bool = False
    """Whether it needs all of the extra 'study', whatever it misses first."""


_GROUPS = {
    "everyday": {
        "transfer": _Command("transfer", "TransferCommand", "carry hyper-parameters to another cycle time"),
        "explain": _Command(
            "explain", "Explain", "say what a configuration means in seconds, and what is inconsistent"
        ),
        "train": _Command("train", "Train", "train an agent on a task or an environment"),
        "resume": _Command("train", "Resume", "continue runs that were stopped or killed"),
        "watch": _Command("policies", "Watch", "watch a run's policy, in a window or as a film"),
        "evaluate": _Command("policies", "Evaluate", "measure what a run's policy earns", needs_study=True),
        "plot": _Command("policies", "Plot", "draw the learning curves of runs", needs_study=True),
        "export": _Command("policies", "Export", "export a run's policy to ONNX or NumPy"),
        "study": _Command("study", "StudyCommand", "run many trainings from one file", needs_study=True),
        "report": _Command("report", "ReportCommand", "report what a study, a run or results say", needs_study=True),
        "tune": _Command("tune", "Tune", "tune an algorithm at one cycle time", needs_study=True),
        "advise": _Command("advise", "Advise", "find out which cycle time to use", needs_study=True),
    },
    "hardware": {
        "latency": _Command("machine", "Latency", "time act and learn: which cycle times have room for them"),
        "gpu": _Command("machine", "GpuCommand", "check what the engine cuda computes on this machine's GPU"),
        "robot": _Command("robot", "RobotCommand", "train on an arm in real time, check it, or simulate one"),
    },
    "research": {
        "experiment": _Command(
            "experiment", "ExperimentCommand", "the paper's experiments and the search for a rule", needs_study=True
        ),
    },
}
_COMMANDS = {name: command for group in _GROUPS.values() for name, command in group.items()}
_ALGORITHMS = ("ppo", "sac", "a2c", "tqc", "td3", "ddpg")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # JAX makes hundreds of thousands of objects that stay: looking through them for garbage takes a tenth of a start.
    before = gc.get_threshold()
    gc.set_threshold(100_000, *before[1:])  # so many take some ten MB
    try:
        with lenient_streams() as output:
            status = _status_of(words)
            output.flush()
            if output.faults and not isinstance(output.faults[0], BrokenPipeError):  # such as head has seen enough
                return _fail(f"The output cannot be written: {output.faults[0].strerror}.", status or 1)
        return status
    finally:
        gc.set_threshold(*before)  # Python calls this function, too


def _status_of(words: list[str]) -> int:
    if words == ["--version"]:
        print(f"cycletime {__version__}")
        return 0
    if words[:1] in (["-h"], ["--help"]):
        print(_help())
        return 0
    words = _with_file_named(words)
    parsed: Any = None
    try:
        parsed = _parsed(words)
        while is_dataclass(chosen := getattr(parsed, "command", None)):  # a command may be one of a group's
            parsed = chosen
        needs_study = _COMMANDS[words[0]].needs_study
        with require_extras(f"cycletime {words[0]}", "study" if needs_study else None):
            status: int = parsed.run()
    except InputError as error:
        return _fail(with_option_names(str(error), parsed), 2)
    except RunError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("Interrupted.", 130)
    except (MemoryError, RuntimeError, ImportError) as error:
        if not _lacks_memory(error):
            raise
        return _fail("There is not enough memory for this: give it more, or ask for less at once.")
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{where}{error.strerror or error}.")
    return status


def _fail(sentence: str, status: int = 1) -> int:
    print(f"cycletime: {printable(sentence)}", file=sys.stderr)
    return status


def _lacks_memory(error: Exception) -> bool:
    """Also where a library cannot be loaded, since `ulimit -v` leaves no room for it."""
    if isinstance(error, ImportError) and os.name == "posix":
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        return getrlimit(RLIMIT_AS)[0] != RLIM_INFINITY
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)  # as XLA says it


def _parsed(words: list[str]) -> Any:  # noqa: ANN401 - any command
    commands = _commands(words)
    if not (words and words[0].startswith("--tyro-")):  # tab completion is tyro's own
        check_words(words, commands)
    return tyro.extras.subcommand_cli_from_dict(
        commands, prog="cycletime", description=_ABOUT, args=words, config=(FlagCreatePairsOff,)
    )


def _commands(words: Sequence[str]) -> dict[str, Any]:
    """The command that is asked for, or all of them: reading the options of each takes time."""
    wanted = words[:1] if words and words[0] in _COMMANDS else list(_COMMANDS)
    return {
        name: getattr(import_module(f"cycletime.cli.{command.module}"), command.kind)
        for name, command in _COMMANDS.items()
        if name in wanted
    }


def _help() -> str:
    width = max(map(len, _COMMANDS))
    lines = ["usage: cycletime COMMAND ...", "", _ABOUT]
    for group, commands in _GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<{width}}  {command.about}" for name, command in commands.items())]
    more = "'cycletime COMMAND --help' shows what a command takes; 'cycletime --version' prints the version."
    return "\n".join([*lines, "", more])


def _with_file_named(words: list[str]) -> list[str]:
    """Name the command that a path implies: transfer file PATH."""
    first = "".join(words[1:2])
    is_path = not first.startswith("-") and ("/" in first or "." in first or Path(first).exists())
    is_meant = words[:1] == ["transfer"] and first and is_path and first not in ("file", *_ALGORITHMS)
    return ["transfer", "file", *words[1:]] if is_meant else words
