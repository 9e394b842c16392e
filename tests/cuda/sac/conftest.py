import ctypes
from pathlib import Path

import pytest

from cycletime.cuda.kernels import FORMS, KERNEL, SAC
from cycletime.cuda.sac_device import SACDevice
from tests.cuda.emulated import build
from tests.cuda.sac.emulated import EmulatedMemory


@pytest.fixture(scope="session")
def sac_library(shared_folder: Path) -> ctypes.CDLL:
    return build(shared_folder / "sac", KERNEL, "-O2", form=FORMS[SAC][0], source="emulate_sac.cpp")


@pytest.fixture
def sac_device(sac_library: ctypes.CDLL) -> SACDevice:
    return SACDevice(EmulatedMemory(sac_library))
