"""The check of a card: silent where the kernel is right, and loud for each kind of fault."""

import ctypes
import json
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.cli import main
from cycletime.cuda import check as checking
from cycletime.cuda import sac_check as sac_checking
from cycletime.cuda.card import choose_form
from cycletime.cuda.check import Sizes, checks, full_sizes, print_checks, run_of
from cycletime.cuda.device import Slice, find_device
from cycletime.cuda.kernels import KERNEL, PPO, SAC
from cycletime.cuda.layout import Kernel
from cycletime.cuda.replay import Check
from cycletime.cuda.tasks import TASKS
from tests.cuda.cards import cupy_of
from tests.cuda.emulated import Emulated, build

pytestmark = pytest.mark.usefixtures("compiled_quickly")
FAULTS = {
    "observations": (
        "reacher.cuh",
        "= 0.05f * clipped(action[0]",
        "= (fault == {} ? 0.0502f : 0.05f) * clipped(action[0]",
    ),
    "rewards": ("reacher.cuh", "0.125f * cost", "(fault == {} ? 0.13f : 0.125f) * cost"),
    "that are wrong": ("rollout.cuh", ">= limit_steps", ">= limit_steps - (fault == {} ? 100 : 0)"),
    "actions": (
        "rollout.cuh",
        "mean[i] += last_bias[i]",
        "mean[i] += last_bias[i] + (fault == {} && lane == 5 ? 0.1f : 0)",
    ),
    "values": ("advantages.cuh", "run.trace_decay;", "(fault == {} ? 0.949f : run.trace_decay);"),
    "what is learned": ("update.cuh", "0.999f * square", "(fault == {} ? 0.998f : 0.999f) * square"),
    "that differ": (
        "advantages.cuh",
        "machine::wait_for_block();\n    if (thread == 0)",
        "if (fault != {}) machine::wait_for_block();\n    if (thread == 0)",
    ),
    "mean return": ("rollout.cuh", "episode_return += reward", "episode_return += fault == {} ? 2 * reward : reward"),
}
"""By words of the check that must find it: a file of the kernel, and what is put in the place of what."""
SMALL = Sizes(
    batches=(
        run_of("reacher", "48ms", batch=100, minibatch=37, epochs=2),
        run_of("double-pendulum", "12ms", batch=80, minibatch=70, epochs=1),
    ),
    ordered=(
        run_of("reacher", "64ms", 1500, 0, batch=20, minibatch=7, epochs=1),
        run_of("double-pendulum", "16ms", 200, 1, batch=20, minibatch=20, epochs=1),
        run_of("reacher", "64ms", 900, 2, batch=10, minibatch=10, epochs=1),
    ),
    training=run_of("double-pendulum", "64ms", 1000, batch=30, minibatch=30, epochs=1),
    kernel_seeds=5,
    jax_seeds=3,
    slice_s=0.001,
)


class Restless(Emulated):
    """Whose threads run in another order each time."""

    def begin(self, work: Slice) -> None:
        self.memory.schedule += 1
        super().begin(work)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The kernel with all faults in it, none of which shows until it is chosen."""
    folder = tmp_path_factory.mktemp("faulty")
    kernel = folder / "kernel"
    shutil.copytree(KERNEL, kernel)
    for number, (name, old, new) in enumerate(FAULTS.values(), 1):
        text = (kernel / name).read_text()
        assert text.count(old) == 1, f"{old!r} stands in {name} once"
        (kernel / name).write_text(text.replace(old, new.format(number)))
    (folder / "fault.h").write_text('extern "C" { inline int fault = 0; }')
    return build(folder, kernel, "-include", str(folder / "fault.h"))


@pytest.fixture(scope="module")
def in_jax() -> NDArray[np.float64]:
    return checking._in_jax(SMALL.training, SMALL.jax_seeds)


@pytest.fixture(autouse=True)
def once_in_jax(in_jax: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_in_jax", lambda spec, seeds: in_jax)


def test_a_kernel_that_is_right_passes_all(faulty: ctypes.CDLL, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_checks(Restless(faulty), SMALL) == 0
    told = capsys.readouterr().out
    assert "an emulated card\n  compiler: g++\n" in told
    assert told.endswith("All 14 checks passed.\n")
    assert "FAILED" not in told


@pytest.mark.parametrize("words", FAULTS)
def test_each_fault_is_found(faulty: ctypes.CDLL, words: str) -> None:
    chosen = ctypes.c_int.in_dll(faulty, "fault")
    chosen.value = list(FAULTS).index(words) + 1
    batches = () if words in ("that differ", "mean return") else SMALL.batches[:1]
    try:
        found = checks(Restless(faulty), replace(SMALL, batches=batches))
        assert any(words in check.name and not check.passed for check in found)
    finally:
        chosen.value = 0


def test_what_is_no_number_after_one_of_the_learnings_is_found(
    faulty: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = iter((np.nan, 0.0))
    monkeypatch.setattr(checking, "_changed_apart", lambda *_: next(apart))
    found = checks(Emulated(faulty), replace(SMALL, batches=SMALL.batches[:1]))
    assert not next(check for check in found if "what is learned" in check.name).passed


def test_the_command_tells_all_in_json(
    faulty: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_in(faulty, monkeypatch)
    monkeypatch.setattr(checking, "full_sizes", lambda: replace(SMALL, batches=SMALL.batches[1:]))
    assert main(["gpu", "check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["card"], told["compiler"], told["passed"]) == ("an emulated card", "g++", True)
    assert told["shared memory, SAC"] == "a form of SAC's"
    assert len(told["checks"]) == 9
    assert told["checks"][-1]["name"] == "of a card with SAC's kernel"
    assert set(told["checks"][0]) == {"name", "found", "most", "unit", "passed"}


def test_the_command_checks_the_forms_for_a_smaller_card(
    faulty: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = _put_in(faulty, monkeypatch)
    monkeypatch.setattr(checking, "checks", lambda device, sizes: [Check("of PPO's kernel", 0.5, 1.0)])
    assert main(["gpu", "check", "--shared-memory", "99KB"]) == 0
    assert limits == [101_376, 101_376]
    assert capsys.readouterr().out.endswith("All 2 checks passed.\n")
    assert main(["gpu", "check", "--shared-memory", "64KB"]) == 2
    assert capsys.readouterr().err == (
        "cycletime: H200 gives a thread block 64 KB of shared memory: the engine cuda needs 96.02 KB, which cards of "
        "compute capability 8.0 and more have.\n"
    )


def _put_in(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """A card with much shared memory; what of it may be taken, each time that one looks for it."""
    limits: list[int | None] = []

    memory = SimpleNamespace(name="a card with SAC's kernel", about={"shared memory": "a form of SAC's"})
    devices: dict[str, Any] = {PPO: Emulated(library), SAC: SimpleNamespace(memory=memory)}

    def find(kernel: Kernel, most_bytes: int | None) -> Any:  # noqa: ANN401
        choose_form(kernel.source, most_bytes)
        limits.append(most_bytes)
        return devices[kernel.source]

    monkeypatch.setitem(sys.modules, "cupy", cupy_of("H200"))
    monkeypatch.setattr(checking, "find_device", find)
    monkeypatch.setattr(sac_checking, "checks", lambda device: [Check(f"of {device.memory.name}", 0.5, 1.0)])
    return limits


def test_without_a_card_the_command_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    find_device.cache_clear()
    assert main(["gpu", "check"]) == 2
    assert capsys.readouterr().err.startswith("cycletime: The engine cuda needs CuPy")


def test_what_is_not_a_number_does_not_pass() -> None:
    assert Check("one", 1e-5, 1e-4).passed
    assert not Check("two", 2e-4, 1e-4).passed
    assert not Check("three", float("nan"), 1e-4).passed


def test_a_card_is_checked_with_all_tasks_and_short_last_slices() -> None:
    for specs in (full_sizes().batches, full_sizes().ordered):
        assert {spec.world.name for spec in specs} == set(TASKS)
    told = [(spec.world.name, spec.as_json()["agent"]) for spec in full_sizes().batches]
    odd = {task for task, agent in told if (agent["batch"], agent["minibatch"]) == (1700, 37)}
    assert odd == {"reacher", "double-pendulum", "pendulum"}
    assert all(
        spec.engine.name == "cuda" for spec in (*full_sizes().batches, *full_sizes().ordered, full_sizes().training)
    )
