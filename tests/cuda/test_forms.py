"""Where a run's data lie changes no number of it, and each card takes the fastest form that fits."""

import ctypes
import sys
from pathlib import Path
from typing import Any

import pytest

from cycletime.cuda.card import choose_form
from cycletime.cuda.kernels import FORMS, KERNEL_FILES, PPO, SAC, form_within
from cycletime.cuda.ppo import initial_state_of
from cycletime.errors import InputError, NoGpuError
from tests.cuda.cards import SHARED_BYTES, asked_cupy, cupy_of
from tests.cuda.device_checks.limits import shared_bytes_of
from tests.cuda.emulated import Emulated, build, slow_but_the_last
from tests.cuda.small import learn, make_psi, make_slice, make_spec

CASES: dict[str, dict[str, Any]] = {
    "chunks that pass at once": {"batch": 70, "minibatch": 25, "epochs": 1},
    "chunks that pass in parts": {"task": "double-pendulum", "batch": 100, "minibatch": 50, "epochs": 1},
    "slices of several chunks, and a short one": {"batch": 150, "minibatch": 130, "epochs": 1},
}


@pytest.fixture(scope="module", params=slow_but_the_last(FORMS[PPO][1:]))
def library_of_form(request: pytest.FixtureRequest, shared_folder: Path) -> ctypes.CDLL:
    """The kernel in another form than the full one."""
    return build(shared_folder / f"form-{request.param.shared_bytes}", form=request.param)


@pytest.mark.parametrize("case", CASES)
def test_all_forms_give_the_same_bits(device: Emulated, library_of_form: ctypes.CDLL, case: str) -> None:
    """Also with the threads in another order, which a missing barrier would show by."""
    spec = make_spec(**CASES[case])
    other = Emulated(library_of_form, schedule=99)
    assert learn(other, spec, periods=2).bits == learn(device, spec, periods=2).bits


def test_blocks_keep_what_lies_in_device_memory_apart(library_of_form: ctypes.CDLL) -> None:
    """Two runs in two blocks, and in one block after one another."""
    specs = [make_spec(batch=20, epochs=1), make_spec("double-pendulum", batch=30, minibatch=7, epochs=1)]
    work = make_slice(specs, [initial_state_of(make_psi(2)), initial_state_of(make_psi(1))], periods=2)
    one, other = (
        [each.run.state.tobytes() for each in Emulated(library_of_form, blocks).train(work)] for blocks in (1, 2)
    )
    assert one == other


@pytest.mark.parametrize("card", SHARED_BYTES)
@pytest.mark.parametrize("kernel", KERNEL_FILES)
def test_a_card_takes_the_fastest_form_that_it_has_room_for(
    monkeypatch: pytest.MonkeyPatch, card: str, kernel: str
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy_of(card))
    form = choose_form(kernel)
    assert form.shared_bytes <= SHARED_BYTES[card]
    faster = FORMS[kernel][: FORMS[kernel].index(form)]
    assert all(each.shared_bytes > SHARED_BYTES[card] for each in faster)


@pytest.mark.parametrize("kernel", KERNEL_FILES)
def test_forms_differ_and_the_faster_takes_more(kernel: str) -> None:
    sizes = [form.shared_bytes for form in FORMS[kernel]]
    assert sizes == sorted(set(sizes), reverse=True), "or a slower one would never be taken"
    assert form_within(kernel, 1000) is None


def test_a_card_with_less_than_any_form_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small = asked_cupy(major=8, sharedMemPerBlockOptin=64 * 1024)
    monkeypatch.setitem(sys.modules, "cupy", small)
    with pytest.raises(NoGpuError, match=r"^NVIDIA Tesla V100 gives a .* 64 KB .* needs 85\.62 KB, which cards"):
        choose_form(SAC)


def test_an_amount_is_in_the_units_of_nvidias_tables() -> None:
    assert {shared_bytes_of(text) for text in ("99KB", "99 KB", "99KiB", "101376")} == {SHARED_BYTES["RTX 4090"]}
    for text in ("", "99MB", "1.5KB", "-1", "KB", "9" * 30):
        with pytest.raises(InputError, match=r"^The shared memory is '.*': give an amount such as 99KB"):
            shared_bytes_of(text)
