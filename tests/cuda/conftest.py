import ctypes
from pathlib import Path

import pytest

from cycletime.cuda.kernels import FORMS, KERNEL, SAC
from tests.cuda.emulated import Emulated, build
from tests.training.engines.conftest import after as after
from tests.training.engines.conftest import left_by as left_by


@pytest.fixture(scope="session")
def library(shared_folder: Path) -> ctypes.CDLL:
    return build(shared_folder)


@pytest.fixture(scope="session")
def sac_library(shared_folder: Path) -> ctypes.CDLL:
    return build(shared_folder / "sac", KERNEL, "-O2", form=FORMS[SAC][0], source="emulate_sac.cpp")


@pytest.fixture
def device(library: ctypes.CDLL) -> Emulated:
    return Emulated(library)
