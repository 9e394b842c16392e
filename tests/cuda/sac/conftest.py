import ctypes
from pathlib import Path

import pytest

from cycletime.cuda.kernels import FORMS, KERNEL, SAC
from cycletime.cuda.sac import SAC_KERNEL
from tests.cuda.emulated import Emulated, build


@pytest.fixture(scope="session")
def sac_library(shared_folder: Path) -> ctypes.CDLL:
    return build(shared_folder / "sac", KERNEL, "-O2", form=FORMS[SAC][0], source="emulate_sac.cpp")


@pytest.fixture
def sac_device(sac_library: ctypes.CDLL) -> Emulated:
    return Emulated(sac_library, kernel=SAC_KERNEL)
