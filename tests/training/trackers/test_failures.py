"""A tracker can refuse a run when it begins, and harms it no more from then on."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from cycletime.errors import InputError
from cycletime.training.observers import Status
from cycletime.training.run_folder import RunFolder
from cycletime.training.trackers import RunInfo, Tracker
from tests.training.engines.scripted import make_spec, progress_at


class Recorder(Tracker):
    """Keeps its calls, and raises the error of a call that it is given one for."""

    def __init__(self, warnings: list[str] | None = None, **errors: BaseException) -> None:
        super().__init__(pytest.fail if warnings is None else warnings.append)
        self.calls: list[object] = []
        self.errors = errors

    def open_run(self, run: RunInfo) -> None:
        self._keep("open_run", run.name)

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        self._keep("log", env_steps, values["charts/episodic_return"])

    def close_run(self, status: Status) -> None:
        self._keep("close_run", status)

    def _keep(self, call: str, *arguments: object) -> None:
        self.calls.append((call, *arguments))
        if call in self.errors:
            raise self.errors[call]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run", make_spec())


def test_all_calls_are_passed_on(folder: RunFolder) -> None:
    tracker = Recorder()
    tracker.begin(folder, None)
    tracker.update(progress_at(10))
    tracker.end("stopped")
    assert tracker.calls == [("open_run", folder.spec.name), ("log", 10, 1.0), ("close_run", "stopped")]


def test_the_first_failure_is_one_sentence_and_nothing_goes_there_any_more(folder: RunFolder) -> None:
    warnings = list[str]()
    tracker = Recorder(warnings, log=OSError(28, "No space left on device"))
    tracker.begin(folder, None)
    for env_steps in (10, 20, 30):
        tracker.update(progress_at(env_steps))
    tracker.end("finished")
    assert tracker.calls[1:] == [("log", 10, 1.0)]
    assert warnings == ["Recorder failed; disabled for this run: OSError: [Errno 28] No space left on device."]


def test_a_failure_at_the_end_is_one_sentence_too(folder: RunFolder) -> None:
    warnings = list[str]()
    tracker = Recorder(warnings, close_run=TimeoutError())
    tracker.begin(folder, None)
    tracker.end("finished")
    tracker.end("finished")
    assert warnings == ["Recorder failed; disabled for this run: TimeoutError."]


def test_a_failure_to_begin_refuses_the_run_in_one_line(folder: RunFolder) -> None:
    tracker = Recorder(open_run=ConnectionError("\n  no answer from host.\n  Try again later."))
    with pytest.raises(InputError, match=r"^Recorder could not begin: ConnectionError: no answer from host\.$"):
        tracker.begin(folder, None)
    tracker.update(progress_at(10))
    tracker.end("failed")
    assert len(tracker.calls) == 1


def test_a_refusal_to_begin_keeps_its_own_sentence(folder: RunFolder) -> None:
    with pytest.raises(InputError, match=r"^Give another folder\.$"):
        Recorder(open_run=InputError("Give another folder.")).begin(folder, None)


def test_an_interrupt_is_no_failure_of_the_tracker(folder: RunFolder) -> None:
    tracker = Recorder(log=KeyboardInterrupt())
    tracker.begin(folder, None)
    with pytest.raises(KeyboardInterrupt):
        tracker.update(progress_at(10))


def test_a_run_can_be_resumed_with_the_same_tracker(folder: RunFolder) -> None:
    tracker = Recorder()
    for _ in range(2):
        tracker.begin(folder, None)
        tracker.end("stopped")
    assert tracker.calls == [("open_run", folder.spec.name), ("close_run", "stopped")] * 2
