"""Where a run of SAC lies changes no number of it."""

import ctypes
from pathlib import Path

import pytest

from cycletime.cuda.device import Slice
from cycletime.cuda.kernels import FORMS, KERNEL, SAC, Form
from cycletime.cuda.sac import SAC_KERNEL, describe_run
from tests.cuda.emulated import Emulated, build, slow_but_the_last
from tests.cuda.sac.small import about_to_learn, make_spec


@pytest.mark.parametrize("form", slow_but_the_last(FORMS[SAC][1:]))
def test_all_forms_give_the_same_bits(sac_library: ctypes.CDLL, shared_folder: Path, form: Form) -> None:
    """Acting and a gradient step; also with the threads in another order, which a missing barrier would show by."""
    other = build(shared_folder / f"sac-{form.shared_bytes}", KERNEL, form=form, source="emulate_sac.cpp")
    spec, found = make_spec(gradient_steps=1), set()
    for schedule, library in enumerate((sac_library, other), 7):
        device = Emulated(library, schedule=schedule, kernel=SAC_KERNEL)
        run = device.place(describe_run(spec), *about_to_learn(spec))
        device.train(Slice([run], 64, 64, 3600.0, most_periods=1))
        found.add(device.state(run).tobytes())
    assert len(found) == 1
