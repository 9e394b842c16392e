"""Every command that trains, killed again and again with environments that start processes: the same in the end, and
nothing is left running.

    pytest -m slow -s tests/studies/test_child_kills.py
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cycletime.training.run_folder import RunFolder
from tests.studies.small import bits_of
from tests.studies.test_hangs import is_there
from tests.studies.test_kills import children_of

PATIENCE_S = 300.0
ENVS = """
import multiprocessing, os, subprocess, sys, time
import gymnasium, numpy as np
from examples.toy_arm import ToyArm


def note(pid):
    with open(os.environ["STARTED"], "a") as file:
        file.write(f"{pid}\\n")


class Forks:
    def start(self):
        fork = multiprocessing.get_context("fork")
        self.pipe, theirs = fork.Pipe()
        self.helper = fork.Process(target=self.serve, args=[theirs])
        self.helper.start()
        note(self.helper.pid)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                note(os.getpid())
                time.sleep(1000)
            os._exit(0)
        os.wait()

    def serve(self, pipe):
        while True:
            pipe.send(pipe.recv() / 2)

    def ask(self, number):
        self.pipe.send(number)
        return self.pipe.recv()

    def close(self):
        self.helper.terminate()
        self.helper.join()


class Opens:
    def start(self):
        words = [sys.executable, "-S", "-c", "while True: print(float(input()) / 2, flush=True)"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.helper = subprocess.Popen(words, text=True, **pipes)
        note(self.helper.pid)
        note(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid)

    def ask(self, number):
        self.helper.stdin.write(f"{number}\\n")
        self.helper.stdin.flush()
        return float(self.helper.stdout.readline())


class Point(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self):
        self.start()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.env_steps = self.np_random.uniform(-1, 1), 0
        return np.array([self.place], np.float32), {}

    def step(self, action):
        time.sleep(0.0005)
        self.place, self.env_steps = self.place + 0.2 * self.ask(float(action[0])), self.env_steps + 1
        truncated = self.env_steps >= 25
        return np.array([self.place], np.float32), -abs(self.place), False, truncated, {}


class Arm(ToyArm):
    def __init__(self):
        super().__init__()
        self.start()

    def send(self, action):
        super().send([2 * self.ask(float(action[0]))])


for helpers in (Forks, Opens):
    for kind in (Point, Arm):
        name = f"{helpers.__name__}{kind.__name__}"
        made = type(name, (helpers, kind), {})
        gymnasium.register(f"{name}-v0", made, max_episode_steps=None)
"""
KEYS = 'env = "child_envs:{env}Point-v0"\nenv_dt = "40ms"\n'
STUDY = KEYS + 'name = "kills"\nalgorithm = "actor-critic"\ndts = ["40ms", "80ms"]\nseeds = 3\nenv_steps = 2500\n'
TUNING = (
    KEYS + 'name = "kills"\nalgorithm = "ppo"\ndt = "40ms"\nseeds = 1\nfresh_seeds = 2\nenv_steps = 1500\n'
    "[tuned]\nbatch = 200\nminibatch = 50\ndiscount = [0.9, 0.99]\n"
)
PPO = ["--algorithm", "ppo", "--batch", "200", "--minibatch", "50"]
LITTLE = ["--algorithm", "ppo", "--batch", "20", "--minibatch", "10"]


def commands(env: str, folder: Path) -> dict[str, Callable[[Path], list[str]]]:
    """By name, the words of a command that trains into a folder."""
    (folder / "study.toml").write_text(STUDY.format(env=env))
    (folder / "tuning.toml").write_text(TUNING.format(env=env))
    point = ["--env", f"child_envs:{env}Point-v0", "--env-dt", "40ms"]
    arm = [
        "--env",
        f"child_envs:{env}Arm-v0",
        "--env-dt",
        "20ms",
        "--engine",
        "real-time",
        "--dt",
        "200ms",
    ]  # busy or not
    advice = ["--tuned-at", "40ms", "--dts", "80ms", "--env-steps", "1500", "--simulated-hours", "0.15", "--simulation"]
    often = ["--checkpoint-every", "300ms", "--resume"]
    return {
        "train": lambda out: ["train", *point, *PPO, "--dt", "40ms", "--env-steps", "6000", *often, "--out", str(out)],
        "study": lambda out: ["study", "run", str(folder / "study.toml"), "--workers", "2", "--out", str(out)],
        "tune": lambda out: ["tune", str(folder / "tuning.toml"), "--workers", "2", "--out", str(out)],
        "advise": lambda out: ["advise", *point, *PPO, *advice, "--first-seeds", "2", "--out", str(out)],
        "robot": lambda out: ["train", *arm, *LITTLE, "--env-steps", "400", *often, "--out", str(out)],
    }


@dataclass
class Killer:
    """Kills a command and its workers, or some of them."""

    name: str
    words: Callable[[Path], list[str]]
    folder: Path
    rng: random.Random
    environment: dict[str, str]
    whole: Any = None
    kills: int = 0
    ends: int = 0
    places: list[Path] = field(default_factory=list)

    @property
    def started(self) -> list[int]:
        file = Path(self.environment["STARTED"])
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    def run(self, kills: int) -> None:
        self.whole = self.finish()
        while self.kills < kills:
            if not self.places or self.live():
                if self.places:
                    self.compare()
                self.places.append(self.folder / f"{self.name}-{len(self.places)}")
        subprocess.run(self.command(self.places[-1]), env=self.environment, check=True, capture_output=True)
        self.compare()

    def command(self, out: Path) -> list[str]:
        return [sys.executable, "-m", "cycletime", *self.words(out)]

    def finish(self) -> Any:  # noqa: ANN401 - whatever is compared
        out = self.folder / f"{self.name}-whole"
        subprocess.run(self.command(out), env=self.environment, check=True, capture_output=True)
        self.nothing_is_left()
        return self.bits(out)

    def live(self) -> bool:
        """Begin or go on, and kill; whether it came to its end before."""
        before, began = len(self.started), time.monotonic()
        with subprocess.Popen(
            self.command(self.places[-1]), env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            wait_for_env = self.rng.random() < 0.8
            while wait_for_env and process.poll() is None and len(self.started) == before:
                assert time.monotonic() - began < PATIENCE_S
                time.sleep(0.005)
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.rng.uniform(0, 4))
            if process.poll() is None:
                self.kills += 1
                workers = children_of(process.pid)
                victims = [[process.pid], [process.pid, *workers], workers[:1], workers[:1]][self.rng.randrange(4)]
                for pid in victims or [process.pid]:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if process.pid not in victims and victims:
                    self.wait(lambda: not any(map(is_there, victims)))
                    process.kill()
        self.nothing_is_left()
        return process.returncode == 0

    def nothing_is_left(self) -> None:
        started = self.started
        self.wait(lambda: not any(map(is_there, started)))
        # Workers whose command was killed save and leave.
        self.wait(lambda: not [pid for pid in all_of(self.environment["STARTED"]) if is_there(pid)])

    def wait(self, what: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not what():
            assert time.monotonic() < until, f"{self.name}: left running"
            time.sleep(0.01)

    def compare(self) -> None:
        self.ends += 1
        bits = self.bits(self.places[-1])
        assert bits == self.whole, f"{self.name}: another result"
        shutil.rmtree(self.places[-1])

    def bits(self, out: Path) -> Any:  # noqa: ANN401
        if self.name == "robot":  # nothing that moves in time is twice the same
            (run,) = out.iterdir()
            return RunFolder.open(run).result()["env_steps"] >= 400
        if self.name == "train":
            (run,) = out.iterdir()
            finished = RunFolder.open(run).finished()
            return {name: array.tobytes() for name, array in vars(finished.curve).items()}
        if self.name == "tune":
            return bits_of(out / "trials"), bits_of(out / "fresh")
        return bits_of(out)


def all_of(mark: str) -> list[int]:
    """Processes that have this test's variable in their environment: commands, workers, and what they have started."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"STARTED={mark}\0".encode() in environ.read_bytes():
                found.append(int(environ.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("env", ["Forks", "Opens"])
@pytest.mark.parametrize("command", ["train", "study", "tune", "advise", "robot"])
def test_ten_kills(command: str, env: str, tmp_path: Path) -> None:
    (tmp_path / "child_envs.py").write_text(ENVS)
    paths = [str(tmp_path), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "STARTED": str(tmp_path / "started")}
    words = commands(env, tmp_path)[command]
    killer = Killer(command, words, tmp_path, random.Random(f"{command} {env}"), environment)
    killer.run(int(os.environ.get("KILLS", "10")))
    same = "all finished (in real time no two are the same)" if command == "robot" else "0 differences"
    print(
        f"{command}, {env}: {killer.kills} kills, {killer.ends} ends compared, {same}, "
        f"{len(killer.started)} processes started by environments, 0 left running"
    )
