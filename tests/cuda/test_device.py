"""What host and kernel agree on, and what is said of cards that cannot run the kernel."""

import ctypes
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.cuda import engine, kernels, layout, ppo
from cycletime.cuda.card import check_memory, import_cupy
from cycletime.cuda.device import Device, find_device
from cycletime.cuda.engine import H200_BLOCKS, CudaEngine
from cycletime.cuda.kernels import KERNEL, KERNEL_FILES, PPO, SAC, kernel_source
from cycletime.cuda.ppo import expected_s
from cycletime.cuda.run_batch import CudaRunBatch
from cycletime.errors import InputError
from tests.cuda.cards import CudaError, asked_cupy
from tests.cuda.device_checks.replay import BESIDE
from tests.cuda.emulated import Emulated, EmulatedCard, at_address
from tests.cuda.small import make_slice, make_spec


def test_both_sides_have_the_same_layout(library: ctypes.CDLL) -> None:
    assert library.run_bytes() == ppo.RUN.itemsize
    assert library.position_bytes() == layout.POSITION.itemsize
    assert library.launch_bytes() == ppo.PPO_KERNEL.launch.itemsize
    assert library.state_words() == ppo.STATE_WORDS
    assert library.scratch_words(1000) == ppo.scratch_words(1000)
    assert 4 * library.record_words() == layout.RECORD.itemsize
    assert 4 * library.report_words() == ppo.REPORT.itemsize
    assert 4 * library.row_words() == ppo.ROW.itemsize
    assert 4 * library.aside_words() == BESIDE.itemsize


def test_the_source_changes_with_any_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy would else go on with a kernel that was compiled from other headers."""
    before = {name: kernel_source(name) for name in KERNEL_FILES}
    shutil.copytree(KERNEL, tmp_path / "kernel")
    monkeypatch.setattr(kernels, "KERNEL", tmp_path / "kernel")
    for changed, others in {"physics.cuh": set(), "update.cuh": {SAC}, "sac/adam.cuh": {PPO}}.items():
        assert {name: kernel_source(name) for name in KERNEL_FILES} == before
        path = tmp_path / "kernel" / changed
        kept = path.read_bytes()
        path.write_bytes(kept + b"// changed\n")
        assert {name for name in KERNEL_FILES if kernel_source(name) == before[name]} == others
        path.write_bytes(kept)


@pytest.mark.parametrize(
    ("cupy", "sentence"),
    [
        (asked_cupy(0), "The engine cuda needs an NVIDIA GPU, and CUDA finds none here."),
        (asked_cupy(CudaError(100)), "The engine cuda needs an NVIDIA GPU, and CUDA finds none here."),
        (
            asked_cupy(CudaError(35)),
            "The NVIDIA driver here is too old for CuPy's CUDA: update it, or pip install cupy-cuda12x",
        ),
        (
            asked_cupy(CudaError(999)),
            "The engine cuda needs an NVIDIA GPU, and CUDA does not answer: cudaErrorSomething: words",
        ),
        (asked_cupy(CudaError(35), driver=0), "The engine cuda needs an NVIDIA GPU, and CUDA finds none here."),
        (asked_cupy(), "NVIDIA Tesla V100 has compute capability 7.0: the engine cuda needs at least 8.0."),
    ],
)
def test_a_card_that_cannot_be_used_gets_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    cupy: SimpleNamespace,
    sentence: str,
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(InputError) as told:
        import_cupy()
    assert str(told.value).startswith(sentence)
    assert "\n" not in str(told.value)


def test_a_card_that_can_be_used_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = asked_cupy(major=8)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert import_cupy() is cupy


def test_without_cupy_an_engine_says_what_to_install_and_what_runs_cost_on_an_h200(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    find_device.cache_clear()
    for make in (CudaRunBatch, CudaEngine().make_batch):
        with pytest.raises(InputError, match=r"not installed: pip install 'cycletime\[cuda\]'\.$"):
            make([make_spec()])
    spec = make_spec(batch=2000, minibatch=50, epochs=10)
    cost = CudaEngine().cost(spec)
    assert (cost.where, cost.runs_at_once) == ("an H200", H200_BLOCKS)
    assert CudaEngine().known_cost(spec) == cost
    learnings = -(-spec.env_steps // (2000 * 8))
    assert cost.agent_step_s * learnings * 2000 == pytest.approx(expected_s(spec))


def test_with_a_card_runs_cost_what_they_do_there(device: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find_device", lambda kernel: device)
    cost = CudaEngine().cost(make_spec())
    assert (cost.where, cost.runs_at_once) == ("", device.card.blocks)


def test_too_little_memory_is_told_with_both_numbers() -> None:
    check_memory("A card", 2**30, 2**30)
    with pytest.raises(InputError, match=r"^A card has 100 MiB free, and the runs need 1,024 MiB"):
        check_memory("A card", 100 * 2**20, 2**30)


def test_machines_with_jax_and_numpy_only_can_import_it() -> None:
    missing = ("pyarrow", "tyro", "rich", "gymnasium", "optax", "safetensors", "scipy", "matplotlib", "yaml")
    program = f"import sys; sys.modules.update(dict.fromkeys({missing})); import cycletime.cuda.run_batch"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_counts_are_read_and_forgotten() -> None:
    class Counting(EmulatedCard):
        """Records two episodes of the first run, and reports an update of the second."""

        def launch(self, argument: NDArray[Any], blocks: int) -> None:
            states = at_address(argument["states"][0], np.dtype(np.float32), 2 * ppo.STATE_WORDS).reshape(2, -1)
            records = at_address(argument["records"][0], layout.RECORD, 6).reshape(2, 3)
            layout.position_of(states[0])["records"], layout.position_of(states[1])["reports"] = 2, 1
            records["env_steps"] = [[1, 2, 3], [4, 5, 6]]

    specs, states = [make_spec(), make_spec(seed=1)], [np.zeros(ppo.STATE_WORDS, np.float32) for _ in range(2)]
    work = replace(make_slice(specs, states), most_records=3)
    results = Device(ppo.PPO_KERNEL, Counting(ctypes.CDLL(None))).train(work)
    assert [each.records["env_steps"].tolist() for each in results] == [[1, 2], []]
    assert [len(each.reports) for each in results] == [0, 1]
    assert not any(each.run.state.any() for each in results)


def test_a_cupy_that_cannot_be_imported_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('libnvrtc.so.13 is missing')\n")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        InputError, match=r"^The engine cuda needs CuPy, which cannot be imported: libnvrtc\.so\.13 is mi"
    ):
        import_cupy()
