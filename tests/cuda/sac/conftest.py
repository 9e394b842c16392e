import ctypes

import pytest

from cycletime.cuda.sac import SAC_KERNEL
from tests.cuda.emulated import Emulated


@pytest.fixture
def sac_device(sac_library: ctypes.CDLL) -> Emulated:
    return Emulated(sac_library, kernel=SAC_KERNEL)
