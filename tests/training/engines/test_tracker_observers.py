"""What trackers are told of a run."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.errors import InputError
from cycletime.training.learning_curve import read_curve
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import RunSpec
from cycletime.training.trackers import RunInfo, Tracker
from tests.training.engines.scripted import train


class Diary(Tracker):
    """A tracker that writes down what it is told, and fails when asked to."""

    def __init__(self, fails: str = "", warnings: list[str] | None = None) -> None:
        super().__init__(print if warnings is None else warnings.append)
        self.runs: list[RunInfo] = []
        self.logged: list[tuple[int, Mapping[str, float]]] = []
        self.ended: list[str] = []
        self.fails = fails

    def open_run(self, run: RunInfo) -> None:
        self.runs.append(run)
        if self.fails == "begin":
            raise OSError("no network")

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        self.logged.append((env_steps, values))
        if self.fails == "log":
            raise OSError("no network")

    def close_run(self, status: str) -> None:
        self.ended.append(status)


def test_a_tracker_is_told_of_the_spec_the_returns_and_the_losses(
    tmp_path: Path, walk: RunSpec, after: Callable[[int], Callable[[], bool]]
) -> None:
    folder, diary = RunFolder.create(tmp_path, walk), Diary()
    train(folder, [diary], stop=after(5))
    train(folder, [diary])
    assert [run.resumed_from for run in diary.runs] == [None, 100]
    assert diary.ended == ["stopped", "finished"]
    run = diary.runs[0]
    assert (run.name, run.identity, run.folder) == (walk.name, walk.identity, folder.path)
    expected = {"world.env": "toys/Walk-v0", "agent.hidden": "8", "agent.discount": 0.99, "dt": "50ms", "seed": 3}
    assert {name: run.config[name] for name in expected} == expected
    assert all(isinstance(value, str | int | float | None) for value in run.config.values())

    curve = read_curve((folder.path / "curve.parquet").read_bytes(), walk.dt, walk.env_steps)
    of_episodes = [(at, values) for at, values in diary.logged if "charts/episodic_return" in values]
    assert [env_steps for env_steps, _ in of_episodes] == curve.env_steps.tolist()
    assert [values["charts/episodic_return"] for _, values in of_episodes] == curve.returns.tolist()
    assert {values["charts/episodic_length_env_steps"] for _, values in of_episodes} == {20}
    steps = [env_steps for env_steps, _ in diary.logged]
    assert steps == sorted(set(steps))
    assert sum("losses/value_error" in values for _, values in diary.logged) == 300
    for _, values in diary.logged:
        assert {name.partition("/")[0] for name in values} == {"charts", "losses"}
        assert values["charts/env_steps_per_second"] > 0
        assert np.isfinite(list(values.values())).all()


def test_a_tracker_that_refuses_the_run_ends_it_before_it_begins(tmp_path: Path, walk: RunSpec) -> None:
    folder, other = RunFolder.create(tmp_path, walk), Diary()
    with pytest.raises(InputError, match="Diary could not begin: OSError: no network"):
        train(folder, [other, Diary(fails="begin")])
    assert other.ended == ["failed"]
    assert not (folder.path / "curve.parquet").exists()


def test_a_tracker_that_fails_later_is_warned_of_once_and_the_run_goes_on(
    tmp_path: Path, walk: RunSpec, left_by: Callable[[RunFolder], dict[str, Any]]
) -> None:
    whole, folder = RunFolder.create(tmp_path / "whole", walk), RunFolder.create(tmp_path, walk)
    train(whole)
    warnings: list[str] = []
    failing, diary = Diary(fails="log", warnings=warnings), Diary()
    assert train(folder, [failing, diary]) == "finished"
    assert warnings == ["Diary failed; disabled for this run: OSError: no network."]
    assert (len(failing.logged), failing.ended, diary.ended) == (1, [], ["finished"])
    assert left_by(folder) == left_by(whole)
