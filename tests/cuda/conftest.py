import ctypes
from pathlib import Path

import pytest

from tests.cuda.emulated import Emulated, build


@pytest.fixture(scope="session")
def library(shared_folder: Path) -> ctypes.CDLL:
    return build(shared_folder)


@pytest.fixture
def device(library: ctypes.CDLL) -> Emulated:
    return Emulated(library)
