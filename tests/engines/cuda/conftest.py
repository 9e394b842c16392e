import ctypes

import pytest

from tests.engines.cuda.emulated import Emulated, build


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("emulator"))


@pytest.fixture
def device(library: ctypes.CDLL) -> Emulated:
    return Emulated(library)
