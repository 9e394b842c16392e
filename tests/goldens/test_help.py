"""The help of every command. It is worded anew now and then, and these goldens with it."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from cycletime import cli
from tests.goldens.conftest import Say
from tests.goldens.goldens import DATA, holds, recording, steady

GROUPS = ("transfer", "study", "robot", "experiment")
COMMANDS = (
    "",
    *GROUPS,
    *("transfer ppo", "transfer sac", "transfer a2c", "transfer tqc", "transfer td3", "transfer ddpg", "transfer file"),
    "explain",
    *("train", "resume", "watch", "evaluate", "plot", "export", "tune", "advise", "report", "latency", "gpu"),
    *(f"study {each}" for each in ["run", "plan", "status", "retry", "verify", "export", "pack", "report"]),
    *(f"experiment {each}" for each in ["list", "run", "pack", "collect", "verdicts", "table", "figures", "report"]),
    *(f"robot {each}" for each in ["check", "run", "resume", "replay", "simulate", "fault"]),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_is_what_it_was(say: Say, command: str) -> None:
    said = say(*command.split(), "--help")
    assert (said.status, said.err) == (0, "")
    holds(f"help/{'-'.join(command.split()) or 'cycletime'}.txt", steady(said.out))


def test_no_option_s_help_has_line_breaks_of_its_source() -> None:
    """tyro keeps those of an option's docstring, whatever the terminal's width."""
    for file in Path(cli.__file__).parent.glob("*.py"):
        classes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)]
        for before, after in ((a, b) for each in classes for a, b in pairwise(each.body)):
            if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr):
                assert "\n" not in ast.literal_eval(after.value), f"{file}:{after.lineno}"


def test_no_command_is_left_out(say: Say) -> None:
    for group in GROUPS:
        (listed,) = re.findall(r"\{([a-z0-9,-]+)\}", say(*group.split(), "--help").out.splitlines()[0])
        named = {each.removeprefix(group).strip() for each in COMMANDS if each.startswith(group) and each != group}
        assert set(listed.split(",")) == {each for each in named if " " not in each}
    listed = [line.split()[0] for line in say("--help").out.splitlines() if line.startswith("  ")]
    assert set(listed) == {each for each in COMMANDS if each and " " not in each}
    if not recording():
        names = {"-".join(command.split()) or "cycletime" for command in COMMANDS}
        assert {file.stem for file in (DATA / "help").glob("*.txt")} == names
