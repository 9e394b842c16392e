"""Against the real W&B, offline; its file of records is read back."""

import importlib
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from cycletime.training.observers import Status
from cycletime.training.trackers import RunInfo, WeightsAndBiases

pytestmark = pytest.mark.trackers

MakeInfo = Callable[..., RunInfo]


def records(file: Path) -> Iterator[Any]:
    """After 7 bytes a LevelDB log of protocol buffers: blocks of 32 KiB, of parts with checksum, length and type."""
    record = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    data, place, whole = file.read_bytes(), 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        if place + 7 + length > len(data):
            return  # still being written
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a record in one part, or the last part of one
            yield record.FromString(whole)
            whole = b""


class Kept:
    """What one offline folder of W&B holds."""

    def __init__(self, file: Path) -> None:
        told = list(records(file))
        (self.run,) = (each.run for each in told if each.HasField("run"))
        self.config = {each.key: json.loads(each.value_json) for each in self.run.config.update}
        self.exit_codes = [each.exit.exit_code for each in told if each.HasField("exit")]
        self.curve = {
            each.history.step.num: {_key(item): json.loads(item.value_json) for item in each.history.item}
            for each in told
            if each.HasField("history")
        }

    def values(self, name: str) -> dict[int, float]:
        return {step: values[name] for step, values in self.curve.items() if name in values}


def _key(item: Any) -> str:  # noqa: ANN401 - a protocol buffer
    return item.key or ".".join(item.nested_key)


def kept_in(folder: Path) -> list[Kept]:
    files = sorted(folder.glob("wandb/offline-run-*/*.wandb"))
    # W&B's own process may still write when it reports a run's end; the record of the exit is its last.
    deadline = monotonic() + 20
    while not all(any(each.HasField("exit") for each in records(file)) for file in files):
        assert monotonic() < deadline, f"no record of the exit in {files}"
        sleep(0.05)
    return [Kept(file) for file in files]


def test_values_config_and_name_come_back(run_info: MakeInfo) -> None:
    run = run_info()
    tracker = WeightsAndBiases()
    tracker.open_run(run)
    for env_steps in (1200, 2400):
        tracker.log(env_steps, {"charts/episodic_return": env_steps / 2})
        tracker.log(env_steps, {"losses/policy_loss": 0.25})  # a second call at the same step
    tracker.close_run("finished")
    (kept,) = kept_in(run.folder)
    assert kept.values("charts/episodic_return") == {1200: 600.0, 2400: 1200.0}
    assert kept.values("losses/policy_loss") == {1200: 0.25, 2400: 0.25}
    assert {key: kept.config[key] for key in run.config} == run.config
    assert (kept.run.run_id, kept.run.display_name, kept.run.project) == (run.identity, run.name, "cycletime")


@pytest.mark.parametrize(("status", "code"), [("finished", 0), ("stopped", 255), ("failed", 1)])
def test_the_end_is_told_as_w_and_b_tells_it(status: Status, code: int, run_info: MakeInfo) -> None:
    tracker = WeightsAndBiases()
    tracker.open_run(run_info())
    tracker.close_run(status)
    (kept,) = kept_in(run_info().folder)
    assert kept.exit_codes == [code]


def test_a_resumed_run_keeps_its_id(run_info: MakeInfo) -> None:
    for run, env_steps in ((run_info(), 100), (run_info(resumed_from=100), 200)):
        tracker = WeightsAndBiases()
        tracker.open_run(run)
        tracker.log(env_steps, {"charts/x": 1.0})
        tracker.close_run("stopped")
    first, second = kept_in(run_info().folder)
    assert first.run.run_id == second.run.run_id == run_info().identity
    assert first.values("charts/x") | second.values("charts/x") == {100: 1.0, 200: 1.0}


def test_what_the_server_has_is_not_logged_again(run_info: MakeInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = WeightsAndBiases()
    tracker.open_run(run_info(resumed_from=100))
    monkeypatch.setattr(tracker._run, "_starting_step", 301)  # where the server's answer goes
    for env_steps in (200, 300, 400):
        tracker.log(env_steps, {"charts/x": 1.0})
    tracker.close_run("finished")
    (kept,) = kept_in(run_info().folder)
    assert kept.values("charts/x") == {400: 1.0}


def test_w_and_b_s_own_variables_win(run_info: MakeInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    monkeypatch.setenv("WANDB_NAME", "called so")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path / "elsewhere"))
    tracker = WeightsAndBiases()
    tracker.open_run(run_info())
    tracker.close_run("finished")
    assert kept_in(run_info().folder) == []
    (kept,) = kept_in(tmp_path / "elsewhere")
    assert (kept.run.project, kept.run.display_name) == ("mine", "called so")


def test_runs_side_by_side_do_not_mix(run_info: MakeInfo, tmp_path: Path) -> None:
    runs = [run_info(folder=tmp_path / name, identity=name * 64) for name in "ab"]
    trackers = [WeightsAndBiases() for _ in runs]
    for tracker, run in zip(trackers, runs, strict=True):
        tracker.open_run(run)
    for value, tracker in enumerate(trackers):
        tracker.log(10, {"charts/x": value})
    for tracker in trackers:
        tracker.close_run("finished")
    assert [kept.values("charts/x") for run in runs for kept in kept_in(run.folder)] == [{10: 0}, {10: 1}]
