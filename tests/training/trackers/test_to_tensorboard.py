"""TensorBoard's own reader is the judge of what was written."""

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError
from cycletime.training.run_folder import RunFolder
from cycletime.training.trackers import RunInfo, TensorBoard
from tests.training.engines.scripted import make_spec, progress_at

MakeInfo = Callable[..., RunInfo]


def read(run: RunInfo) -> Any:  # noqa: ANN401 - of a package without types
    accumulator = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    return accumulator.EventAccumulator(str(run.folder / "tensorboard"), size_guidance={"scalars": 0}).Reload()


def curve(run: RunInfo, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(run).Scalars(tag)]


def raw_events(run: RunInfo) -> list[Any]:
    """The events with values, in the order of the files, by TensorBoard's reader of a single file."""
    loader = importlib.import_module("tensorboard.backend.event_processing.event_file_loader")
    files = sorted((run.folder / "tensorboard").iterdir())
    events = [event for file in files for event in loader.LegacyEventFileLoader(str(file)).Load()]
    return [event for event in events if event.summary.value]


def log(run: RunInfo, *env_steps: int, value: float) -> None:
    tracker = TensorBoard()
    tracker.open_run(run)
    for each in env_steps:
        tracker.log(each, {"charts/episodic_return": value, "losses/policy_loss": -value})
    tracker.close_run("finished")


def test_values_come_back_by_name_and_step(run_info: MakeInfo) -> None:
    run = run_info()
    tracker = TensorBoard()
    tracker.open_run(run)
    tracker.log(1200, {"charts/episodic_return": -12.5, "losses/policy_loss": 0.25})
    tracker.log(3_000_000_000, {"charts/episodic_return": math.inf})
    assert sorted(read(run).Tags()["scalars"]) == ["charts/episodic_return", "losses/policy_loss"]  # before the end
    tracker.close_run("finished")
    assert curve(run, "charts/episodic_return") == [(1200, -12.5), (3_000_000_000, math.inf)]
    assert curve(run, "losses/policy_loss") == [(1200, 0.25)]


def test_a_value_that_is_not_a_number_is_kept_as_such(run_info: MakeInfo) -> None:
    log(run_info(), 10, value=math.nan)
    ((step, value),) = curve(run_info(), "charts/episodic_return")
    assert step == 10
    assert math.isnan(value)


def test_the_config_comes_back(run_info: MakeInfo) -> None:
    log(run_info(), value=0.0)
    metadata = importlib.import_module("tensorboard.plugins.hparams.metadata")
    content = read(run_info()).SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    info = metadata.parse_session_start_info_plugin_data(content)
    kept = {key: getattr(value, value.WhichOneof("kind")) for key, value in info.hparams.items()}
    assert kept == {"agent.discount": 0.99, "dt": "16ms", "seed": 3.0, "exact": True, "exploration": "none"}


def test_a_resumed_run_replaces_what_lies_beyond_its_checkpoint(run_info: MakeInfo) -> None:
    log(run_info(), 100, 200, 300, 400, 500, value=1.0)
    resumed = run_info(resumed_from=300)
    log(resumed, value=2.0)
    assert curve(resumed, "losses/policy_loss") == [(100, -1.0), (200, -1.0), (300, -1.0)]  # before anything is logged
    log(resumed, 450, 600, value=2.0)
    for tag, sign in (("charts/episodic_return", 1), ("losses/policy_loss", -1)):
        assert curve(resumed, tag) == [(step, sign * 1.0) for step in (100, 200, 300)] + [
            (step, sign * 2.0) for step in (450, 600)
        ]


def test_a_run_that_starts_anew_replaces_all(run_info: MakeInfo) -> None:
    log(run_info(), 0, 100, value=1.0)
    log(run_info(), 50, value=2.0)
    assert curve(run_info(), "charts/episodic_return") == [(50, 2.0)]


def test_what_is_taken_back_is_gone_for_readers_that_know_no_sessions(run_info: MakeInfo) -> None:
    log(run_info(), 100, 200, 300, 400, value=1.0)
    log(run_info(resumed_from=200), 350, value=2.0)
    log(run_info(resumed_from=350), 500, value=3.0)
    steps = [event.step for event in raw_events(run_info()) if event.summary.value[0].tag == "charts/episodic_return"]
    assert steps == [100, 200, 350, 500]


def test_a_record_that_was_torn_by_a_crash_harms_no_other(run_info: MakeInfo) -> None:
    log(run_info(), 100, 200, value=1.0)
    (events,) = (run_info().folder / "tensorboard").iterdir()
    events.write_bytes(events.read_bytes()[:-5])
    log(run_info(resumed_from=200), 300, value=2.0)
    assert curve(run_info(), "charts/episodic_return") == [(100, 1.0), (300, 2.0)]


def test_files_of_others_in_the_folder_stay_as_they_are(run_info: MakeInfo) -> None:
    other = run_info().folder / "tensorboard" / "events.out.tfevents.0000000001.host"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"not ours")
    log(run_info(), value=1.0)
    assert other.read_bytes() == b"not ours"


def test_runs_side_by_side_do_not_mix(run_info: MakeInfo, tmp_path: Path) -> None:
    runs = [run_info(folder=tmp_path / name) for name in "ab"]
    trackers = [TensorBoard() for _ in runs]
    for tracker, run in zip(trackers, runs, strict=True):
        tracker.open_run(run)
    for value, tracker in enumerate(trackers):
        tracker.log(10, {"charts/x": value})
    assert [curve(run, "charts/x") for run in runs] == [[(10, 0.0)], [(10, 1.0)]]


def test_a_full_disk_is_one_sentence_and_training_goes_on(run_info: MakeInfo) -> None:
    warnings = list[str]()
    tracker, run = TensorBoard(warnings.append), run_info()
    tracker.begin(RunFolder(run.folder, make_spec()), None)
    (events,) = (run.folder / "tensorboard").iterdir()
    events.unlink()
    events.symlink_to("/dev/full")  # takes no byte, as a full disk
    for env_steps in range(100):
        tracker.update(progress_at(env_steps + 1))
    tracker.end("finished")
    assert warnings == ["TensorBoard failed; disabled for this run: OSError: [Errno 28] No space left on device."]


def test_a_folder_that_cannot_be_made_refuses_the_run(run_info: MakeInfo, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"^TensorBoard could not begin: NotADirectoryError: .*file.*\.$"):
        TensorBoard(pytest.fail).begin(RunFolder(tmp_path / "file", make_spec()), None)
