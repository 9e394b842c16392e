"""The check of a card: it passes where the kernels are right, and names the run and what is wrong with it."""

import ctypes
from typing import Any

import numpy as np
import pytest

from cycletime.agents import PPOAgent, SACAgent
from cycletime.cli import main
from cycletime.cuda import check
from cycletime.cuda.check import faults, short_run
from cycletime.cuda.device import RunResult, find_device
from cycletime.cuda.layout import POSITION_WORDS, TASKS
from cycletime.cuda.ppo import PPO_KERNEL
from cycletime.cuda.sac import SAC_KERNEL
from tests.cuda.emulated import Emulated

pytestmark = pytest.mark.usefixtures("compiled_quickly")
SMALL = PPOAgent(batch=20, minibatch=7, epochs=1)


class Worn(Emulated):
    """Which writes another number into a weight of the run on one task each time, however often its slices end."""

    number = 0.5

    def finish(self) -> list[RunResult]:
        results = super().finish()
        for result in results:
            if result.run.record["task"] == list(TASKS).index("pendulum"):
                result.run.state[POSITION_WORDS] = self.number
                self.number += 1
        return results


def test_the_command_checks_all_tasks_of_both_kernels(
    library: ctypes.CDLL, sac_library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    devices: dict[Any, Emulated] = {
        PPO_KERNEL: Emulated(library),
        SAC_KERNEL: Emulated(sac_library, kernel=SAC_KERNEL),
    }
    monkeypatch.setattr(check, "find_device", devices.__getitem__)
    monkeypatch.setattr(check, "_AGENTS", (SMALL, SACAgent(warmup_steps=0)))
    monkeypatch.setattr(check, "_AGENT_STEPS", 20)
    assert main(["gpu", "check"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("an emulated card\n  compiler: g++\n    ok  reacher ppo 8ms\n")
    assert all(f"    ok  {task} {algorithm} " in told for task in TASKS for algorithm in ("ppo", "sac"))
    assert told.endswith("All 12 runs are finite, and the same in reverse order.\n")
    devices[PPO_KERNEL] = Worn(library)
    assert main(["gpu", "check"]) == 1
    told = capsys.readouterr().out
    assert ": its bits differ in the reverse order\n" in told
    assert told.endswith("\n1 of 12 runs failed: do not use the engine cuda on this card.\n")


def test_what_is_no_number_is_a_fault(library: ctypes.CDLL) -> None:
    device = Worn(library)
    device.number = np.nan
    assert list(faults(device, [short_run("pendulum", SMALL, 20)])) == ["not all of its numbers are finite"]


def test_without_a_card_the_command_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    find_device.cache_clear()
    assert main(["gpu", "check"]) == 2
    assert capsys.readouterr().err.startswith("cycletime: The engine cuda needs CuPy")
