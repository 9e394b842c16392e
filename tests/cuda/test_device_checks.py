"""The check of a card: silent where the kernel is right, and loud for each kind of fault."""

import ctypes
import shutil
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.cuda.device import Slice
from cycletime.cuda.kernels import KERNEL
from cycletime.cuda.layout import TASKS
from tests.cuda.device_checks import ppo_checks
from tests.cuda.device_checks.__main__ import print_checks
from tests.cuda.device_checks.ppo_checks import Sizes, checks, full_sizes, run_of
from tests.cuda.device_checks.replay import Check
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
        self.card.schedule += 1
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
    return ppo_checks._in_jax(SMALL.training, SMALL.jax_seeds)


@pytest.fixture(autouse=True)
def once_in_jax(in_jax: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ppo_checks, "_in_jax", lambda spec, seeds: in_jax)


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
    monkeypatch.setattr(ppo_checks, "_changed_apart", lambda *_: next(apart))
    found = checks(Emulated(faulty), replace(SMALL, batches=SMALL.batches[:1]))
    assert not next(check for check in found if "what is learned" in check.name).passed


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
