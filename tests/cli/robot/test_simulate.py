"""`cycletime robot simulate` and `cycletime robot fault`, as typed."""

import re
import signal
import sys

import pytest

from cycletime.cli import main
from tests.processes import started


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["robot", *words]) != 0
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("simulate --pace fast", "--pace is 'fast': give a number such as 1 or 20, or lockstep."),
        ("simulate --pace 0", "--pace is '0'"),
        ("simulate --ports 0 0 0 x", "--ports has 'x': a port is a number from 0 to 65535."),
        ("simulate --ports 0 0 0 65536", "--ports has '65536'"),
        ("simulate --address 192.0.2.1 --ports 0 0 0 0", "cannot listen on 192.0.2.1:0"),
        ("fault", "No fault is named: give one such as protective stop."),
        ("fault --port 1 state", "No simulated controller answers at 127.0.0.1:1: Connection refused."),
        ("fault --port 99999 state", "--port is 99999: a port is a number from 1 to 65535."),
        ("simulat", "did you mean simulate?"),
    ],
)
def test_wrong_input_is_one_sentence(capsys: pytest.CaptureFixture[str], words: str, why: str) -> None:
    said = refused(capsys, *words.split())
    assert why in said
    assert said.count("\n") == 1


def test_a_controller_says_where_it_is_does_faults_and_ends_with_ctrl_c(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [sys.executable, "-m", "cycletime", "robot", "simulate", "--profile", "e", "--pace", "lockstep"]
    with started([*words, "--ports", "0", "0", "0", "0"]) as process:
        assert process.stdout is not None
        where = process.stdout.readline()
        found = re.fullmatch(
            r"A simulated e controller listens on 127\.0\.0\.1: "
            r"rtde \d+, realtime \d+, dashboard \d+, admin (\d+)\. Ctrl-C ends it\.\n",
            where,
        )
        assert found is not None, where
        assert main(["robot", "fault", "--port", found[1], "protective", "stop"]) == 0
        assert capsys.readouterr().out == "ok\n"
        assert process.stdout.readline() == "0.000 s: PROTECTIVE_STOP: a fault was asked for\n"
        assert "did you mean protective stop?" in refused(capsys, "fault", "--port", found[1], "protectiv stop")
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "The simulated controller has ended.\n"
        assert process.wait() == 0
