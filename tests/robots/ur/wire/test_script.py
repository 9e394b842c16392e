import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.robots.ur.types import Command, MoveJ, SpeedJ, StopJ, WireError
from cycletime.robots.ur.wire.script import ScriptParser, command_of, script_line

Q = (0.1, -0.2, 0.0, 1e-05, 2.0, 3.0)
LINES = {
    SpeedJ(Q, 2.0, 0.008): "speedj([0.1, -0.2, 0.0, 1e-05, 2.0, 3.0], 2.0, 0.008)",
    SpeedJ(Q, 2.0): "speedj([0.1, -0.2, 0.0, 1e-05, 2.0, 3.0], 2.0)",
    MoveJ(Q, time_s=2.0): "movej([0.1, -0.2, 0.0, 1e-05, 2.0, 3.0], a=1.4, v=1.05, t=2.0)",
    StopJ(3.0): "stopj(a=3.0)",
}


@pytest.mark.parametrize(("command", "line"), LINES.items(), ids=lambda each: type(each).__name__)
def test_commands_are_the_lines_that_a_controller_reads_and_come_back(command: Command, line: str) -> None:
    assert script_line(command) == line
    assert command_of(line) == command


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_never_becomes_a_line(bad: float) -> None:
    for command in (SpeedJ((bad, *Q[1:])), StopJ(bad), MoveJ(Q, time_s=bad)):
        with pytest.raises(InputError, match="finite"):
            script_line(command)


def test_an_arm_has_six_joints() -> None:
    with pytest.raises(InputError, match="5 joint values"):
        script_line(SpeedJ(Q[1:]))


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (" movej( [1,2,3,4,5,6] , a = 1 , r=0) ", MoveJ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 1.0)),
        ("speedj([+0.1, -0.2, 0, 1e-5, 2.0, 3], 2)", SpeedJ(Q, 2.0)),
        ("stopj()", StopJ(2.0)),
    ],
)
def test_what_other_clients_write_is_read(line: str, command: Command) -> None:
    assert command_of(line) == command


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *((line, "no call") for line in ("x = 3", "speedj([1,2,", "f(1, a=2, 3)", "f(1) g(2)", "import os", "\0", "")),
        *((line, "no call") for line in ("speedj([1, x])", "stopj(a=b=c)", "stopj((2).real)", "a.stopj(1)", "stopj(")),
        *((line, "no call") for line in ("(" * 300 + ")" * 300, "-" * 999 + "1", "stopj(" + "1+" * 5000 + "1)")),
        ("speedl([0,0,0,0,0,0], 1)", "not simulated"),
        ("speedj([0,0,0], 1)", "6 joint values"),
        ("speedj(p[0,0,0,0,0,0], 1)", "no call"),
        ("speedj([0,0,0,0,0,0], 1, 2, 3)", "takes from 1 to 3 positional arguments but 4 were given"),
        ("stopj(b=1)", "unexpected keyword argument 'b'"),
        ("stopj(**{'a': 1})", "unexpected keyword argument 'None'"),
        ("movej([0,0,0,0,0,0], 1, a=2)", "multiple values for argument 'a'"),
        *((f"stopj({value})", "no number") for value in ("True", '"2"', "None", "[2]", "1e999", "1j", "9" * 400)),
    ],
)
def test_what_is_no_line_for_joints_is_told_as_a_controllers_log_would(line: str, why: str) -> None:
    with pytest.raises(WireError, match=why):
        command_of(line)


BLOCK = """def rtde_control():
  # a comment with end
  while True:
    if x == "end":
      y = 1
    elif x == 2:
      y = 3
    end
  end
  thread t():
    sync()
  end
end"""
FEED = f'stopj(2)\r\n\n# nothing\n{BLOCK}\nsec s():\n  textmsg("x # y")\nend\nspeedj([1,2,3,4,5,6], 1)\nhalf'


@given(st.lists(st.integers(1, 60), max_size=12))
def test_lines_and_blocks_are_found_however_tcp_tears_and_merges_them(cuts: Sequence[int]) -> None:
    stream = FEED.encode()
    parser, found, start = ScriptParser(), [], 0
    for size in [*cuts, len(stream)]:
        found += parser.feed(stream[start : start + size])
        start += size
    assert found == [
        "stopj(2)",
        "def rtde_control():",
        "sec s():",
        "speedj([1,2,3,4,5,6], 1)",
    ]


def test_a_program_without_end_is_an_error_and_no_leak() -> None:
    parser = ScriptParser()
    assert parser.feed(b"def f():\n" + b"x = 1\n" * 300_000) == ["def f():"]
    with pytest.raises(WireError, match="not ended"):
        parser.feed(b"x" * 70_000)
