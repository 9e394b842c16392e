import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from cycletime.bounded import read_bounded_text
from cycletime.errors import InputError


def test_text_comes_with_its_line_ends_and_without_its_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: \xc2\xb5\n")
    assert read_bounded_text(file, 100) == "a: 1\r\nb: µ\n"
    assert read_bounded_text(str(file), 100, "utf-8") == "\ufeffa: 1\r\nb: µ\n"


def test_a_file_of_just_the_bound_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_bytes(b"x" * 10)
    assert read_bounded_text(file, 10) == "x" * 10
    with pytest.raises(InputError, match=r"a\.yml has 10 bytes or more: at most 9 are read\.$"):
        read_bounded_text(file, 9)


def test_a_file_that_tells_no_size_is_bounded_as_well() -> None:
    with pytest.raises(InputError, match=r"^/proc/self/maps has 6 bytes or more: at most 5 are read\.$"):
        read_bounded_text("/proc/self/maps", 5)


def test_a_huge_sparse_file_is_refused_by_its_size(tmp_path: Path) -> None:
    file = tmp_path / "huge"
    file.touch()
    os.truncate(file, 10**12)
    with pytest.raises(InputError, match=r"has 1000000000000 bytes or more: at most 1000 are read\."):
        read_bounded_text(file, 1000)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (Path.mkdir, "a directory"),
        (os.mkfifo, "a pipe"),
        (make_socket, "a socket"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
    ],
)
def test_what_is_no_regular_file_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], kind: str
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket may have about 100 letters
    make(Path("odd"))
    with pytest.raises(InputError, match=f"^odd is {kind}: give a regular file.$"):
        read_bounded_text("odd", 100)


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.touch()
    os.mkfifo(pipe)
    before = file.stat()
    monkeypatch.setattr(Path, "stat", lambda path: before)
    with pytest.raises(InputError, match="pipe is a pipe: give a regular file"):
        read_bounded_text(pipe, 100)


def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yml"
    latin.write_bytes("a: café".encode("latin-1"))
    with pytest.raises(InputError, match=r"^There is no file .*/missing\.yml\.$"):
        read_bounded_text(tmp_path / "missing.yml", 100)
    with pytest.raises(InputError, match=r"latin\.yml cannot be read: byte 7 is not UTF-8 text\.$"):
        read_bounded_text(latin, 100)
    with pytest.raises(InputError, match=r"/x cannot be read: Not a directory\.$"):
        read_bounded_text(latin / "x", 100)
    with pytest.raises(InputError, match=r"cannot be read: File name too long\.$"):
        read_bounded_text("x" * 300, 100)
    with pytest.raises(InputError, match=r"^'a\\x00b' cannot be the name of a file\.$"):
        read_bounded_text("a\0b", 100)
