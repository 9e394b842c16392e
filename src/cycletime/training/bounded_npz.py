"""NumPy's .npz read within bounds: what a file declares is held against limits before anything of it is unpacked.

A header is a few bytes, and may declare terabytes; a file of zeros unpacks to a thousand times its size. So the sizes
that are declared are added up first, and an array is read only if its header declares numbers, as many as the file has.
Pickles are never loaded.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

KINDS = "biufU"
"""Numbers, and text: no pickles, and nothing that depends on a machine."""
MOST_ARRAYS = 10_000
_SUFFIX = ".npy"
_AT_ONCE = 2**20
_Header: TypeAlias = tuple[tuple[int, ...], bool, np.dtype[Any]]
"""Shape, whether it is stored by columns, and type."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class BoundedNpz(Mapping[str, NDArray[Any]]):
    """The arrays of a file that is open, by name; each is read when it is asked for."""

    def __init__(self, file: zipfile.ZipFile, most_bytes: int) -> None:
        members = file.infolist()
        self.bytes = sum(each.file_size for each in members)
        if len(members) > MOST_ARRAYS:
            raise ValueError(f"it has {len(members):,} arrays, and {MOST_ARRAYS:,} are the most")
        if self.bytes > most_bytes:
            raise ValueError(f"it declares {self.bytes:,} bytes, and {most_bytes:,} are the most")
        for each in members:
            if each.flag_bits & 1 or each.compress_type not in _METHODS or not each.filename.endswith(_SUFFIX):
                raise ValueError(f"it has {each.filename!r}, which is not an array of NumPy")
        self._file = file
        self._members = {each.filename.removesuffix(_SUFFIX): each for each in members}
        self._headers: dict[str, tuple[_Header, int]] = {}
        if len(self._members) != len(members):
            raise ValueError("it has two arrays of one name")

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def declared(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        if name not in self._headers:
            with self._file.open(self._members[name]) as raw:
                self._headers[name] = _header(raw), raw.tell()
        (shape, _, dtype), _ = self._headers[name]
        return shape, dtype

    def __getitem__(self, name: str) -> NDArray[Any]:
        member, (shape, dtype) = self._members[name], self.declared(name)
        (_, by_columns, _), ends = self._headers[name]
        with self._file.open(member) as raw:
            raw.read(ends)
            if dtype.kind not in KINDS:
                raise ValueError(f"{name!r} is of the type {dtype}: only numbers are read, as with allow_pickle=False")
            size = prod(shape) * dtype.itemsize
            if size != member.file_size - raw.tell():
                raise ValueError(f"{name!r} is {dtype}{list(shape)}, and has {member.file_size:,} bytes")
            content = bytearray()  # which can be written to, as what NumPy's own function gives
            while part := raw.read(_AT_ONCE):  # to the end, where the checksum is compared
                content += part
            if len(content) != size:
                raise ValueError(f"{name!r} is not as long as it says")
        return np.frombuffer(content, dtype).reshape(shape, order="F" if by_columns else "C")


@contextmanager
def open_npz(raw: IO[bytes], most_bytes: int) -> Iterator[BoundedNpz]:
    with zipfile.ZipFile(raw) as file:
        yield BoundedNpz(file, most_bytes)


def _header(raw: IO[bytes]) -> _Header:
    version = np.lib.format.read_magic(raw)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(raw)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(raw)
    raise ValueError(f"it has an array of NumPy's format {version}, and 1.0 and 2.0 are read")
