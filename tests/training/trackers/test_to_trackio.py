"""Against the real Trackio with its local store, read back as its dashboard reads it."""

import importlib
import math
from collections.abc import Callable

import pytest

from cycletime.training.trackers import RunInfo, Trackio

pytestmark = pytest.mark.trackers

MakeInfo = Callable[..., RunInfo]


def curve(name: str, value: str) -> list[tuple[int, float]]:
    storage = importlib.import_module("trackio.sqlite_storage").SQLiteStorage
    return [(row["step"], row[value]) for row in storage.get_logs("cycletime", name) if value in row]


def log(run: RunInfo, *env_steps: int, value: float) -> None:
    tracker = Trackio()
    tracker.open_run(run)
    for each in env_steps:
        tracker.log(each, {"charts/episodic_return": value, "losses/policy_loss": -value})
    tracker.close_run("finished")


def test_values_and_config_come_back(run_info: MakeInfo) -> None:
    log(run_info(name="plain"), 1200, 2400, value=0.5)
    assert curve("plain", "charts/episodic_return") == [(1200, 0.5), (2400, 0.5)]
    assert curve("plain", "losses/policy_loss") == [(1200, -0.5), (2400, -0.5)]
    (kept,) = (run for run in importlib.import_module("trackio").Api().runs("cycletime") if run.name == "plain")
    assert {key: kept.config[key] for key in run_info().config} == run_info().config


def test_a_value_that_is_not_a_number_is_kept_as_such(run_info: MakeInfo) -> None:
    log(run_info(name="nan"), 10, value=math.nan)
    ((step, value),) = curve("nan", "charts/episodic_return")
    assert step == 10
    assert math.isnan(value)


def test_a_resumed_run_goes_on_and_logs_nothing_twice(run_info: MakeInfo) -> None:
    log(run_info(name="resumed"), 100, 200, 300, value=1.0)
    log(run_info(name="resumed", resumed_from=100), 200, 300, 400, value=2.0)
    assert curve("resumed", "charts/episodic_return") == [(100, 1.0), (200, 1.0), (300, 1.0), (400, 2.0)]
    names = [run.name for run in importlib.import_module("trackio").Api().runs("cycletime")]
    assert names.count("resumed") == 1


def test_runs_side_by_side_neither_end_each_other_nor_mix(
    run_info: MakeInfo, capsys: pytest.CaptureFixture[str]
) -> None:
    trackers = {name: Trackio() for name in ("left", "right")}
    for name, tracker in trackers.items():
        tracker.open_run(run_info(name=name))
    assert "Run finished" not in capsys.readouterr().err
    for value, tracker in enumerate(trackers.values()):
        tracker.log(10, {"charts/x": value})
    for tracker in trackers.values():
        tracker.close_run("stopped")
    assert capsys.readouterr().err.count("Run finished") == 2
    assert [curve(name, "charts/x") for name in trackers] == [[(10, 0)], [(10, 1)]]


def test_its_greetings_are_not_printed_as_ours(run_info: MakeInfo, capsys: pytest.CaptureFixture[str]) -> None:
    log(run_info(name="quiet"), 10, value=1.0)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "quiet" in printed.err
