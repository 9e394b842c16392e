import ctypes
from pathlib import Path

import pytest

from cycletime.engines.cuda.kernels import KERNEL
from cycletime.engines.cuda.sac.device import SACDevice
from tests.engines.cuda.emulated import build
from tests.engines.cuda.sac.emulated import EmulatedMemory


@pytest.fixture(scope="session")
def sac_library(shared_folder: Path) -> ctypes.CDLL:
    folder = shared_folder / "sac"
    folder.mkdir(exist_ok=True)
    return build(folder, KERNEL, "-O2", source="emulate_sac.cpp")


@pytest.fixture
def sac_device(sac_library: ctypes.CDLL) -> SACDevice:
    return SACDevice(EmulatedMemory(sac_library))
