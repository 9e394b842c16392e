"""Archives of arrays: what goes in comes out, and what declares too much or the wrong thing is refused unread."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from cycletime.training import bounded_npz
from cycletime.training.bounded_npz import open_npz

MOST = 10**6
ARRAYS: dict[str, Any] = {
    "by_columns": np.arange(12, dtype=np.float32).reshape(3, 4).T,
    "empty/table": np.zeros((0, 3), np.int32),
    "one": np.int64(7),
    "text": np.array("\N{GREEK SMALL LETTER MU}"),
    "special": np.array([np.nan, -0.0, 5e-324]),
}


def saved(save: Callable[..., None] = np.savez_compressed, **arrays: Any) -> BytesIO:  # noqa: ANN401 - any array
    buffer = BytesIO()
    save(buffer, **arrays)
    buffer.seek(0)
    return buffer


def header_of(shape: str, kind: str = "<f8") -> bytes:
    """The file of an array without its numbers, which declares a shape."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def archive(**members: bytes) -> BytesIO:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return buffer


def read(raw: BytesIO, most_bytes: int = MOST) -> dict[str, Any]:
    with open_npz(raw, most_bytes) as file:
        return dict(file)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back_as_numpy_gives_them(save: Callable[..., None]) -> None:
    back = read(saved(save, **ARRAYS))
    with np.load(saved(save, **ARRAYS)) as theirs:
        assert back.keys() == set(theirs.files)
        for name, array in theirs.items():
            assert (back[name].shape, back[name].dtype) == (array.shape, array.dtype)
            assert back[name].tobytes() == array.tobytes()
            assert back[name].flags.writeable
            assert back[name].flags.f_contiguous == array.flags.f_contiguous


def test_what_was_declared_before_is_read_as_if_nobody_had_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_npz(saved(**ARRAYS), MOST) as found:
        told = {name: found.declared(name) for name in found}
        monkeypatch.setattr(bounded_npz, "_header", None)  # nothing reads a header again
        for name, array in ARRAYS.items():
            assert told[name] == found.declared(name) == (np.shape(array), array.dtype)
            np.testing.assert_array_equal(found[name], array)


def test_what_is_declared_is_told_without_reading_it() -> None:
    with open_npz(archive(x=header_of("(1000000000000,)")), MOST) as file:
        assert file.declared("x") == ((10**12,), np.dtype("<f8"))
        assert (len(file), list(file), "y" in file) == (1, ["x"], False)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (archive(x=header_of("(1000000000000,)")), r"'x' is float64\[1000000000000\], and has \d+ bytes"),
        (archive(x=header_of("(-8,)") + bytes(8)), "is float64"),
        (archive(x=header_of("(2, 2**70)")), "malformed"),
        (archive(x=header_of("(3,)") + bytes(25)), r"'x' is float64\[3\]"),
        (archive(x=header_of("(1,)", "|O") + bytes(8)), "only numbers are read, as with allow_pickle=False"),
        (archive(x=header_of("(1,)", "<M8[s]") + bytes(8)), "only numbers are read"),
        (archive(x=header_of("(1,)")[:20]), "header"),
        (archive(x=b""), "magic"),
        (archive(x=header_of("(" + "1," * 20_000 + ")")), "Header info length"),
    ],
)
def test_an_array_that_cannot_be_is_refused(raw: BytesIO, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read(raw)


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = archive(x=header_of("(1000000,)") + bytes(8 * 10**6))
    assert len(bomb.getvalue()) < 10_000
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it is unpacked"))
    with pytest.raises(ValueError, match=r"it declares 8,000,\d+ bytes, and 1,000,000 are the most"):
        read(bomb)


def test_a_bomb_that_declares_little_is_not_unpacked_further() -> None:
    content = bytearray(archive(x=header_of("(1,)") + bytes(8 * 10**6)).getvalue())
    size = struct.pack("<I", len(header_of("(1,)")) + 8 * 10**6)
    assert content.count(size) == 2
    with pytest.raises((zipfile.BadZipFile, ValueError)):
        read(BytesIO(content.replace(size, struct.pack("<I", len(header_of("(1,)")) + 8))))


def test_other_members_two_of_a_name_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = BytesIO()
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("x.txt", "x")
    with pytest.raises(ValueError, match=r"it has 'x\.txt', which is not an array of NumPy"):
        read(other)
    twice = BytesIO()
    with zipfile.ZipFile(twice, "w") as file:
        file.writestr("x.npy", "x")
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("x.npy", "x")
    with pytest.raises(ValueError, match="it has two arrays of one name"):
        read(twice)
    monkeypatch.setattr(bounded_npz, "MOST_ARRAYS", 1)
    with pytest.raises(ValueError, match="it has 2 arrays, and 1 are the most"):
        read(saved(x=1, y=2))
