"""`cycletime train --engine real-time` and `cycletime resume` on a robot that is made by its id, in virtual time."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest

from cycletime.cli import main, train
from cycletime.robots.episode_run import EpisodeRun
from cycletime.training.run_folder import RunFolder
from tests.robots.toy_robot import ToyRobot

pytestmark = pytest.mark.usefixtures("compiled_quickly")

WORDS = "train --env toys:Toy-v0 --engine real-time --algorithm actor-critic --dt 20ms --env-steps 24 --set hidden=2"


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ToyRobot]]:
    """A module whose import registers a robot, and the robots that were made."""
    made: list[ToyRobot] = []

    def make() -> ToyRobot:
        made.append(ToyRobot())
        return made[-1]

    monkeypatch.setitem(sys.modules, "toys", SimpleNamespace())
    gymnasium.register("Toy-v0", make, disable_env_checker=True)  # type: ignore[arg-type]
    yield made
    del gymnasium.registry["Toy-v0"]


def test_a_robot_is_trained_stopped_at_once_and_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, toys: list[ToyRobot]
) -> None:
    words = [*WORDS.split(), "--out", str(tmp_path)]
    with pytest.MonkeyPatch.context() as patch:
        usual = EpisodeRun._hold

        def hold(run: EpisodeRun, action: Any) -> Any:  # noqa: ANN401
            if toys[-1].resets == 2:
                os.kill(os.getpid(), signal.SIGINT)  # in the second episode
            return usual(run, action)

        patch.setattr(EpisodeRun, "_hold", hold)
        assert main(words) == 130
    (path,) = tmp_path.iterdir()
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("actor-critic at 20ms: ")
    assert said[-2:] == ["Stopped, and the robot stands.", f"To go on: cycletime resume {path}"]
    assert toys[-1].closed

    assert main(words) == 2
    assert "has a run of this spec that was stopped: add --resume to go on with it" in capsys.readouterr().err

    assert main(["resume", str(path)]) == 0
    told = capsys.readouterr()
    assert "(3 episodes)" in told.out
    assert [line.split(":")[0] for line in told.err.splitlines() if line.startswith("episode")] == [
        "episode 2",
        "episode 3",
    ]
    for again in (["resume", str(path)], words):
        assert main(again) == 0
        assert capsys.readouterr().out.startswith("finished before: seed 0")


def test_a_robot_s_run_may_learn_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[RunFolder] = []

    def train_robots(folders: list[RunFolder], options: object) -> int:
        begun.extend(folders)
        return 0

    monkeypatch.setattr(train, "train_robots_by_id", train_robots)
    assert main([*WORDS.replace("actor-critic", "sac").split(), "--learner", "background", "--out", str(tmp_path)]) == 0
    assert [(folder.spec.engine.name, folder.spec.engine.learner) for folder in begun] == [("real-time", "background")]


def test_only_robots_have_a_learner_beside_the_loop(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = f"train --task reacher --dt 16ms --env-steps 2000 --learner background --out {tmp_path}"
    assert main(words.split()) == 2
    told = capsys.readouterr().err
    assert told == "cycletime: --learner is 'background': only the engine real-time has the choice.\n"
    assert not list(tmp_path.iterdir())


def test_an_environment_that_is_no_robot_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["train", "--env", "Pendulum-v1", "--engine", "real-time", "--dt", "50ms", "--env-steps", "300"]
    assert main([*words, "--out", str(tmp_path)]) == 2
    assert "is no environment for the real-time loop, which asks for send, receive" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
