import ctypes

import pytest

from cycletime.engines.cuda.kernels import KERNEL
from cycletime.engines.cuda.sac.device import SACDevice
from tests.engines.cuda.emulated import build
from tests.engines.cuda.sac.emulated import EmulatedMemory


@pytest.fixture(scope="session")
def sac_library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("sac"), KERNEL, "-O2", source="emulate_sac.cpp")


@pytest.fixture
def sac_device(sac_library: ctypes.CDLL) -> SACDevice:
    return SACDevice(EmulatedMemory(sac_library))
