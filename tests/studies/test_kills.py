"""A study whose processes, all of them, are killed at random moments and begun again: nothing is lost or done twice."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cycletime.studies.study_folder import StudyFolder
from tests.studies.slow_workers import slow_workers
from tests.studies.small import bits_of, names_of

PATIENCE_S = 120.0
STUDY = """\
name = "kills"
task = "reacher"
algorithm = "actor-critic"
dts = ["32ms"]
seeds = {runs}
env_steps = {env_steps}
[set]
hidden = [8]
"""


@dataclass
class Killed:
    """A study that is killed again and again."""

    folder: Path
    command: list[str]
    environment: dict[str, str]
    rng: random.Random
    kills: list[str] = field(default_factory=list)
    finished: dict[str, Any] = field(default_factory=dict)
    """By run, all that it had when it was first seen to be done."""

    def live(self) -> bool:
        """Begin it, and kill the scheduler and all its workers after some time; whether it came to its end before."""
        moment = self.rng.choice(["start", "training", "checkpoint", "checkpoint", "checkpoint"])
        before, began = (self._trainings(), self._checkpoints()), time.monotonic()
        process = subprocess.Popen(self.command, env=self.environment, stderr=subprocess.DEVNULL, text=True)
        try:
            while process.poll() is None and time.monotonic() - began < PATIENCE_S:
                trains, saves = self._trainings() != before[0], bool(self._checkpoints() - before[1])
                if moment == "start" or (trains if moment == "training" else saves):
                    break
                time.sleep(0.005)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=self.rng.uniform(0, 1.5))
        finally:
            victims = [process.pid, *children_of(process.pid)]
            self.rng.shuffle(victims)
            for victim in victims:
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
            process.wait()
        for victim in victims:
            wait_for_end(victim)
        self._look()
        if process.returncode == 0:
            return True
        self.kills.append(
            f"kill {len(self.kills) + 1}: {moment}, {time.monotonic() - began:.2f} s, {len(victims) - 1} workers, "
            f"{len(self.finished)} done, {len(list(self.folder.glob('runs/*/checkpoints')))} stopped"
        )
        print(self.kills[-1])
        return False

    def _trainings(self) -> int:
        """How many bytes the log of trainings has."""
        log = Path(self.environment["TRAININGS"])
        return log.stat().st_size if log.exists() else 0

    def _checkpoints(self) -> set[int]:
        """The checkpoints that there are, by their files."""
        found = set()
        for manifest in self.folder.glob("runs/*/checkpoints/0*/manifest.json"):
            with suppress(OSError):
                found.add(manifest.stat().st_ino)
        return found

    def _look(self) -> None:
        """A finished run must never be lost, nor change."""
        now = bits_of(self.folder)
        assert self.finished.items() <= now.items()
        self.finished = now


def children_of(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def wait_for_end(pid: int) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return
        except OSError:
            return
        time.sleep(0.005)
    raise AssertionError(f"{pid} lives")


def killed_and_compared(tmp_path: Path, runs: int, kills: int, env_steps: int, seed: int) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(runs=runs, env_steps=env_steps))
    environment = slow_workers(tmp_path, 0.005)
    command = [sys.executable, "-m", "cycletime", "study", "run", str(tmp_path / "study.toml"), "--workers", "2"]
    killed = Killed(
        tmp_path / "killed", [*command, "--out", str(tmp_path / "killed")], environment, random.Random(seed)
    )
    while len(killed.kills) < kills and not killed.live():
        pass
    assert len(killed.kills) > kills / 2, "it came to its end too soon"
    subprocess.run(killed.command, env=environment, check=True, capture_output=True)
    killed._look()

    trainings = (tmp_path / "trainings").read_text().split()
    whole = tmp_path / "whole"
    subprocess.run([*command, "--out", str(whole)], env=environment, check=True, capture_output=True)
    assert killed.finished == bits_of(whole)
    folder = StudyFolder.open(killed.folder)
    names = names_of(folder)
    assert (len(names), sorted(killed.finished)) == (runs, sorted(names))
    sessions = {name: int(folder.store.result(name)["sessions"]) for name in names}
    assert not list(folder.runs.iterdir())
    # Every kill ends at most the two runs in hand, so that no more trainings than these are begun again.
    begun_again = len(trainings) - runs
    print(f"{runs} runs, {len(killed.kills)} kills, {len(trainings)} trainings, most sessions {max(sessions.values())}")
    assert set(trainings) == set(names)
    assert begun_again <= 2 * kills
    assert max(sessions.values()) > 1, "no run was resumed from a checkpoint: make them longer"
    assert all(trainings.count(name) >= count for name, count in sessions.items())


@pytest.mark.slow  # a minute of both cores
def test_a_study_whose_processes_are_killed_is_the_same_in_the_end(tmp_path: Path) -> None:
    killed_and_compared(tmp_path, runs=12, kills=4, env_steps=6400, seed=20)


@pytest.mark.slow
def test_sixty_runs_and_twenty_kills(tmp_path: Path) -> None:
    killed_and_compared(tmp_path, runs=60, kills=20, env_steps=6400, seed=60)
