"""Toy environments, and runs that are killed at random moments, resumed, and compared with runs that nobody touched."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from numpy.typing import NDArray

from cycletime.agents import ActorCriticAgent
from cycletime.duration import Duration
from cycletime.training import compiled_loop, stepped_loop
from cycletime.training.observers import Progress, Status, TrainingObserver
from cycletime.training.run_folder import RunFolder
from cycletime.training.sealed_json import check_seal
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import GymnasiumEnv

FILES = ("spec.json", "curve.parquet", "metrics.jsonl", "policy.safetensors")
Moment: TypeAlias = Literal["start", "checkpoint", "writing"]
"""Some time after the process began; some time after a checkpoint further on; while a checkpoint is written."""
KilledAndResumed: TypeAlias = Callable[..., None]
PATIENCE_S = 120.0


class Walk(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """A noisy walk of twenty steps that follows from the seed of its reset."""

    def __init__(self) -> None:
        self.observation_space, self.action_space = Box(-9, 9, (2,)), Box(-1, 1, (1,))
        self.episode = -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.steps, self.episode = 0.0, 0, self.episode + 1
        return self._seen(), {}

    def step(self, action: NDArray[np.float32]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place, self.steps = 0.9 * self.place + 0.3 * float(action[0]) + self.noise(), self.steps + 1
        return self._seen(), -(self.place**2), False, self.steps == 20, {}

    def noise(self) -> float:
        return float(self.np_random.normal(0, 0.1))

    def _seen(self) -> NDArray[np.float32]:
        return np.array([self.place, self.steps / 20], np.float32)


class Unseeded(Walk):
    """Its noise is another one each time."""

    def noise(self) -> float:
        return float(np.random.default_rng().normal(0, 0.1))


class Wearing(Walk):
    """It remembers how often it was used, like wrappers that keep statistics."""

    def noise(self) -> float:
        return super().noise() / (1 + self.episode)


class Endless(Walk):
    """Its episodes never end."""

    def step(self, action: NDArray[np.float32]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, *_, info = super().step(action)
        return observation, reward, False, False, info


for toy in (Walk, Unseeded, Wearing, Endless):
    gymnasium.register(f"toys/{toy.__name__}-v0", entry_point=toy)  # type: ignore[arg-type]  # it takes no options


@pytest.fixture
def walk() -> RunSpec:
    """A run that takes no time: fifteen episodes of twenty steps."""
    return RunSpec(
        world=GymnasiumEnv("toys/Walk-v0", Duration("50ms")),
        agent=ActorCriticAgent(hidden=(8,)),
        dt="50ms",
        env_steps=300,
        seed=3,
        engine=EngineSpec("stepped"),
    )


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One learning period, or one episode, at a time, so that there are many moments to stop at."""
    monkeypatch.setattr(compiled_loop, "CHUNK_S", 0)
    monkeypatch.setattr(compiled_loop, "MOST_PERIODS", 8)
    monkeypatch.setattr(stepped_loop, "CHUNK_S", 0)


@dataclass
class Ear(TrainingObserver):
    """A listener that writes down what it hears, and then does something at each update."""

    does: Callable[[], object] = lambda: None
    heard: list[Any] = field(default_factory=list)

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        self.heard.append(("begin", resumed_from))

    def update(self, progress: Progress) -> None:
        self.heard.append(progress)
        self.does()

    def remark(self, sentence: str) -> None:
        self.heard.append(sentence)

    def end(self, status: Status) -> None:
        self.heard.append(("end", status))

    @property
    def updates(self) -> list[Progress]:
        return [each for each in self.heard if isinstance(each, Progress)]

    @property
    def remarks(self) -> list[str]:
        return [each for each in self.heard if isinstance(each, str)]


@pytest.fixture
def make_ear() -> type[Ear]:
    return Ear


@pytest.fixture
def after() -> Callable[[int], Callable[[], bool]]:
    """A question that is answered by yes when it is asked for the n-th time."""

    def make(count: int) -> Callable[[], bool]:
        answers = iter([False] * (count - 1) + [True])
        return lambda: next(answers)

    return make


@pytest.fixture
def left_by() -> Callable[[RunFolder], dict[str, Any]]:
    """All that is the same for runs that are the same."""

    def read(folder: RunFolder) -> dict[str, Any]:
        result = folder.result()
        for name in ("resumed", "remarks", "sessions", "wall_s", "finished"):
            del result[name]
        return {**{name: (folder.path / name).read_bytes() for name in FILES}, "result": result}

    return read


class FinishedError(Exception):
    """The run came to its end before it could be killed."""


@dataclass(frozen=True)
class Kill:
    moment: Moment
    seconds: float
    """Since the process began."""
    env_steps: int | None
    """Of the newest checkpoint then."""
    writing: bool
    """Whether a checkpoint was being written."""


@dataclass
class Victim:
    """A run that is killed again and again."""

    words: list[str]
    env_steps: int
    out: Path
    rng: random.Random
    kills: list[Kill] = field(default_factory=list)
    leftover: set[tuple[str, int]] = field(default_factory=set)
    """What an earlier kill left unfinished."""

    @property
    def folder(self) -> Path:
        found = list(self.out.glob("*/spec.json"))
        return found[0].parent if found else self.out / "not-yet"

    @property
    def reached(self) -> int | None:
        """The environment steps of the newest checkpoint, if there is any."""
        try:
            newest = max((self.folder / "checkpoints").glob("[0-9]*/manifest.json"))
            told: int = json.loads(newest.read_text())["env_steps"]
        except (ValueError, FileNotFoundError):  # there is none, or the run has just been finished
            return None
        return told

    @property
    def unfinished(self) -> set[tuple[str, int]]:
        """By name and inode, what is being written, or was when it was killed."""
        found = set()
        for path in (self.folder / "checkpoints").glob(".writing-*"):
            with suppress(FileNotFoundError):
                found.add((path.name, path.stat().st_ino))
        return found

    @property
    def writing(self) -> bool:
        return bool(self.unfinished - self.leftover)

    def live_until(self, moment: Moment, moments: int) -> None:
        """Start or resume it, and kill it at a moment."""
        words = ["train", *self.words, "--env-steps", str(self.env_steps), "--out", str(self.out)]
        command = words if self.reached is None else ["resume", str(self.folder)]
        with (self.out / "log").open("w") as log:
            command = [sys.executable, "-m", "cycletime", *command, "--checkpoint-every", "1ms"]
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        began, self.leftover = time.monotonic(), self.unfinished
        try:
            self._wait_for(moment, moments, process)
        finally:
            process.kill()
            process.wait()
        if (self.folder / "result.json").exists():
            raise FinishedError
        self.kills.append(Kill(moment, round(time.monotonic() - began, 2), self.reached, self.writing))
        print(f"kill {len(self.kills)}: {self.kills[-1]}")

    def _wait_for(self, moment: Moment, moments: int, process: "subprocess.Popen[bytes]") -> None:
        share, before = self.rng.uniform(0, (len(self.kills) + 1) / (moments + 1)), self.reached
        if moment == "start":
            self._until(lambda: False, process, self.rng.uniform(0.3, 5))
        elif moment == "checkpoint":
            self._until(lambda: (now := self.reached or 0) != before and now >= share * self.env_steps, process)
            self._until(lambda: False, process, self.rng.uniform(0, 0.7))
        else:
            self._until(lambda: self._is_caught_writing(process), process)

    def _is_caught_writing(self, process: "subprocess.Popen[bytes]") -> bool:
        """Hold it as soon as it writes, to see whether it was held in time."""
        if not self.writing:
            return False
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.01)  # a signal takes a moment to be heard
        if self.writing:
            return True
        process.send_signal(signal.SIGCONT)
        return False

    def _until(
        self, is_so: Callable[[], bool], process: "subprocess.Popen[bytes]", seconds: float | None = None
    ) -> None:
        """Wait for something to be so, or for a time to pass."""
        ends = time.monotonic() + (PATIENCE_S if seconds is None else seconds)
        while not is_so() and time.monotonic() < ends:
            status = process.poll()
            if status == 0:
                raise FinishedError
            assert status is None, (self.out / "log").read_text()
            time.sleep(0.001)
        assert seconds is not None or is_so(), f"nothing after {PATIENCE_S} s: {(self.out / 'log').read_text()}"

    def finish(self) -> dict[str, Any]:
        """Resume it to its end; its result."""
        run_for_real("resume", str(self.folder))
        result: dict[str, Any] = json.loads((self.folder / "result.json").read_text())
        return result


def run_for_real(*words: str) -> None:
    command = [sys.executable, "-m", "cycletime", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def moments_of(count: int, rng: random.Random) -> list[Moment]:
    """Each kind in turn, in any order; most of them past the first checkpoint."""
    kinds: list[Moment] = ["checkpoint", "writing", "start", "checkpoint"]
    moments = [kinds[place % len(kinds)] for place in range(count)]
    rng.shuffle(moments)
    return moments


def kill_and_resume(words: str, env_steps: int, kills: int, out: Path, seed: int) -> Victim:
    """Kill a run so often; where a fast machine finishes it before, a longer one."""
    for attempt in range(4):
        rng = random.Random(seed)
        victim = Victim(words.split(), env_steps * 4**attempt, out / f"killed-{attempt}", rng)
        victim.out.mkdir()
        try:
            for moment in moments_of(kills, rng):
                victim.live_until(moment, kills)
        except FinishedError:
            print(f"finished after {len(victim.kills)} kills: once more, four times as long")
            continue
        return victim
    raise AssertionError("the run is always finished too soon")


@pytest.fixture
def survives_kills(tmp_path: Path) -> KilledAndResumed:
    """Kill a run, resume it to its end, and compare all that it leaves with a run that was never killed."""

    def check(words: str, env_steps: int, kills: int) -> None:
        seed = int.from_bytes(os.urandom(4))
        print(f"seed of the moments: {seed}")
        victim = kill_and_resume(words, env_steps, kills, tmp_path, seed)
        assert sum(kill.env_steps is not None for kill in victim.kills) >= kills / 2, "too few past a checkpoint"
        assert any(kill.writing for kill in victim.kills), "none while a checkpoint was written"
        result = victim.finish()
        run_for_real("train", *victim.words, "--env-steps", str(victim.env_steps), "--out", str(tmp_path / "whole"))
        whole = next((tmp_path / "whole").glob("*/spec.json")).parent
        assert whole.name == victim.folder.name
        files = sorted(path.name for path in whole.iterdir())
        assert files == sorted(path.name for path in victim.folder.iterdir())
        for name in FILES:
            assert (whole / name).read_bytes() == (victim.folder / name).read_bytes(), name
        expected, result = check_seal(json.loads((whole / "result.json").read_text())), check_seal(result)
        assert (expected["resumed"], result["resumed"]) == ("never", "resumed, identical")
        assert result["sessions"] > 1
        for name in ("resumed", "sessions", "wall_s", "finished"):
            del expected[name], result[name]
        assert result == expected

    return check
