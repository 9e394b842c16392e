"""Standard streams that are full, closed, gone or poor in letters; the real command, and writers that fail."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cycletime.streams import LenientStream, lenient_streams


class Failing(io.StringIO):
    """A stream on which each write fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


def test_what_can_be_written_is_written_and_all_else_is_the_stream_s() -> None:
    stream = io.StringIO()
    lenient = LenientStream(stream)
    assert lenient.write("one ") == 4
    lenient.writelines(["two ", "three"])
    lenient.flush()
    assert (stream.getvalue(), lenient.getvalue(), lenient.faults) == ("one two three", "one two three", [])


def test_a_fault_is_known_and_ends_nothing() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    lenient = LenientStream(Failing(full))
    assert lenient.write("lost") == 4
    print("lost, too", file=lenient)
    assert lenient.faults[0] is full


def test_a_stream_that_was_closed_takes_nothing_and_is_no_fault() -> None:
    stream = io.StringIO()
    stream.close()
    lenient = LenientStream(stream)
    lenient.write("lost")
    lenient.flush()
    assert lenient.faults == []


def test_letters_that_a_stream_does_not_have_are_replaced() -> None:
    below = io.BytesIO()
    lenient = LenientStream(io.TextIOWrapper(below, encoding="ascii"))
    lenient.write("1 \N{PLUS-MINUS SIGN} 2 \N{BULLET}\n")
    lenient.buffer.write(b"bytes")
    lenient.flush()
    assert below.getvalue() in (b"1 ? 2 ?\nbytes", b"bytes1 ? 2 ?\n")


def test_faults_of_bytes_are_those_of_the_text() -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:  # noqa: ANN401
            raise OSError(errno.ENOSPC, "No space left on device")

    lenient = LenientStream(io.TextIOWrapper(Full()))
    lenient.buffer.write(b"lost")
    assert [fault.errno for fault in lenient.faults] == [errno.ENOSPC]


def test_streams_are_as_they_were_afterwards() -> None:
    before = sys.stdout, sys.stderr
    with lenient_streams():
        assert isinstance(sys.stdout, LenientStream)
        assert isinstance(sys.stderr, LenientStream)
    assert (sys.stdout, sys.stderr) == before
    with pytest.raises(ZeroDivisionError), lenient_streams():
        _ = 1 / 0
    assert (sys.stdout, sys.stderr) == before


ALL_AT_ONCE = """
import sys
from cycletime.streams import lenient_streams
with lenient_streams() as output:
    for _ in range(3):
        print("result \\N{BULLET}" * 10_000)
        print("progress", file=sys.stderr, flush=True)
    open(sys.argv[1], "w").write(f"{len(output.faults) > 0}")
"""


@pytest.mark.parametrize(
    ("redirected", "faults"),
    [(">/dev/full 2>/dev/full", "True"), (">&- 2>&- <&-", "False"), ("| true", None), ("2>&1 | cat", "False")],
)
@pytest.mark.parametrize("encoding", ["ascii"])
def test_a_program_goes_on_to_its_end_and_says_nothing_of_it(
    tmp_path: Path, redirected: str, faults: str | None, encoding: str
) -> None:
    """With output buffered as it is for users, which Python writes at exit."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = f'set -o pipefail; "$0" -c "$1" "$2" {redirected}'
    ran = subprocess.run(
        ["bash", "-c", command, sys.executable, ALL_AT_ONCE, str(tmp_path / "end")],
        env={**environment, "PYTHONIOENCODING": encoding},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr.replace("progress\n", "")) == (0, "")
    assert (tmp_path / "end").read_text() == faults or faults is None
    assert "cat" not in redirected or ran.stdout.count("result ?") == 30_000
